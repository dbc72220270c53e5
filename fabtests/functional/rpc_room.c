/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls until there is no room for more: see rpc_room.h. */
#include "functional/rpc_room.h"

#include <unistd.h>

#include "common/ft_data.h"
#include "common/ft_msg.h"
#include "functional/rpc_pair.h"

/* Calls until no more are accepted, while the callee makes no progress. No call may be lost. */
void rpc_run_flood(struct ft *ft)
{
	enum { MOST = 2000 };
	static struct rpc_call calls[MOST];
	unsigned cnt = 0;
	struct rpc r;

	rpc_begin(&r, ft);
	if (ft->rank == 0) {
		double stop = ft_now() + 1;

		while (cnt < MOST && (cnt < 2 || ft_now() < stop)) {
			rpc_call_init(&calls[cnt], cnt, 100, 100);
			if (!rpc_call_try(&r, &calls[cnt], 100, 0)) {
				cnt++;
				continue;
			}
			ft_buf_free(calls[cnt].resp);
			ft_poll(&r.fab);
		}
		ft_tell(ft, 1, &cnt, sizeof(cnt));
		for (unsigned i = 0; i < cnt; i++)
			rpc_call_finish(&r, &calls[i]);
		FT_CHECK(cnt > 1, "%u calls were accepted", cnt);
	} else {
		sleep(1); /* no progress */
		ft_hear(ft, 0, &cnt, sizeof(cnt));
		rpc_serve_until(&r, cnt);
	}
	rpc_end(&r);
}

static struct fi_copyrpc_limits connect_peer(struct rpc *r)
{
	double deadline = ft_deadline(&r->fab);
	struct fi_copyrpc_limits limits;
	int ret;

	while ((ret = fi_copyrpc_query(r->ops, r->fab.ep, r->fab.addr[1], &limits)) == -FI_EAGAIN)
		ft_again(&r->fab, deadline);
	FT_OK(ret);
	return limits;
}

static int shortage(struct rpc *r, size_t len, size_t resp_max)
{
	return fi_copyrpc_shortage(r->ops, r->fab.ep, r->fab.addr[1], len, resp_max);
}

/* Checks that `cnt` calls were refused for this cause, and none for another. */
static void check_refused(struct rpc *r, int cause, uint64_t cnt)
{
	uint64_t counts[FI_COPYRPC_SHORT_CNT];

	FT_OK(fi_copyrpc_refused(r->ops, r->fab.ep, counts, FI_COPYRPC_SHORT_CNT));
	for (int i = 0; i < FI_COPYRPC_SHORT_CNT; i++)
		FT_CHECK(counts[i] == (i == cause ? cnt : 0),
			 "%llu calls refused for cause %d, expected %llu for %d",
			 (unsigned long long)counts[i], i, (unsigned long long)cnt, cause);
}

/* Calls that a case keeps open. */
struct flood {
	struct rpc_call calls[2000];
	unsigned cnt;
};

/* Makes calls until one is refused. */
static void flood_fill(struct rpc *r, struct flood *f, size_t len, size_t resp_max)
{
	for (;; f->cnt++) {
		FT_CHECK(f->cnt < FT_CNT(f->calls), "no call is refused");
		rpc_call_init(&f->calls[f->cnt], f->cnt, resp_max / 2, resp_max);
		if (rpc_call_try(r, &f->calls[f->cnt], len, 0))
			break;
	}
	ft_buf_free(f->calls[f->cnt].resp);
}

/* Waits for the end of the shortage, after which the next call is accepted at once. */
static void flood_goes_on(struct rpc *r, struct flood *f, int cause, size_t len, size_t resp_max)
{
	double deadline = ft_deadline(&r->fab);
	int now;

	while ((now = shortage(r, len, resp_max)) != FI_COPYRPC_SHORT_NONE) {
		FT_CHECK(now > 0, "fi_copyrpc_shortage: %s", ft_err_name(now));
		ft_again(&r->fab, deadline);
	}
	rpc_call_init(&f->calls[f->cnt], f->cnt, resp_max / 2, resp_max);
	FT_RET(rpc_call_try(r, &f->calls[f->cnt++], len, 0), 0);
	check_refused(r, cause, 1);
}

static void flood_finish(struct rpc *r, struct flood *f)
{
	for (unsigned i = 0; i < f->cnt; i++)
		rpc_call_finish(r, &f->calls[i]);
}

/* Credit: large responses of a callee that serves nothing. Space: its receive buffer is full. */
void rpc_run_shortage(struct ft *ft)
{
	static struct flood flood;
	int cause = ft->test->arg;
	size_t len = RPC_LEAST, resp_max = 0;
	struct fi_copyrpc_limits limits;
	unsigned total;
	struct rpc r;

	rpc_begin(&r, ft);
	if (cause == FI_COPYRPC_SHORT_CONNECTION && !r.fab.av)
		ft_notrun("the endpoint is connected");
	if (ft->rank == 0) {
		flood.cnt = 0;
		if (cause != FI_COPYRPC_SHORT_CONNECTION) {
			limits = connect_peer(&r);
			if (cause == FI_COPYRPC_SHORT_CREDIT)
				resp_max = limits.max_response;
			else
				len = limits.max_request < 4000 ? limits.max_request : 4000;
		} else {
			len = 32000;
		}
		check_refused(&r, cause, 0);
		flood_fill(&r, &flood, len, resp_max);
		FT_RET(shortage(&r, len, resp_max), cause);
		check_refused(&r, cause, 1);
		total = flood.cnt + 1;
		ft_tell(ft, 1, &total, sizeof(total));
		flood_goes_on(&r, &flood, cause, len, resp_max);
		flood_finish(&r, &flood);
	} else {
		ft_hear(ft, 0, &total, sizeof(total));
		rpc_serve_until(&r, total);
	}
	rpc_end(&r);
}

/* Messages that found no space wait to be sent, and calls do not overtake them. */
void rpc_run_shortage_queue(struct ft *ft)
{
	enum { MOST = 2000, LEN = 1000 };
	static struct ft_op *ops[MOST];
	static struct flood flood;
	uint8_t *buf = calloc(1, LEN);
	unsigned cnt = 0;
	struct rpc r;

	rpc_begin(&r, ft);
	if (ft->rank == 0) {
		flood.cnt = 0;
		connect_peer(&r);
		while (shortage(&r, RPC_LEAST, 8) != FI_COPYRPC_SHORT_QUEUE) {
			FT_CHECK(cnt < MOST, "%u messages do not fill the connection", cnt);
			ops[cnt] = ft_op_new(&r.fab, FT_ONE);
			FT_OK(ft_send(&r.fab, FT_PLAIN,
				      &(struct ft_msg){
					      .buf = buf, .len = LEN, .rank = 1, .op = ops[cnt] }));
			cnt++;
		}
		rpc_call_init(&flood.calls[0], 0, 4, 8);
		FT_RET(rpc_call_try(&r, &flood.calls[0], RPC_LEAST, 0), -FI_EAGAIN);
		ft_buf_free(flood.calls[0].resp);
		check_refused(&r, FI_COPYRPC_SHORT_QUEUE, 1);
		ft_tell(ft, 1, &cnt, sizeof(cnt));
		flood_goes_on(&r, &flood, FI_COPYRPC_SHORT_QUEUE, RPC_LEAST, 8);
		flood_finish(&r, &flood);
		for (unsigned i = 0; i < cnt; i++)
			ft_wait_good(&r.fab, ops[i]);
	} else {
		ft_hear(ft, 0, &cnt, sizeof(cnt));
		for (unsigned i = 0; i < cnt; i++)
			ft_wait_good(&r.fab, ft_recv_post(&r.fab, false, 0, buf, LEN));
		rpc_serve_until(&r, 1);
	}
	rpc_end(&r);
	free(buf);
}

/* Checks that what is longer than the limits is refused. */
static void check_limits(struct rpc *r)
{
	struct fi_copyrpc_limits limits = connect_peer(r);
	fi_addr_t to = r->fab.addr[1];
	uint8_t *buf;

	FT_CHECK(limits.max_request && limits.max_response, "limits of 0");
	buf = calloc(1, limits.max_request + 1);
	FT_ROW(fi_copyrpc_call(r->ops, r->fab.ep, buf, limits.max_request + 1, buf, 8, to, NULL, 0),
	       -FI_EMSGSIZE);
	FT_ROW(fi_copyrpc_call(r->ops, r->fab.ep, buf, 8, buf, limits.max_response + 1, to, NULL,
			       0),
	       -FI_EMSGSIZE);
	free(buf);
}

void rpc_run_limits(struct ft *ft)
{
	enum { MOST = 500 };
	static struct rpc_call calls[MOST];
	ssize_t room = 0;
	double deadline;
	struct rpc r;

	rpc_begin(&r, ft);
	deadline = ft_deadline(&r.fab);
	if (ft->rank == 0) {
		check_limits(&r);
		while ((room = fi_copyrpc_room(r.ops, r.fab.ep, r.fab.addr[1], 64, 64)) ==
		       -FI_EAGAIN)
			ft_again(&r.fab, deadline);
		FT_CHECK(room > 0, "room for %zd calls", room);
		room = room < MOST ? room : MOST;
		for (ssize_t i = 0; i < room; i++) { /* sure to be accepted */
			rpc_call_init(&calls[i], (uint32_t)i, 64, 64);
			FT_RET(rpc_call_try(&r, &calls[i], 64, 0), 0);
		}
		ft_tell(ft, 1, &room, sizeof(room));
		for (ssize_t i = 0; i < room; i++)
			rpc_call_finish(&r, &calls[i]);
	} else {
		ft_hear(ft, 0, &room, sizeof(room));
		rpc_serve_until(&r, (unsigned)room);
	}
	rpc_end(&r);
}
