/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote procedure calls, the extension of copyrpc: every call ends once, with its own response,
 * for any order, size, load and fate of the other side.
 *
 * The cases here are about the contents, order and end of calls; rpc_room.c has those about how
 * many of them are accepted. Written from rdma/fi_ext_copyrpc.h and fi_copyrpc_rpc(3); with other
 * providers the cases are notrun.
 */
#include <signal.h>
#include <unistd.h>

#include "common/ft_data.h"
#include "functional/rpc_pair.h"
#include "functional/rpc_room.h"

static void run_sizes(struct ft *ft)
{
	static const size_t lens[] = { RPC_LEAST, 9, 63, 255, 256, 1000, 2000 };
	unsigned cnt = FT_CNT(lens) * FT_CNT(lens);
	struct rpc r;

	rpc_begin(&r, ft);
	for (unsigned i = 0; ft->rank == 0 && i < cnt; i++) {
		size_t resp_max = lens[i % FT_CNT(lens)];
		struct rpc_call c;

		rpc_call_start(&r, &c, i, lens[i / FT_CNT(lens)],
			       i % 3   ? resp_max
			       : i % 2 ? 0
				       : resp_max / 2,
			       resp_max);
		rpc_call_finish(&r, &c);
	}
	if (ft->rank == 1)
		rpc_serve_until(&r, cnt);
	rpc_end(&r);
}

/* Both sides call and serve: many calls in flight, replies in any order. */
static void run_both(struct ft *ft)
{
	enum { FLIGHT = 50 };
	unsigned rounds = ft->opts->iterations ? (unsigned)ft->opts->iterations : 40;
	static struct rpc_call calls[FLIGHT];
	struct rpc r;

	rpc_begin(&r, ft);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < FLIGHT; i++) {
			size_t resp_max = rpc_roll(&r, 1200);

			rpc_call_start(&r, &calls[i], round * FLIGHT + i,
				       RPC_LEAST + rpc_roll(&r, rpc_roll(&r, 5) ? 100 : 1500),
				       rpc_roll(&r, (uint32_t)resp_max + 1), resp_max);
		}
		for (unsigned i = 0; i < FLIGHT; i++)
			rpc_call_finish(&r, &calls[FLIGHT - 1 - i]);
	}
	rpc_serve_until(&r, rounds * FLIGHT);
	rpc_end(&r);
}

/* Requests arrive in the order of sending; replies are sent in reverse. */
static void run_order(struct ft *ft)
{
	enum { CNT = 32 };
	struct fi_copyrpc_request reqs[CNT];
	struct rpc_call calls[CNT];
	struct rpc r;

	rpc_begin(&r, ft);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++)
		rpc_call_start(&r, &calls[i], i, 20 + i, i, 40);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++)
		rpc_call_finish(&r, &calls[i]);
	if (ft->rank == 1) {
		rpc_take_all(&r, reqs, CNT);
		for (uint32_t i = 0; i < CNT; i++) {
			FT_CHECK(rpc_read_request(&reqs[i]).key == i, "request %u is not the next",
				 rpc_read_request(&reqs[i]).key);
			FT_CHECK(reqs[i].len == 20 + i && reqs[i].resp_max >= 40,
				 "len %zu, maximum %zu", reqs[i].len, reqs[i].resp_max);
			FT_CHECK(!r.fab.av || reqs[i].src_addr == r.fab.addr[0], "from %llu",
				 (unsigned long long)reqs[i].src_addr);
		}
		for (uint32_t i = CNT; i-- > 0;)
			rpc_reply(&r, &reqs[i], rpc_read_request(&reqs[i]), i % 3 ? FI_MORE : 0);
		FT_OK(fi_copyrpc_flush(r.ops, r.fab.ep, FI_ADDR_UNSPEC));
	}
	rpc_end(&r);
}

static void run_resp_max(struct ft *ft)
{
	struct fi_copyrpc_request req;
	uint8_t buf[200] = { 0 };
	struct rpc_call c;
	struct rpc r;

	rpc_begin(&r, ft);
	for (size_t resp_max = 0; resp_max < 150; resp_max += 50) {
		if (ft->rank == 0) {
			rpc_call_start(&r, &c, 5, 30, resp_max, resp_max);
			rpc_call_finish(&r, &c);
			continue;
		}
		rpc_take_all(&r, &req, 1);
		FT_ROW(fi_copyrpc_reply(r.ops, r.fab.ep, &req, buf, req.resp_max + 1, 0),
		       -FI_EMSGSIZE);
		rpc_reply(&r, &req, rpc_read_request(&req), 0); /* the reply is still due */
	}
	rpc_end(&r);
}

static void run_retain(struct ft *ft)
{
	enum { CNT = 200, HELD = 8 };
	uint64_t retained[HELD] = { 0 };
	struct rpc r;

	rpc_begin(&r, ft);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++) {
		double deadline = ft_deadline(&r.fab);
		struct rpc_call c;

		rpc_call_init(&c, i, i % 100, 100);
		while (rpc_call_try(&r, &c, 50, FI_COPYRPC_RETAIN))
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
		rpc_serve_until(&r, CNT);
	rpc_end(&r);
}

/* The callee dies: the caller's calls end. Or the caller dies: the callee's replies fail. */
static void run_killed(struct ft *ft)
{
	enum { CNT = 20 };
	struct fi_copyrpc_request reqs[CNT];
	bool caller_dies = ft->test->arg;
	struct rpc_call calls[CNT];
	double deadline;
	struct rpc r;

	rpc_begin(&r, ft);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++)
		rpc_call_start(&r, &calls[i], i, 30, 10, 10);
	if (ft->rank == 1)
		rpc_take_all(&r, reqs, CNT);
	ft_sync(ft);
	if (ft->rank == (caller_dies ? 0 : 1))
		pause();
	ft_signal(ft, !ft->rank, SIGKILL);
	for (int i = 0; !caller_dies && i < CNT; i++)
		ft_wait_bad(&r.fab, calls[i].op, FI_ECONNRESET);
	deadline = ft_deadline(&r.fab);
	for (int i = 0; caller_dies && i < CNT; i++) {
		/* bytes are valid until the reply */
		struct rpc_question q = rpc_read_request(&reqs[i]);
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
	struct rpc_call calls[CNT];
	unsigned good = 0;
	struct rpc r;

	rpc_begin(&r, ft);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++)
		rpc_call_start(&r, &calls[i], i, 30, 10, 10);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i += 2)
		fi_cancel(&r.fab.ep->fid, &calls[i].op->context);
	ft_sync(ft);
	if (ft->rank == 1)
		rpc_serve_until(&r, CNT - CNT / 2);
	for (uint32_t i = 0; ft->rank == 0 && i < CNT; i++) {
		ft_wait(&r.fab, calls[i].op);
		good += !calls[i].op->err;
		FT_CHECK(!calls[i].op->err || (calls[i].op->err == FI_ECANCELED && i % 2 == 0),
			 "call %u ended with %s", i, ft_err_name(calls[i].op->err));
		ft_op_put(&r.fab, calls[i].op);
	}
	FT_CHECK(ft->rank || good >= CNT / 2, "%u calls had a response", good);
	for (double stop = ft_now() + 0.2; ft->rank == 1 && ft_now() < stop;)
		rpc_serve(&r);
	rpc_end(&r);
}

static const struct ft_case cases[] = {
	FT_CASE("sizes", run_sizes, "Requests and responses of all sizes arrive whole."),
	FT_CASE("order", run_order, "Requests come in order; replies leave in any order."),
	FT_CASE("both", run_both, "Both sides call and reply: every call has its own response."),
	FT_CASE("resp-max", run_resp_max,
		"A response beyond the maximum is -FI_EMSGSIZE, and may be sent again."),
	FT_CASE("limits", rpc_run_limits, "fi_copyrpc_query and fi_copyrpc_room keep their word."),
	FT_CASE("flood", rpc_run_flood, "-FI_EAGAIN when there is no credit; nothing is lost."),
	FT_CASE("shortage-credit", rpc_run_shortage,
		"Without credit for a response a call says so.", .arg = FI_COPYRPC_SHORT_CREDIT),
	FT_CASE("shortage-space", rpc_run_shortage, "Without space at the callee a call says so.",
		.arg = FI_COPYRPC_SHORT_SPACE),
	FT_CASE("shortage-connection", rpc_run_shortage,
		"Calls wait for a connection up to a limit, and say so beyond it.",
		.arg = FI_COPYRPC_SHORT_CONNECTION),
	FT_CASE("shortage-queue", rpc_run_shortage_queue,
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
