/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connected endpoints (FI_EP_MSG) between processes, as their man pages describe them.
 *
 * msg_many [CONNECTIONS]: a server process and this one, the client, over the provider that
 * FI_PROVIDER names. Each check ends the program if it does not hold:
 *
 *   many     CONNECTIONS endpoints of the client, one listener: each is connected with data both
 *            ways, sends and receives messages of several sizes, and is shut down by the
 *            other end
 *   reject   a request is rejected with data
 *   absent   without a listener the refusal comes long before the peer timeout
 *   flood    silent strangers at the listener's port block no client
 *   kill     the server is killed with -9: FI_SHUTDOWN at every endpoint, and open operations end
 */
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fab.h"

#define MANY_MAX   512
#define MANY_SIZES 5
#define FLOOD      300
#define PATIENCE   200.0
#define SOON       15.0 /* seconds: half a peer timeout */

static const size_t sizes[MANY_SIZES] = { 0, 8, 1000, 20000, 200000 };

struct conn {
	struct fid_ep *ep;
	unsigned sent, received, errors;
	bool connected, ended;
	uint8_t *buf;
};

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	unsigned cnt;
	struct conn conns[MANY_MAX];
};

static struct side me;
static char scratch[1 << 18];

static void open_side(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA, .size = 4096 };

	FAB_TRUE(hints);
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->domain_attr->mr_mode = 0;
	FAB_CHECK(fi_getinfo(FI_VERSION(1, 15), "127.0.0.1", "0", FI_SOURCE, hints, &me.info));
	fi_freeinfo(hints);
	FAB_CHECK(fi_fabric(me.info->fabric_attr, &me.fabric, NULL));
	FAB_CHECK(fi_domain(me.fabric, me.info, &me.domain, NULL));
	FAB_CHECK(fi_eq_open(me.fabric, &eq_attr, &me.eq, NULL));
	FAB_CHECK(fi_cq_open(me.domain, &cq_attr, &me.cq, NULL));
}

static struct conn *open_conn(struct fi_info *info)
{
	struct conn *conn = &me.conns[me.cnt++];

	FAB_TRUE(me.cnt <= MANY_MAX);
	conn->buf = calloc(1, sizes[MANY_SIZES - 1]);
	FAB_TRUE(conn->buf);
	FAB_CHECK(fi_endpoint(me.domain, info, &conn->ep, conn));
	FAB_CHECK(fi_ep_bind(conn->ep, &me.eq->fid, 0));
	FAB_CHECK(fi_ep_bind(conn->ep, &me.cq->fid, FI_TRANSMIT | FI_RECV));
	FAB_CHECK(fi_enable(conn->ep));
	/* Receives may be posted before there is a connection. */
	FAB_CHECK(fi_recv(conn->ep, conn->buf, sizes[MANY_SIZES - 1], NULL, 0, conn));
	return conn;
}

/* Sends the next message of a connection: its number, repeated. */
static void send_next(struct conn *conn)
{
	size_t len = sizes[conn->sent % MANY_SIZES];
	ssize_t ret;

	memset(scratch, (int)conn->sent, len);
	do {
		ret = fi_inject(conn->ep, scratch, len, FI_ADDR_UNSPEC);
		if (ret == -FI_EMSGSIZE) {
			uint8_t *copy = malloc(len);

			FAB_TRUE(copy);
			memcpy(copy, scratch, len);
			ret = fi_send(conn->ep, copy, len, NULL, 12345, copy);
		}
		if (ret == -FI_EAGAIN)
			fi_cq_read(me.cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	FAB_CHECK(ret);
	conn->sent++;
}

static void on_received(struct conn *conn, size_t len, bool replies)
{
	FAB_TRUE(len == sizes[conn->received % MANY_SIZES]);
	for (size_t i = 0; i < len; i++)
		FAB_TRUE(conn->buf[i] == (uint8_t)conn->received);
	conn->received++;
	FAB_CHECK(fi_recv(conn->ep, conn->buf, sizes[MANY_SIZES - 1], NULL, 0, conn));
	if (replies)
		send_next(conn);
}

/* Reads completions: sends free their copy, receives are checked and, by the server, replied to. */
static void progress(bool replies)
{
	struct fi_cq_data_entry e;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(me.cq, &e, 1)) == 1) {
		if (e.flags & FI_RECV)
			on_received(e.op_context, e.len, replies);
		else
			free(e.op_context);
	}
	if (ret == -FI_EAVAIL && fi_cq_readerr(me.cq, &err, 0) == 1) {
		if (err.flags & FI_RECV)
			((struct conn *)err.op_context)->errors++;
		else
			free(err.op_context);
	} else {
		FAB_TRUE(ret == -FI_EAGAIN || ret == -FI_EAVAIL);
	}
}

/* Reads one event, if there is one, and records it in its connection. */
static bool event(uint32_t *what, struct fi_eq_cm_entry *entry, size_t room, size_t *len)
{
	ssize_t ret = fi_eq_read(me.eq, what, entry, room, 0);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		struct fi_eq_err_entry err = { 0 };

		fi_eq_readerr(me.eq, &err, 0);
		fab_fail(__FILE__, __LINE__, "an error event", fi_strerror(err.err));
	}
	FAB_CHECK(ret);
	*len = (size_t)ret - sizeof(*entry);
	if (*what == FI_CONNECTED)
		((struct conn *)entry->fid->context)->connected = true;
	if (*what == FI_SHUTDOWN)
		((struct conn *)entry->fid->context)->ended = true;
	return true;
}

static void close_ended(void)
{
	for (unsigned i = 0; i < me.cnt; i++) {
		struct conn *conn = &me.conns[i];

		if (!conn->ep || !conn->ended)
			continue;
		FAB_CHECK(fi_close(&conn->ep->fid));
		conn->ep = NULL;
		free(conn->buf);
	}
}

/*
 * Server: prints its port, accepts all requests but those with data "no", and replies until it is
 * killed.
 */
static void serve(int port_fd)
{
	union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + 64];
	} u;
	struct fid_pep *pep;
	struct sockaddr_in addr;
	size_t addr_len = sizeof(addr), len;
	uint32_t what;

	open_side();
	FAB_CHECK(fi_passive_ep(me.fabric, me.info, &pep, NULL));
	FAB_CHECK(fi_pep_bind(pep, &me.eq->fid, 0));
	FAB_CHECK(fi_listen(pep));
	FAB_CHECK(fi_getname(&pep->fid, &addr, &addr_len));
	FAB_TRUE(write(port_fd, &addr, sizeof(addr)) == sizeof(addr));
	for (;;) {
		progress(true);
		if (!event(&what, &u.entry, sizeof(u), &len))
			continue;
		if (what == FI_CONNREQ && len == 2 && !memcmp(u.entry.data, "no", 2)) {
			FAB_CHECK(fi_reject(pep, u.entry.info->handle, "because", 7));
			fi_freeinfo(u.entry.info);
		} else if (what == FI_CONNREQ) {
			FAB_TRUE(len == 4);
			FAB_CHECK(fi_accept(open_conn(u.entry.info)->ep, u.entry.data, len));
			fi_freeinfo(u.entry.info);
		}
		close_ended();
	}
}

static pid_t start_server(struct sockaddr_in *addr)
{
	int fds[2];
	pid_t pid;

	FAB_TRUE(!pipe(fds));
	pid = fork();
	FAB_TRUE(pid >= 0);
	if (!pid) {
		close(fds[0]);
		serve(fds[1]);
	}
	close(fds[1]);
	FAB_TRUE(read(fds[0], addr, sizeof(*addr)) == sizeof(*addr));
	close(fds[0]);
	return pid;
}

#define UNTIL(cond, replies)                                                                       \
	do {                                                                                       \
		double start = fab_seconds();                                                      \
		while (!(cond)) {                                                                  \
			progress(false);                                                           \
			client_event();                                                            \
			FAB_TRUE(fab_seconds() - start < PATIENCE);                                \
		}                                                                                  \
	} while (0)

static void client_event(void)
{
	union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + 64];
	} u;
	uint32_t what;
	size_t len;

	if (!event(&what, &u.entry, sizeof(u), &len))
		return;
	FAB_TRUE(what == FI_CONNECTED || what == FI_SHUTDOWN);
	if (what == FI_CONNECTED) { /* the server returns the client's own words */
		unsigned number = (unsigned)((struct conn *)u.entry.fid->context - me.conns);

		FAB_TRUE(len == 4 && !memcmp(u.entry.data, &number, 4));
	}
}

static unsigned count(size_t field)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < me.cnt; i++)
		cnt += *((const bool *)&me.conns[i] + field);
	return cnt;
}

#define CONNECTED count(offsetof(struct conn, connected))
#define ENDED     count(offsetof(struct conn, ended))

static bool all_received(unsigned first, unsigned rounds)
{
	for (unsigned i = first; i < me.cnt; i++)
		if (me.conns[i].received < rounds)
			return false;
	return true;
}

static void call(const struct sockaddr_in *addr)
{
	unsigned number = me.cnt;

	FAB_CHECK(fi_connect(open_conn(me.info)->ep, addr, &number, sizeof(number)));
}

/* `cnt` more connections, and `rounds` messages there and back on each, all at once. */
static void many(const struct sockaddr_in *addr, unsigned cnt, unsigned rounds)
{
	unsigned first = me.cnt, connected = CONNECTED;

	for (unsigned i = 0; i < cnt; i++)
		call(addr);
	UNTIL(CONNECTED == connected + cnt, false);
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = first; i < me.cnt; i++)
			send_next(&me.conns[i]);
		UNTIL(all_received(first, r + 1), false);
	}
}

static void expect_refusal(const struct sockaddr_in *addr, const char *say, const char *hear,
			   double limit)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	double start = fab_seconds();
	char data[64];
	uint32_t what;
	ssize_t ret;

	struct conn *conn = open_conn(me.info);
	FAB_CHECK(fi_connect(conn->ep, addr, say, strlen(say)));
	ret = fi_eq_sread(me.eq, &what, &entry, sizeof(entry), (int)(PATIENCE * 1000), 0);
	FAB_TRUE(ret == -FI_EAVAIL);
	FAB_TRUE(fab_seconds() - start < limit);
	err.err_data = data;
	err.err_data_size = sizeof(data);
	FAB_TRUE(fi_eq_readerr(me.eq, &err, 0) == sizeof(err));
	FAB_TRUE(err.fid == &conn->ep->fid && err.err == FI_ECONNREFUSED);
	FAB_TRUE(err.err_data_size == strlen(hear) && !memcmp(data, hear, strlen(hear)));
	progress(false);
	FAB_TRUE(conn->errors == 1); /* the receive was flushed */
	FAB_TRUE(fi_send(conn->ep, data, 1, NULL, 0, NULL) < 0);
	FAB_CHECK(fi_close(&conn->ep->fid));
	free(conn->buf);
	me.cnt--;
	memset(conn, 0, sizeof(*conn));
}

static void absent(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	/* A port that is taken, and has no listener. */
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	FAB_TRUE(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	FAB_TRUE(!getsockname(fd, (struct sockaddr *)&addr, &len));
	expect_refusal(&addr, "hello", "", SOON);
	close(fd);
}

static void flood(const struct sockaddr_in *addr)
{
	int fds[FLOOD];
	double start;

	for (int i = 0; i < FLOOD; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		FAB_TRUE(fds[i] >= 0);
		connect(fds[i], (const struct sockaddr *)addr, sizeof(*addr));
		if (i % 3 == 0)
			(void)!write(fds[i], "garbage, garbage", 16);
	}
	start = fab_seconds();
	many(addr, 4, 2);
	FAB_TRUE(fab_seconds() - start < SOON);
	for (int i = 0; i < FLOOD; i++)
		close(fds[i]);
}

/* Half of the connections are shut down, the rest ends with the server. */
static void end_all(pid_t server)
{
	unsigned params = me.cnt / 2, ended;
	uint64_t zero = 0;

	for (unsigned i = 0; i < params; i++)
		FAB_CHECK(fi_shutdown(me.conns[i].ep, 0));
	UNTIL(ENDED == params, false);
	FAB_TRUE(!kill(server, SIGKILL));
	FAB_TRUE(waitpid(server, NULL, 0) == server);
	UNTIL(ENDED == me.cnt, false);
	progress(false);
	for (unsigned i = 0; i < me.cnt; i++) {
		while (!me.conns[i].errors)
			progress(false);
		FAB_TRUE(me.conns[i].errors == 1);
		FAB_TRUE(fi_send(me.conns[i].ep, &zero, 8, NULL, 0, NULL) == -FI_ESHUTDOWN);
		FAB_CHECK(fi_recv(me.conns[i].ep, me.conns[i].buf, 8, NULL, 0, &me.conns[i]));
		while (me.conns[i].errors < 2)
			progress(false);
	}
	ended = ENDED;
	client_event();
	FAB_TRUE(ENDED == ended);
	close_ended();
}

int main(int argc, char **argv)
{
	unsigned cnt = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
	struct sockaddr_in addr;
	pid_t server = start_server(&addr);
	double start = fab_seconds();

	FAB_TRUE(cnt && cnt + 8 <= MANY_MAX);
	open_side();
	many(&addr, cnt, 2 * MANY_SIZES);
	printf("%u connections, %u messages each way: %.1f s\n", cnt, 2 * MANY_SIZES * cnt,
	       fab_seconds() - start);
	expect_refusal(&addr, "no", "because", PATIENCE);
	absent();
	flood(&addr);
	start = fab_seconds();
	end_all(server);
	printf("every end was notified: %.1f s\n", fab_seconds() - start);
	FAB_CHECK(fi_close(&me.cq->fid));
	FAB_CHECK(fi_close(&me.domain->fid));
	FAB_CHECK(fi_close(&me.eq->fid));
	FAB_CHECK(fi_close(&me.fabric->fid));
	fi_freeinfo(me.info);
	return 0;
}
