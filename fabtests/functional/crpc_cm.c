/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connected endpoints: connection, rejection, shutdown.
 *
 * Pages: fi_cm(3), fi_eq(3) (FI_CONNREQ, FI_CONNECTED, FI_SHUTDOWN, errors), fi_endpoint(3).
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#define DATA_LEN 32

union event {
	struct fi_eq_cm_entry cm;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + 512];
};

static void only_msg(const struct ft *ft)
{
	if (ft->opts->type != FI_EP_MSG)
		ft_notrun("for -e msg");
}

/* Opens fabric and event queue; rank 0 listens and sends its address. */
static void begin(struct ft_fab *fab, struct ft *ft)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct ft_want want = { .caps = FI_MSG };

	only_msg(ft);
	ft_fab_find(fab, ft, &want);
	FT_OK(fi_fabric(fab->info->fabric_attr, &fab->fabric, NULL));
	FT_OK(fi_eq_open(fab->fabric, &attr, &fab->eq, NULL));
	if (ft->rank) {
		ft_hear(ft, 0, fab->name[0], FT_NAME_LEN);
		return;
	}
	ft_cm_listen(fab);
	for (int rank = 1; rank < ft->procs; rank++)
		ft_tell(ft, rank, fab->name[0], FT_NAME_LEN);
}

/* Opens an endpoint of `info`, bound to the existing queue. */
static void endpoint(struct ft_fab *fab, struct fi_info *info)
{
	struct fid_eq *eq = fab->eq;
	struct fi_info *own = fab->info;

	fab->info = info;
	FT_OK(fi_domain(fab->fabric, info, &fab->domain, NULL));
	ft_fab_queues(fab);
	FT_CLOSE(fab->eq);
	fab->eq = eq;
	ft_fab_endpoint(fab);
	fab->info = own;
	fab->ops = fab->ops ? fab->ops : ft_ops_open();
}

static void expect(struct ft_fab *fab, int want, union event *e, ssize_t *len)
{
	struct fi_eq_err_entry bad = { 0 };
	ssize_t got = 0;
	int event = ft_cm_event(fab, &e->cm, sizeof(*e), &got, &bad, fab->ft->opts->limit / 2);

	FT_CHECK(event == want, "event %d (%s), expected %d (%s)", event,
		 event < 0 ? ft_err_name(event) : "no error", want,
		 want < 0 ? ft_err_name(want) : "no error");
	if (len)
		*len = got;
}

static size_t data_size(struct ft_fab *fab)
{
	size_t size = 0, len = sizeof(size);

	FT_OK(fi_getopt(&fab->ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len));
	return size;
}

static void check_data(const union event *e, ssize_t len, uint32_t key)
{
	size_t have = (size_t)len - offsetof(struct fi_eq_cm_entry, data);

	FT_CHECK(have >= DATA_LEN, "%zu bytes of data", have);
	FT_CHECK(ft_wrong(e->cm.data, DATA_LEN, key) < 0, "other data than was sent");
}

static void end(struct ft_fab *fab)
{
	ft_sync(fab->ft);
	if (fab->ep)
		FT_CLOSE(fab->ep);
	if (fab->pep)
		FT_CLOSE(fab->pep);
	if (fab->tx_cq)
		FT_CLOSE(fab->tx_cq);
	FT_CLOSE(fab->eq);
	if (fab->domain)
		FT_CLOSE(fab->domain);
	FT_CLOSE(fab->fabric);
	fi_freeinfo(fab->info);
}

/* Connects both ends, with data in both directions. */
static void connect_both(struct ft_fab *fab)
{
	uint8_t data[DATA_LEN];
	union event e;
	ssize_t len;

	if (fab->ft->rank == 0) {
		expect(fab, FI_CONNREQ, &e, &len);
		FT_CHECK(e.cm.fid == &fab->pep->fid, "FI_CONNREQ of another object");
		check_data(&e, len, 1);
		endpoint(fab, e.cm.info);
		ft_fill(data, DATA_LEN, 2);
		FT_OK(fi_accept(fab->ep, data, DATA_LEN));
		fi_freeinfo(e.cm.info);
		expect(fab, FI_CONNECTED, &e, NULL);
	} else {
		endpoint(fab, fab->info);
		FT_CHECK(data_size(fab) >= DATA_LEN, "room for %zu bytes of data", data_size(fab));
		ft_fill(data, DATA_LEN, 1);
		FT_OK(fi_connect(fab->ep, fab->name[0], data, DATA_LEN));
		expect(fab, FI_CONNECTED, &e, &len);
		check_data(&e, len, 2);
	}
	FT_CHECK(e.cm.fid == &fab->ep->fid, "FI_CONNECTED of another object");
	fab->ft->fab = fab;
	ft_sync(fab->ft);
}

static void run_data(struct ft *ft)
{
	struct ft_fab fab;
	char own[FT_NAME_LEN] = { 0 }, peer[FT_NAME_LEN] = { 0 }, theirs[FT_NAME_LEN];
	size_t own_len = FT_NAME_LEN, peer_len = FT_NAME_LEN;

	begin(&fab, ft);
	connect_both(&fab);
	FT_OK(fi_getname(&fab.ep->fid, own, &own_len));
	FT_OK(fi_getpeer(fab.ep, peer, &peer_len));
	ft_swap(ft, !ft->rank, own, theirs, FT_NAME_LEN);
	if (ft->rank == 1) /* the peer's address is the one passed to connect */
		FT_CHECK(!memcmp(peer, fab.name[0], sizeof(struct sockaddr_in)),
			 "fi_getpeer names another address");
	peer_len = 2;
	FT_ROW(fi_getpeer(fab.ep, peer, &peer_len), -FI_ETOOSMALL);
	end(&fab);
}

/* An endpoint connects once in its lifetime. */
static void run_twice(struct ft *ft)
{
	struct ft_fab fab;

	begin(&fab, ft);
	connect_both(&fab);
	if (ft->rank == 1)
		FT_REFUSED(fi_connect(fab.ep, fab.name[0], NULL, 0));
	end(&fab);
}

static void run_reject(struct ft *ft)
{
	struct fi_eq_err_entry bad = { 0 };
	uint8_t data[DATA_LEN];
	struct ft_fab fab;
	union event e;
	int event;

	begin(&fab, ft);
	if (ft->rank == 0) {
		expect(&fab, FI_CONNREQ, &e, NULL);
		ft_fill(data, DATA_LEN, 3);
		FT_OK(fi_reject(fab.pep, e.cm.info->handle, data, DATA_LEN));
		fi_freeinfo(e.cm.info);
	} else {
		endpoint(&fab, fab.info);
		FT_OK(fi_connect(fab.ep, fab.name[0], NULL, 0));
		event = ft_cm_event(&fab, &e.cm, sizeof(e), NULL, &bad, ft->opts->limit / 2);
		FT_CHECK(event == -FI_ECONNREFUSED, "event %d (%s)", event, ft_err_name(event));
		FT_CHECK(bad.fid == &fab.ep->fid, "the error is another object's");
		FT_CHECK(bad.err_data_size >= DATA_LEN && ft_wrong(bad.err_data, DATA_LEN, 3) < 0,
			 "other data than was sent: %zu bytes", bad.err_data_size);
	}
	end(&fab);
}

static void run_nobody(struct ft *ft)
{
	double start = ft_now();
	struct sockaddr_in *sin;
	struct ft_fab fab;
	union event e;

	begin(&fab, ft);
	if (ft->rank == 1) {
		sin = (struct sockaddr_in *)fab.name[0];
		sin->sin_port = htons(9);
		endpoint(&fab, fab.info);
		if (!fi_connect(fab.ep, sin, NULL, 0))
			expect(&fab, -FI_ECONNREFUSED, &e, NULL);
		FT_CHECK(ft_now() - start < 30, "it took %.1f s", ft_now() - start);
	}
	end(&fab);
}

/*
 * One side shuts down. The other gets one event, open operations end, and data read before stays.
 */
static void run_shutdown(struct ft *ft)
{
	struct ft_op *ops[8];
	struct ft_fab fab;
	union event e;
	uint8_t buf[8][16];

	begin(&fab, ft);
	connect_both(&fab);
	for (int i = 0; i < 8; i++)
		ops[i] = ft_recv_post(&fab, false, 0, buf[i], 16);
	ft_sync(ft);
	if (ft->rank == 1) {
		if (ft->test->arg)
			FT_OK(fi_shutdown(fab.ep, 0));
		else
			FT_CLOSE(fab.ep);
		ft_sync(ft);
	} else {
		expect(&fab, FI_SHUTDOWN, &e, NULL);
		FT_CHECK(e.cm.fid == &fab.ep->fid, "FI_SHUTDOWN of another object");
		ft_sync(ft);
		for (double stop = ft_now() + 0.1; ft_now() < stop;)
			ft_poll(&fab);
		for (int i = 0; i < 8; i++)
			FT_CHECK(ops[i]->seen <= 1 && (!ops[i]->seen || ops[i]->err),
				 "a receive ended well after the shutdown");
		FT_CHECK(ft_cm_event(&fab, &e.cm, sizeof(e), NULL, NULL, 0.1) == 0,
			 "another event after FI_SHUTDOWN");
	}
	end(&fab);
}

static void run_killed(struct ft *ft)
{
	static uint8_t out[300000];
	struct ft_op *ops[16];
	struct ft_fab fab;
	union event e;

	begin(&fab, ft);
	connect_both(&fab);
	if (ft->rank == 1) {
		ft_sync(ft);
		pause();
	}
	for (int i = 0; i < 16; i++) {
		struct ft_msg msg = {
			.buf = out, .len = sizeof(out), .rank = 1, .op = ft_op_new(&fab, FT_ONE)
		};

		ops[i] = msg.op;
		FT_POST(&fab, ft_send(&fab, FT_PLAIN, &msg));
	}
	ft_sync(ft);
	ft_signal(ft, 1, SIGKILL);
	expect(&fab, FI_SHUTDOWN, &e, NULL);
	for (int i = 0; i < 16; i++) {
		ft_wait(&fab, ops[i]);
		FT_CHECK(ops[i]->err, "a send to a dead peer ended well");
	}
	ft_quiet(&fab, 0.05);
	end(&fab);
}

/*
 * Several clients of one listener, each with an endpoint of its own: all messages reach the right
 * endpoint.
 */
static void run_many(struct ft *ft)
{
	enum { EPS = 8 };
	struct fid_ep *eps[2 * EPS];
	struct ft_fab fab;
	union event e;
	int cnt = ft->rank ? EPS : 2 * EPS, connected = 0, made = 0;
	uint32_t got[2 * EPS] = { 0 }, value;

	begin(&fab, ft);
	FT_OK(fi_domain(fab.fabric, fab.info, &fab.domain, NULL));
	{
		struct fid_eq *eq = fab.eq;

		ft_fab_queues(&fab);
		FT_CLOSE(fab.eq);
		fab.eq = eq;
	}
	fab.ops = ft_ops_open();
	for (; ft->rank && made < cnt; made++) {
		ft_fab_endpoint(&fab);
		eps[made] = fab.ep;
		FT_OK(fi_connect(fab.ep, fab.name[0], NULL, 0));
	}
	while (connected < cnt) {
		int event = ft_cm_event(&fab, &e.cm, sizeof(e), NULL, NULL, ft->opts->limit / 2);

		FT_CHECK(event == FI_CONNREQ || event == FI_CONNECTED, "event %d (%s)", event,
			 ft_err_name(event));
		if (event == FI_CONNECTED) {
			connected++;
			continue;
		}
		struct fi_info *own = fab.info;

		fab.info = e.cm.info;
		ft_fab_endpoint(&fab);
		fab.info = own;
		ft_fab_enable(&fab);
		FT_OK(fi_recv(fab.ep, &got[made], 4, NULL, 0, NULL));
		FT_OK(fi_accept(fab.ep, NULL, 0));
		fi_freeinfo(e.cm.info);
		eps[made++] = fab.ep;
	}
	fab.ep = NULL;
	ft->fab = &fab;
	for (int i = 0; ft->rank && i < cnt; i++) {
		value = (uint32_t)(ft->rank * 100 + i);
		while (fi_inject(eps[i], &value, 4, 0) == -FI_EAGAIN)
			ft_fab_progress(&fab);
	}
	for (int i = 0, n = 0; !ft->rank && n < cnt; i++) {
		struct fi_cq_tagged_entry entry;

		n += fi_cq_read(fab.tx_cq, &entry, 1) == 1;
		FT_CHECK(ft_now() < ft_deadline(&fab), "%d of %d messages came", n, cnt);
	}
	for (int i = 0; !ft->rank && i < cnt; i++) {
		for (int j = 0; j < i; j++)
			FT_CHECK(got[i] && got[i] != got[j], "a message came to two endpoints");
	}
	ft_sync(ft);
	for (int i = 0; i < cnt; i++)
		FT_OK(fi_close(&eps[i]->fid));
	end(&fab);
}

/* Before the connection is established, sends are refused and receives may be posted. */
static void run_early(struct ft *ft)
{
	struct ft_fab fab;
	uint8_t byte = 0;

	begin(&fab, ft);
	if (ft->rank == 1) {
		endpoint(&fab, fab.info);
		ft_fab_enable(&fab);
		FT_ROW(fi_recv(fab.ep, &byte, 1, NULL, 0, &byte), 0);
		FT_CHECK(fi_send(fab.ep, &byte, 1, NULL, 0, &byte), "sent without a connection");
		FT_CHECK(fi_inject(fab.ep, &byte, 1, 0), "injected without a connection");
	}
	end(&fab);
}

static void run_listener(struct ft *ft)
{
	struct ft_fab fab;
	struct fid_pep *other;

	begin(&fab, ft);
	FT_ROW(fi_close(&fab.eq->fid), -FI_EBUSY); /* a passive endpoint is bound to the queue */
	FT_ROW(fi_close(&fab.fabric->fid), -FI_EBUSY);
	FT_OK(fi_passive_ep(fab.fabric, fab.info, &other, NULL));
	FT_REFUSED(fi_listen(other)); /* not bound to an event queue */
	FT_CLOSE(other);
	end(&fab);
}

static const struct ft_case cases[] = {
	FT_CASE("data", run_data,
		"Requests and acceptances carry data; both ends know both names."),
	FT_CASE("connect-twice", run_twice, "An endpoint is connected once in its life."),
	FT_CASE("reject", run_reject, "A rejected request is an error event, with data."),
	FT_CASE("nobody", run_nobody, "Where nobody listens, an error comes in bounded time."),
	FT_CASE("shutdown", run_shutdown, "The peer gets one event of fi_shutdown.", .arg = 1),
	FT_CASE("close", run_shutdown, "So is the closing of the endpoint."),
	FT_CASE("killed", run_killed, "So is its death; what is open ends.", .victims = 2,
		.local = true),
	FT_CASE("many", run_many, "One listener serves many connections.", .procs = 3),
	FT_CASE("early", run_early, "Nothing is sent before FI_CONNECTED."),
	FT_CASE("listener", run_listener, "A listener needs its event queue.", .procs = 1),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Connections come about, are refused, and end.", cases,
		       FT_CNT(cases));
}
