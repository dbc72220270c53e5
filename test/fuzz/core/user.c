/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations of a fuzzer's endpoint: see user.h. */
#include "user.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <string.h>

#include "core/coll/core_coll.h"
#include "core/msg/core_rx.h"
#include "core/msg/core_tx.h"
#include "core/rma/core_atomic.h"
#include "core/rma/core_rma.h"
#include "core/rma/core_rma_lease.h"
#include "core/rpc/core_rpc.h"
#include "core/rpc/core_rpc_post.h"
#include "forge.h"
#include "side.h"

#define OPS     48u
#define HANDLES 16u
#define REGION  256u

/** Operation of the user. */
struct op {
	bool is_open;
	bool is_peek;
	bool claims;     /* likewise, with FI_CLAIM */
	bool is_claimed; /* the message found waits for core_rx_claim */
	bool is_multi;   /* ends with FI_MULTI_RECV */
	uint8_t *buf;
	size_t len;
};

struct script script;
static struct core_dom dom;
static struct core_ep ep;
static struct core_cq cq;
static struct op ops[OPS];
static struct {
	struct core_rpc_handle *handle;
	uint64_t seq;
} handles[HANDLES];
static struct core_mr region;
static struct core_coll_group group;

static uint64_t take(unsigned bytes)
{
	return script_take(&script, bytes);
}

/* ---- operations ---- */

static struct op *op_new(size_t len)
{
	for (struct op *op = ops; op < ops + OPS; op++) {
		if (op->is_open)
			continue;
		*op = (struct op){ .is_open = true, .buf = malloc(len ? len : 1), .len = len };
		CHECK(op->buf);
		memset(op->buf, 0x33, len);
		return op;
	}
	return NULL;
}

static void op_end(struct op *op)
{
	CHECK(op >= ops && op < ops + OPS && op->is_open);
	free(op->buf);
	op->is_open = false;
}

/** Takes the result of a post: without success there is no completion. */
static void op_posted(struct op *op, ssize_t ret)
{
	CHECK(ret <= 0);
	if (ret)
		op_end(op);
}

static size_t take_len(void)
{
	static const uint16_t lens[] = { 0, 1, 8, 100, 1000, 1001, 2048, 2500, 3000, 5000, 9000 };

	return lens[take(1) % (sizeof(lens) / sizeof(lens[0]))];
}

static fi_addr_t take_peer(void)
{
	return take(1) % SIDE_PEERS;
}

uint64_t user_tag(void)
{
	uint8_t b = (uint8_t)take(1);

	return (b & 3) | (b & 0x80 ? 1ull << 50 : 0);
}

static void user_recv(uint8_t how)
{
	struct op *op = op_new(take_len());
	struct iovec iov = { op ? op->buf : NULL, op ? op->len : 0 };
	struct core_recv r = { .src = how & 1 ? take_peer() : FI_ADDR_UNSPEC,
			       .iov = &iov,
			       .iov_cnt = 1,
			       .tag = how & 2 ? user_tag() : 0,
			       .ignore = how & 4 ? 3 : 0,
			       .context = op,
			       .flags = FI_COMPLETION,
			       .tagged = how & 2 };

	if (op)
		op_posted(op, core_rx_post(&ep, &r));
}

static void user_recv_multi(void)
{
	struct op *op = op_new(5000);
	struct iovec iov = { op ? op->buf : NULL, op ? op->len : 0 };
	struct core_recv r = { .src = FI_ADDR_UNSPEC,
			       .iov = &iov,
			       .iov_cnt = 1,
			       .context = op,
			       .flags = FI_COMPLETION | FI_MULTI_RECV };

	if (!op)
		return;
	op->is_multi = true;
	op_posted(op, core_rx_post(&ep, &r));
}

static void user_peek(uint8_t how)
{
	struct op *op = op_new(5000);
	struct core_recv r = { .src = FI_ADDR_UNSPEC,
			       .tag = user_tag(),
			       .ignore = how & 4 ? 3 : 0,
			       .context = op,
			       .flags = FI_COMPLETION | FI_PEEK,
			       .tagged = true };

	if (!op)
		return;
	op->is_peek = true;
	op->claims = how & 1;
	r.flags |= how & 1 ? FI_CLAIM : how & 2 ? FI_DISCARD : 0;
	op_posted(op, core_rx_peek(&ep, &r));
}

static void user_claim(uint8_t how)
{
	struct op *op = ops;
	struct iovec iov;
	struct core_recv r = { .iov = &iov,
			       .iov_cnt = 1,
			       .flags = FI_COMPLETION | FI_CLAIM | (how & 0x80 ? FI_DISCARD : 0),
			       .tagged = true };

	while (op < ops + OPS && !(op->is_open && op->is_claimed))
		op++;
	if (op == ops + OPS)
		return;
	iov = (struct iovec){ op->buf, op->len };
	r.context = op;
	op->is_claimed = op->claims = false;
	op->is_peek = how & 0x80; /* completes with the length of the message */
	CHECK(core_rx_claim(&ep, &r) <= 0);
}

static void user_send(uint8_t how)
{
	struct op *op = op_new(take_len());
	struct iovec iov = { op ? op->buf : NULL, op ? op->len : 0 };
	struct core_send s = { .dest = take_peer(),
			       .iov = &iov,
			       .iov_cnt = 1,
			       .len = iov.iov_len,
			       .tag = how & 2 ? user_tag() : 0,
			       .data = 77,
			       .context = op,
			       .flags = FI_COMPLETION | (how & 4 ? FI_DELIVERY_COMPLETE : 0) |
					(how & 8 ? FI_MATCH_COMPLETE : 0) |
					(how & 16 ? FI_REMOTE_CQ_DATA : 0),
			       .tagged = how & 2 };

	if (op)
		op_posted(op, core_tx_send(&ep, &s));
}

static void user_access(uint8_t how)
{
	struct op *op = op_new(take_len());
	struct iovec iov = { op ? op->buf : NULL, op ? op->len : 0 };
	struct fi_rma_iov rma = { .addr = take(1), .len = iov.iov_len, .key = take(1) };
	struct core_rma r = { .write = how & 1,
			      .peer = take_peer(),
			      .iov = &iov,
			      .iov_cnt = 1,
			      .len = iov.iov_len,
			      .rma_iov = &rma,
			      .rma_cnt = 1,
			      .context = op,
			      .flags = FI_COMPLETION | (how & 2 ? FI_DELIVERY_COMPLETE : 0) |
				       (how & 5 ? 0 : FI_FENCE) };

	if (op)
		op_posted(op, core_rma_post(&ep, &r));
}

static void user_atomic(uint8_t how)
{
	struct op *op = op_new(16);
	struct iovec operand = { op ? op->buf : NULL, 8 };
	struct iovec result = { op ? op->buf + 8 : NULL, 8 };
	struct fi_rma_iov rma = { .addr = take(1) & ~7ull, .len = 8, .key = take(1) };
	struct core_atomic a = { .kind = how & 1 ? CORE_ATOMIC_FETCH : CORE_ATOMIC_BASE,
				 .type = FI_UINT64,
				 .op = FI_SUM,
				 .peer = take_peer(),
				 .len = 8,
				 .operand = &operand,
				 .operand_cnt = 1,
				 .result = &result,
				 .result_cnt = how & 1,
				 .rma = &rma,
				 .rma_cnt = 1,
				 .context = op,
				 .flags = FI_COMPLETION };

	if (op)
		op_posted(op, core_atomic_post(&ep, &a));
}

static void user_call(uint8_t how)
{
	struct op *op = op_new(how * 4u);
	struct iovec iov = { op ? op->buf : NULL, op ? op->len / 2 : 0 };
	struct core_rpc_request ask = { .iov = &iov,
					.iov_cnt = 1,
					.len = iov.iov_len,
					.resp = op ? op->buf : NULL,
					.resp_max = op ? op->len : 0,
					.context = op,
					.comp_flags = FI_COMPLETION };

	if (op)
		op_posted(op, core_rpc_call(&ep, take_peer(), &ask));
}

static void user_reduce(uint8_t how)
{
	struct op *op = op_new(64);
	struct core_coll_args args = { .call = { .coll = how & 1 ? FI_ALLREDUCE : FI_ALLGATHER,
						 .buf = op ? op->buf : NULL,
						 .result = op ? op->buf + 8 : NULL,
						 .len = 8 },
				       .reduce =
					       how & 1 ? core_atomic_math(FI_UINT64, FI_SUM) : NULL,
				       .type = FI_UINT64,
				       .size = 8,
				       .context = op,
				       .flags = FI_COMPLETION };

	if (op)
		op_posted(op, core_coll_post(&group, &args));
}

static void user_cancel(uint8_t how)
{
	struct op *op = &ops[how % OPS];

	if (op->is_open && !op->is_claimed && core_rx_cancel(&ep, op))
		core_rpc_cancel(&ep, op);
}

/* ---- requests of peers ---- */

static void user_take(void)
{
	struct util_list *first = util_list_first(&ep.rpc.intake);

	for (unsigned i = 0; first && i < HANDLES; i++) {
		if (handles[i].handle)
			continue;
		core_rpc_pop_intake(&ep, first->next, 1);
		handles[i].handle = UTIL_CONTAINER_OF(first, struct core_rpc_handle, link);
		handles[i].seq = handles[i].handle->seq;
		return;
	}
}

static void user_respond(uint8_t how)
{
	static const uint8_t zeros[256];
	const struct iovec iov = { (void *)(uintptr_t)zeros, how };
	unsigned i = 0;

	while (i < HANDLES && !handles[i].handle)
		i++;
	if (i == HANDLES)
		return;
	if (how & 0x10 && core_rpc_release(&ep, handles[i].handle, handles[i].seq))
		return;
	if (!core_rpc_reply(&ep, handles[i].handle, handles[i].seq, &iov, 1, how, 0))
		handles[i].handle = NULL;
}

/* ---- completions ---- */

/** Ends an operation. A peek that claims a message stays until the claim has ended, too. */
static void take_completion(struct op *op, const struct core_cqe *cqe)
{
	CHECK(op >= ops && op < ops + OPS && op->is_open && !op->is_claimed);
	CHECK(cqe->err || op->is_peek || !(cqe->e.flags & FI_RECV) || cqe->e.len <= op->len);
	op->is_claimed = !cqe->err && op->is_peek && op->claims;
	op->is_peek = false;
	if (!op->is_claimed && (!op->is_multi || (cqe->e.flags & FI_MULTI_RECV)))
		op_end(op);
}

static void take_completions(void)
{
	struct fi_cq_err_entry err;
	struct core_cqe *front;

	while ((front = core_cq_front(&cq))) {
		struct core_cqe cqe = *front;
		struct op *op = cqe.e.op_context;

		if (cqe.err) {
			CHECK(core_cq_read_err(&cq, &err) == 1 && err.err > 0);
			op = err.op_context;
		} else {
			cq.head++;
		}
		if (op) /* otherwise remote CQ data */
			take_completion(op, &cqe);
	}
}

void user_act(uint8_t what, uint8_t how)
{
	switch (what % 16) {
	case 0:
	case 1: user_recv(how); break;
	case 2:
	case 3: user_send(how); break;
	case 4: user_access(how); break;
	case 5: user_atomic(how); break;
	case 6: user_call(how); break;
	case 7: user_cancel(how); break;
	case 8: user_take(); break;
	case 9: user_respond(how); break;
	case 10: user_peek(how); break;
	case 11: user_claim(how); break;
	case 12: user_recv_multi(); break;
	case 13: user_reduce(how); break;
	case 14: user_take(); break;
	case 15: user_respond(how); break;
	}
}

/* ---- life ---- */

static void open_region(void)
{
	region = (struct core_mr){ .key = FORGE_KEY,
				   .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				   .len = REGION,
				   .iov_cnt = 1,
				   .fixed = true };
	region.iov[0] = (struct iovec){ calloc(1, REGION), REGION };
	CHECK(region.iov[0].iov_base && !core_mr_add(&dom, &region, false));
}

static void close_region(void)
{
	core_mr_remove(&dom, &region);
	for (unsigned i = 0; core_mr_is_busy(&region) && i < 3; i++) {
		core_rma_mr_revoke(&region, true);
		core_dom_progress(&dom);
	}
	/* A peer that does not return a lease loses its connection. */
	for (unsigned i = 0; i < SIDE_PEERS; i++)
		side_break(i);
	core_dom_progress(&dom);
	core_rma_lessee_forget(&region);
	core_mr_dereg(&region);
	free(region.iov[0].iov_base);
}

static void joined(struct core_coll_group *g, int err)
{
	CHECK(g == &group && !err);
}

static void open_group(void)
{
	static const fi_addr_t members[] = { 0, SIDE_SELF, 1 };

	group = (struct core_coll_group){ .joined = joined };
	CHECK(!core_coll_init(&ep));
	CHECK(!core_coll_join(&ep, &group, members, 3, 0, true));
	forge_group = group.id;
}

void user_open(void)
{
	memset(&ep, 0, sizeof(ep));
	CHECK(!core_cq_init(&cq, 0));
	ep.tx.cq = ep.rx.cq = &cq;
	ep.directed = ep.source = true;
	ep.min_multi_recv = 64;
	ep.remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	side_open(&dom, &ep);
	open_region();
	open_group();
	core_rpc_listen(&ep);
	core_dom_progress(&dom);
}

void user_progress(bool reads)
{
	core_dom_progress(&dom);
	if (reads)
		take_completions();
}

void user_close(void)
{
	take_completions();
	core_coll_leave(&group);
	take_completions();
	close_region();
	side_close(&dom, &ep);
	take_completions();
	core_cq_fini(&cq);
	for (struct op *op = ops; op < ops + OPS; op++)
		if (op->is_open)
			op_end(op);
	memset(handles, 0, sizeof(handles));
}
