/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote procedure calls, the extension of copyrpc: every call ends once, with its own response,
 * for any order, size, load and fate of the other side.
 *
 * Written from rdma/fi_ext_copyrpc.h and fi_copyrpc_rpc(3). Other providers: notrun.
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"
#include "common/ft_op.h"

#include <rdma/fi_ext_copyrpc.h>
#include <signal.h>
#include <unistd.h>

#define BATCH 64

struct rpc {
	struct ft_fab fab;
	struct fi_copyrpc_ops *ops;
	uint64_t rng;
	unsigned served;
};

static uint32_t roll(struct rpc *r, uint32_t below)
{
	r->rng = r->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(r->rng >> 33) % below;
}

static void begin(struct rpc *r, struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG };

	*r = (struct rpc){ .rng = ft->opts->seed + (uint64_t)ft->rank };
	ft_fab_open(&r->fab, ft, &want);
	if (fi_copyrpc_open(&r->fab.ep->fid, &r->ops))
		ft_notrun("no remote procedure calls");
	ft_sync(ft);
}

static void end(struct rpc *r)
{
	ft_quiet(&r->fab, 0.02);
	FT_CHECK(!ft_open_ops(&r->fab), "%u calls never ended", ft_open_ops(&r->fab));
	ft_sync(r->fab.ft);
	ft_fab_close(&r->fab);
}

/* Contents of a request: key and length of the wanted response, then the key's bytes. */
struct question {
	uint32_t key, resp_len;
};

#define LEAST sizeof(struct question)

struct call {
	struct ft_op *op;
	uint8_t *resp;
	size_t resp_max;
	struct question q;
};

/* Starts a call. Returns 0 or -FI_EAGAIN. */
static ssize_t call_try(struct rpc *r, struct call *c, size_t len, uint64_t flags)
{
	uint8_t *buf = ft_buf_new(len);
	ssize_t ret;

	ft_fill(buf, len, c->q.key);
	memcpy(buf, &c->q, sizeof(c->q));
	c->op = ft_op_new(&r->fab, FT_ONE);
	ret = fi_copyrpc_call(r->ops, r->fab.ep, buf, len,
			      flags & FI_COPYRPC_RETAIN ? NULL : c->resp, c->resp_max,
			      r->fab.addr[!r->fab.ft->rank], &c->op->context, flags);
	ft_buf_free(buf); /* free on return */
	FT_CHECK(!ret || ret == -FI_EAGAIN, "a call returns %zd (%s)", ret, ft_err_name(ret));
	if (ret)
		ft_op_put(&r->fab, c->op);
	return ret;
}

static void call_init(struct call *c, uint32_t key, size_t resp_len, size_t resp_max)
{
	c->q = (struct question){ key, (uint32_t)resp_len };
	c->resp_max = resp_max;
	c->resp = ft_buf_new(resp_max);
}

static void serve(struct rpc *r);

static void call_start(struct rpc *r, struct call *c, uint32_t key, size_t len, size_t resp_len,
		       size_t resp_max)
{
	double deadline = ft_deadline(&r->fab);

	call_init(c, key, resp_len, resp_max);
	while (call_try(r, c, len, 0)) {
		serve(r);
		ft_again(&r->fab, deadline);
	}
}

static void call_finish(struct rpc *r, struct call *c)
{
	double deadline = ft_deadline(&r->fab);

	while (!c->op->seen) {
		serve(r);
		ft_poll(&r->fab);
		FT_CHECK(ft_now() < deadline, "a call has no response");
	}
	FT_CHECK(!c->op->err, "a call ended with %s", ft_err_name(c->op->err));
	FT_CHECK(c->op->flags & FI_COPYRPC_CALL, "flags %#llx", (unsigned long long)c->op->flags);
	FT_CHECK(c->op->len == c->q.resp_len, "a response of %zu bytes, expected %u", c->op->len,
		 c->q.resp_len);
	FT_CHECK(ft_wrong(c->resp, c->op->len, ~c->q.key) < 0, "another call's response");
	ft_buf_check(c->resp, c->resp_max, c->op->len);
	ft_op_put(&r->fab, c->op);
	ft_buf_free(c->resp);
}

/* ---- callee ---- */

static struct question read_request(const struct fi_copyrpc_request *req)
{
	struct question q;

	FT_CHECK(req->len >= LEAST, "a request of %zu bytes", req->len);
	memcpy(&q, req->data, sizeof(q));
	FT_CHECK(ft_wrong_from((const uint8_t *)req->data + LEAST, req->len - LEAST, q.key, LEAST) <
			 0,
		 "a request's bytes are wrong");
	FT_CHECK(q.resp_len <= req->resp_max, "a maximum response of %zu, expected at least %u",
		 req->resp_max, q.resp_len);
	return q;
}

static void reply(struct rpc *r, const struct fi_copyrpc_request *req, struct question q,
		  uint64_t flags)
{
	uint8_t *buf = ft_buf_new(q.resp_len);

	ft_fill(buf, q.resp_len, ~q.key);
	FT_OK(fi_copyrpc_reply(r->ops, r->fab.ep, req, buf, q.resp_len, flags));
	ft_buf_free(buf);
	r->served++;
}

/* Takes the requests that are there, and replies in any order. */
static void serve(struct rpc *r)
{
	struct fi_copyrpc_request reqs[BATCH];
	ssize_t cnt = fi_copyrpc_recv(r->ops, r->fab.ep, reqs, BATCH, 0);

	FT_CHECK(cnt > 0 || cnt == -FI_EAGAIN, "fi_copyrpc_recv: %zd", cnt);
	while (cnt > 0) {
		ssize_t at = (ssize_t)roll(r, (uint32_t)cnt);
		struct question q = read_request(&reqs[at]);

		if (!roll(r, 4))
			FT_OK(fi_copyrpc_release(r->ops, r->fab.ep, &reqs[at]));
		reply(r, &reqs[at], q, 0);
		reqs[at] = reqs[--cnt];
	}
}

static void serve_until(struct rpc *r, unsigned cnt)
{
	double deadline = ft_deadline(&r->fab);

	while (r->served < cnt) {
		serve(r);
		FT_CHECK(ft_now() < deadline, "%u of %u requests came", r->served, cnt);
	}
}

static size_t take_all(struct rpc *r, struct fi_copyrpc_request *reqs, size_t cnt)
{
	double deadline = ft_deadline(&r->fab);
	size_t have = 0;

	while (have < cnt) {
		ssize_t got = fi_copyrpc_recv(r->ops, r->fab.ep, reqs + have, cnt - have, 0);

		FT_CHECK(got > 0 || got == -FI_EAGAIN, "fi_copyrpc_recv: %zd", got);
		have += got > 0 ? (size_t)got : 0;
		FT_CHECK(ft_now() < deadline, "%zu of %zu requests came", have, cnt);
	}
	return have;
}

/* ---- cases ---- */

static void run_sizes(struct ft *ft)
{
	static const size_t lens[] = { LEAST, 9, 63, 255, 256, 1000, 2000 };
	unsigned cnt = FT_CNT(lens) * FT_CNT(lens);
	struct rpc r;

	begin(&r, ft);
	for (unsigned i = 0; ft->rank == 0 && i < cnt; i++) {
		size_t resp_max = lens[i % FT_CNT(lens)];
		struct call c;

		call_start(&r, &c, i, lens[i / FT_CNT(lens)],
			   i % 3   ? resp_max
			   : i % 2 ? 0
				   : resp_max / 2,
			   resp_max);
		call_finish(&r, &c);
	}
	if (ft->rank == 1)
		serve_until(&r, cnt);
	end(&r);
}

/* Both sides call and serve: many calls in flight, replies in any order. */
static void run_both(struct ft *ft)
{
	enum { FLIGHT = 50 };
	unsigned rounds = ft->opts->iterations ? (unsigned)ft->opts->iterations : 40;
	static struct call calls[FLIGHT];
	struct rpc r;

	begin(&r, ft);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < FLIGHT; i++) {
			size_t resp_max = roll(&r, 1200);

			call_start(&r, &calls[i], round * FLIGHT + i,
				   LEAST + roll(&r, roll(&r, 5) ? 100 : 1500),
				   roll(&r, (uint32_t)resp_max + 1), resp_max);
		}
		for (unsigned i = 0; i < FLIGHT; i++)
			call_finish(&r, &calls[FLIGHT - 1 - i]);
	}
	serve_until(&r, rounds * FLIGHT);
	end(&r);
}

/* Requests arrive in the order of sending; replies are sent in reverse. */
static void run_order(struct ft *ft)
{
	enum { CNT = 32 };
	struct fi_copyrpc_request reqs[CNT];
	struct call calls[CNT];
	struct rpc r;

	begin(&r, ft);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++)
		call_start(&r, &calls[i], i, 20 + i, i, 40);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++)
		call_finish(&r, &calls[i]);
	if (ft->rank == 1) {
		take_all(&r, reqs, CNT);
		for (uint32_t i = 0; i < CNT; i++) {
			FT_CHECK(read_request(&reqs[i]).key == i, "request %u is not the next",
				 read_request(&reqs[i]).key);
			FT_CHECK(reqs[i].len == 20 + i && reqs[i].resp_max >= 40,
				 "len %zu, maximum %zu", reqs[i].len, reqs[i].resp_max);
			FT_CHECK(!r.fab.av || reqs[i].src_addr == r.fab.addr[0], "from %llu",
				 (unsigned long long)reqs[i].src_addr);
		}
		for (uint32_t i = CNT; i-- > 0;)
			reply(&r, &reqs[i], read_request(&reqs[i]), i % 3 ? FI_MORE : 0);
		FT_OK(fi_copyrpc_flush(r.ops, r.fab.ep, FI_ADDR_UNSPEC));
	}
	end(&r);
}

static void run_resp_max(struct ft *ft)
{
	struct fi_copyrpc_request req;
	uint8_t buf[200] = { 0 };
	struct call c;
	struct rpc r;

	begin(&r, ft);
	for (size_t resp_max = 0; resp_max < 150; resp_max += 50) {
		if (ft->rank == 0) {
			call_start(&r, &c, 5, 30, resp_max, resp_max);
			call_finish(&r, &c);
			continue;
		}
		take_all(&r, &req, 1);
		FT_ROW(fi_copyrpc_reply(r.ops, r.fab.ep, &req, buf, req.resp_max + 1, 0),
		       -FI_EMSGSIZE);
		reply(&r, &req, read_request(&req), 0); /* the reply is still due */
	}
	end(&r);
}

/* Calls until no more are accepted, while the callee makes no progress. No call may be lost. */
static void run_flood(struct ft *ft)
{
	enum { MOST = 2000 };
	static struct call calls[MOST];
	unsigned cnt = 0;
	struct rpc r;

	begin(&r, ft);
	if (ft->rank == 0) {
		double stop = ft_now() + 1;

		while (cnt < MOST && (cnt < 2 || ft_now() < stop)) {
			call_init(&calls[cnt], cnt, 100, 100);
			if (!call_try(&r, &calls[cnt], 100, 0)) {
				cnt++;
				continue;
			}
			ft_buf_free(calls[cnt].resp);
			ft_poll(&r.fab);
		}
		ft_tell(ft, 1, &cnt, sizeof(cnt));
		for (unsigned i = 0; i < cnt; i++)
			call_finish(&r, &calls[i]);
		FT_CHECK(cnt > 1, "%u calls were accepted", cnt);
	} else {
		sleep(1); /* no progress */
		ft_hear(ft, 0, &cnt, sizeof(cnt));
		serve_until(&r, cnt);
	}
	end(&r);
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
	struct call calls[2000];
	unsigned cnt;
};

/* Makes calls until one is refused. */
static void flood_fill(struct rpc *r, struct flood *f, size_t len, size_t resp_max)
{
	for (;; f->cnt++) {
		FT_CHECK(f->cnt < FT_CNT(f->calls), "no call is refused");
		call_init(&f->calls[f->cnt], f->cnt, resp_max / 2, resp_max);
		if (call_try(r, &f->calls[f->cnt], len, 0))
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
	call_init(&f->calls[f->cnt], f->cnt, resp_max / 2, resp_max);
	FT_RET(call_try(r, &f->calls[f->cnt++], len, 0), 0);
	check_refused(r, cause, 1);
}

static void flood_finish(struct rpc *r, struct flood *f)
{
	for (unsigned i = 0; i < f->cnt; i++)
		call_finish(r, &f->calls[i]);
}

/* Credit: large responses of a callee that serves nothing. Space: its receive buffer is full. */
static void run_shortage(struct ft *ft)
{
	static struct flood flood;
	int cause = ft->test->arg;
	size_t len = LEAST, resp_max = 0;
	struct fi_copyrpc_limits limits;
	unsigned total;
	struct rpc r;

	begin(&r, ft);
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
		serve_until(&r, total);
	}
	end(&r);
}

/* Messages that found no space wait to be sent, and calls do not overtake them. */
static void run_shortage_queue(struct ft *ft)
{
	enum { MOST = 2000, LEN = 1000 };
	static struct ft_op *ops[MOST];
	static struct flood flood;
	uint8_t *buf = calloc(1, LEN);
	unsigned cnt = 0;
	struct rpc r;

	begin(&r, ft);
	if (ft->rank == 0) {
		flood.cnt = 0;
		connect_peer(&r);
		while (shortage(&r, LEAST, 8) != FI_COPYRPC_SHORT_QUEUE) {
			FT_CHECK(cnt < MOST, "%u messages do not fill the connection", cnt);
			ops[cnt] = ft_op_new(&r.fab, FT_ONE);
			FT_OK(ft_send(&r.fab, FT_PLAIN,
				      &(struct ft_msg){
					      .buf = buf, .len = LEN, .rank = 1, .op = ops[cnt] }));
			cnt++;
		}
		call_init(&flood.calls[0], 0, 4, 8);
		FT_RET(call_try(&r, &flood.calls[0], LEAST, 0), -FI_EAGAIN);
		ft_buf_free(flood.calls[0].resp);
		check_refused(&r, FI_COPYRPC_SHORT_QUEUE, 1);
		ft_tell(ft, 1, &cnt, sizeof(cnt));
		flood_goes_on(&r, &flood, FI_COPYRPC_SHORT_QUEUE, LEAST, 8);
		flood_finish(&r, &flood);
		for (unsigned i = 0; i < cnt; i++)
			ft_wait_good(&r.fab, ops[i]);
	} else {
		ft_hear(ft, 0, &cnt, sizeof(cnt));
		for (unsigned i = 0; i < cnt; i++)
			ft_wait_good(&r.fab, ft_recv_post(&r.fab, false, 0, buf, LEN));
		serve_until(&r, 1);
	}
	end(&r);
	free(buf);
}

static void run_limits(struct ft *ft)
{
	enum { MOST = 500 };
	static struct call calls[MOST];
	struct fi_copyrpc_limits limits;
	uint8_t *buf;
	ssize_t room = 0;
	double deadline;
	struct rpc r;
	int ret;

	begin(&r, ft);
	deadline = ft_deadline(&r.fab);
	if (ft->rank == 0) {
		fi_addr_t to = r.fab.addr[1];

		while ((ret = fi_copyrpc_query(r.ops, r.fab.ep, to, &limits)) == -FI_EAGAIN)
			ft_again(&r.fab, deadline);
		FT_OK(ret);
		FT_CHECK(limits.max_request && limits.max_response, "limits of 0");
		buf = calloc(1, limits.max_request + 1);
		FT_ROW(fi_copyrpc_call(r.ops, r.fab.ep, buf, limits.max_request + 1, buf, 8, to,
				       NULL, 0),
		       -FI_EMSGSIZE);
		FT_ROW(fi_copyrpc_call(r.ops, r.fab.ep, buf, 8, buf, limits.max_response + 1, to,
				       NULL, 0),
		       -FI_EMSGSIZE);
		free(buf);
		while ((room = fi_copyrpc_room(r.ops, r.fab.ep, to, 64, 64)) == -FI_EAGAIN)
			ft_again(&r.fab, deadline);
		FT_CHECK(room > 0, "room for %zd calls", room);
		room = room < MOST ? room : MOST;
		for (ssize_t i = 0; i < room; i++) { /* sure to be accepted */
			call_init(&calls[i], (uint32_t)i, 64, 64);
			FT_RET(call_try(&r, &calls[i], 64, 0), 0);
		}
		ft_tell(ft, 1, &room, sizeof(room));
		for (ssize_t i = 0; i < room; i++)
			call_finish(&r, &calls[i]);
	} else {
		ft_hear(ft, 0, &room, sizeof(room));
		serve_until(&r, (unsigned)room);
	}
	end(&r);
}

static void run_retain(struct ft *ft)
{
	enum { CNT = 200, HELD = 8 };
	uint64_t retained[HELD] = { 0 };
	struct rpc r;

	begin(&r, ft);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++) {
		double deadline = ft_deadline(&r.fab);
		struct call c;

		call_init(&c, i, i % 100, 100);
		while (call_try(&r, &c, 50, FI_COPYRPC_RETAIN))
			ft_again(&r.fab, deadline);
		ft_wait(&r.fab, c.op);
		FT_CHECK(!c.op->err && c.op->flags & FI_COPYRPC_RETAIN, "error %d, flags %#llx",
			 c.op->err, (unsigned long long)c.op->flags);
		FT_CHECK(c.op->len == i % 100, "%zu bytes", c.op->len);
		FT_CHECK(ft_wrong(c.op->buf, c.op->len, ~i) < 0, "another call's response");
		ft_buf_check(c.resp, 100, 0);
		if (i >= HELD)
			FT_OK(fi_copyrpc_release_response(r.ops, r.fab.ep, retained[i % HELD]));
		retained[i % HELD] = c.op->data;
		ft_op_put(&r.fab, c.op);
		ft_buf_free(c.resp);
	}
	for (int i = 0; ft->rank == 0 && i < HELD; i++)
		FT_OK(fi_copyrpc_release_response(r.ops, r.fab.ep, retained[i]));
	if (ft->rank == 1)
		serve_until(&r, CNT);
	end(&r);
}

/* The callee dies: the caller's calls end. Or the caller dies: the callee's replies fail. */
static void run_killed(struct ft *ft)
{
	enum { CNT = 20 };
	struct fi_copyrpc_request reqs[CNT];
	bool caller_dies = ft->test->arg;
	struct call calls[CNT];
	double deadline;
	struct rpc r;

	begin(&r, ft);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++)
		call_start(&r, &calls[i], i, 30, 10, 10);
	if (ft->rank == 1)
		take_all(&r, reqs, CNT);
	ft_sync(ft);
	if (ft->rank == (caller_dies ? 0 : 1))
		pause();
	ft_signal(ft, !ft->rank, SIGKILL);
	for (int i = 0; !caller_dies && i < CNT; i++)
		ft_wait_bad(&r.fab, calls[i].op, FI_ECONNRESET);
	deadline = ft_deadline(&r.fab);
	for (int i = 0; caller_dies && i < CNT; i++) {
		/* bytes are valid until the reply */
		struct question q = read_request(&reqs[i]);
		ssize_t ret = fi_copyrpc_reply(r.ops, r.fab.ep, &reqs[i], &q, 8, 0);

		FT_CHECK(!ret || ret == -FI_ECONNRESET, "a reply to a dead caller: %zd", ret);
		FT_CHECK(ft_now() < deadline, "replies to a dead caller take for ever");
	}
	ft_quiet(&r.fab, 0.1);
	ft_fab_close(&r.fab);
}

/* A cancelled call ends once: cancelled, or with its response. */
static void run_cancel(struct ft *ft)
{
	enum { CNT = 30 };
	struct call calls[CNT];
	unsigned good = 0;
	struct rpc r;

	begin(&r, ft);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++)
		call_start(&r, &calls[i], i, 30, 10, 10);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i += 2)
		fi_cancel(&r.fab.ep->fid, &calls[i].op->context);
	ft_sync(ft);
	if (ft->rank == 1)
		serve_until(&r, CNT - CNT / 2);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++) {
		ft_wait(&r.fab, calls[i].op);
		good += !calls[i].op->err;
		FT_CHECK(!calls[i].op->err || (calls[i].op->err == FI_ECANCELED && i % 2 == 0),
			 "call %u ended with %s", i, ft_err_name(calls[i].op->err));
		ft_op_put(&r.fab, calls[i].op);
	}
	FT_CHECK(ft->rank || good >= CNT / 2, "%u calls had a response", good);
	for (double stop = ft_now() + 0.2; ft->rank == 1 && ft_now() < stop;)
		serve(&r);
	end(&r);
}

static const struct ft_case cases[] = {
	FT_CASE("sizes", run_sizes, "Requests and responses of all sizes arrive whole."),
	FT_CASE("order", run_order, "Requests come in order; replies leave in any order."),
	FT_CASE("both", run_both, "Both sides call and reply: every call has its own response."),
	FT_CASE("resp-max", run_resp_max,
		"A response beyond the maximum is -FI_EMSGSIZE, and may be sent again."),
	FT_CASE("limits", run_limits, "fi_copyrpc_query and fi_copyrpc_room keep their word."),
	FT_CASE("flood", run_flood, "-FI_EAGAIN when there is no credit; nothing is lost."),
	FT_CASE("shortage-credit", run_shortage, "Without credit for a response a call says so.",
		.arg = FI_COPYRPC_SHORT_CREDIT),
	FT_CASE("shortage-space", run_shortage, "Without space at the callee a call says so.",
		.arg = FI_COPYRPC_SHORT_SPACE),
	FT_CASE("shortage-connection", run_shortage,
		"Calls wait for a connection up to a limit, and say so beyond it.",
		.arg = FI_COPYRPC_SHORT_CONNECTION),
	FT_CASE("shortage-queue", run_shortage_queue,
		"A call behind messages that wait to be sent says so."),
	FT_CASE("retain", run_retain,
		"A retained response stays where it arrived until it is released."),
	FT_CASE("cancel", run_cancel, "A cancelled call ends once."),
	FT_CASE("callee-killed", run_killed, "Calls to a dead peer end with FI_ECONNRESET.",
		.victims = 2, .local = true),
	FT_CASE("caller-killed", run_killed, "A dead caller's requests can still be replied to.",
		.victims = 1, .local = true, .arg = 1),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Every call has one response, its own.", cases, FT_CNT(cases));
}
