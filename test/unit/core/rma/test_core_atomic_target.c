/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Target side of atomic operations: malformed calls fail the connection and access no memory. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/rma/core_atomic.h"
#include "core/core_mr.h"
#include "core/msg/core_rx.h"
#include "core/core_handler.h"
#include "support/core_pair.h"
#include "support/rng.h"
#include "unit/core/must.h"
#include "util/copy.h"
#include "wire/wire_atomic.h"

static struct node node;
static struct core_mr mr;
static _Alignas(64) uint8_t memory[4096], model[4096];
static struct core_chan chan;
static struct core_peer *peer;
static unsigned replies;
static uint8_t reply[4096];
static size_t reply_len;

static int take_reply(struct core_chan *c, struct core_call_ref ref, const struct iovec *iov,
		      size_t iov_cnt, size_t len, unsigned flags)
{
	MUST(c == &chan && len <= ref.resp_max && len <= sizeof(reply));
	util_iov_gather(reply, iov, iov_cnt, 0, len);
	reply_len = len;
	replies++;
	return 0;
}

static const struct core_chan_ops chan_ops = { .reply = take_reply };

static void setup(void)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 1024, .single_copy_min = SIZE_MAX };
	nodes_open(&node, 1);
	node.ep.remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	mr = (struct core_mr){ .key = 5,
			       .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
			       .base = 0x1000,
			       .len = sizeof(memory),
			       .iov_cnt = 1,
			       .iov = { { memory, sizeof(memory) } } };
	MUST(!core_mr_add(&node.dom, &mr, false));
	peer = core_peer_get(&node.ep, 0);
	chan = (struct core_chan){ .ops = &chan_ops, .peer = peer };
	replies = 0;
}

static void teardown(void)
{
	core_mr_remove(&node.dom, &mr);
	nodes_close(&node, 1);
}

TestSuite(core_atomic_target, .init = setup, .fini = teardown);

struct frame {
	uint32_t op;
	struct wire_atomic a;
	uint8_t lists[2 * WIRE_ATOMIC_LEN_MAX + 64];
	uint32_t lists_len;
	uint32_t resp_max;
};

static enum core_rx_verdict deliver(const struct frame *f)
{
	static uint8_t bytes[sizeof(*f)];
	uint32_t len = 0;

	memcpy(bytes, &f->op, 4);
	len += 4;
	if (f->op & WIRE_F_DATA64) {
		memset(bytes + len, 9, 8);
		len += 8;
	}
	memcpy(bytes + len, &f->a, sizeof(f->a));
	len += (uint32_t)sizeof(f->a);
	memcpy(bytes + len, f->lists, f->lists_len);
	return core_upcall_table.on_call(&chan, (struct core_call_ref){ 1, f->resp_max }, bytes,
					 len + f->lists_len, 0);
}

/* Builds a legal call: fetch and add on two 64-bit elements. */
static struct frame good(void)
{
	return (struct frame){ .op = WIRE_OP_ATOMIC,
			       .a = { .addr = 0x1000 + 8,
				      .key = 5,
				      .first = 3,
				      .total = 5,
				      .count = 2,
				      .kind = CORE_ATOMIC_FETCH,
				      .type = FI_UINT64,
				      .op = FI_SUM },
			       .lists = { 1, [8] = 2 },
			       .lists_len = 16,
			       .resp_max = 24 };
}

Test(core_atomic_target, a_legal_call_executes_once_and_gets_one_reply)
{
	struct frame f = good();
	struct wire_atomic_reply head;

	MUST(deliver(&f) == CORE_RX_DONE && deliver(&f) == CORE_RX_DONE);
	MUST(replies == 2 && reply_len == sizeof(head) + 16);
	memcpy(&head, reply, sizeof(head));
	MUST(head.status == 0 && head.first == 3);
	MUST(reply[8] == 1 && reply[16] == 2);
	MUST(memory[8] == 2 && memory[16] == 4);
}

#define BAD(change)                                                                                \
	do {                                                                                       \
		struct frame f = good();                                                           \
		change;                                                                            \
		if (deliver(&f) != CORE_RX_BAD)                                                    \
			cr_assert_fail("line %d: %s", __LINE__, #change);                          \
		MUST(!replies && !memcmp(memory, model, sizeof(memory)));                          \
	} while (0)

Test(core_atomic_target, a_malformed_call_fails_the_connection)
{
	BAD(f.a.count = 0; f.lists_len = 0);
	BAD(f.a.count = 1);
	BAD(f.a.count = 3);
	BAD(f.lists_len = 15);
	BAD(f.lists_len = 17);
	BAD(f.lists_len = 0);
	BAD(f.a.first = 4);
	BAD(f.a.first = 6);
	BAD(f.a.first = UINT32_MAX);
	BAD(f.a.total = 0);
	BAD(f.a.kind = CORE_ATOMIC_COMPARE);
	BAD(f.a.kind = CORE_ATOMIC_KINDS);
	BAD(f.a.kind = 255);
	BAD(f.a.op = FI_CSWAP);
	BAD(f.a.op = 20);
	BAD(f.a.op = 255);
	BAD(f.a.type = FI_UINT128 + 1);
	BAD(f.a.type = 255);
	BAD(f.a.type = FI_DOUBLE; f.a.op = FI_BOR);
	BAD(f.a.op = FI_ATOMIC_READ);
	BAD(f.a.op = FI_ATOMIC_READ; f.lists_len = 0; f.a.kind = CORE_ATOMIC_BASE);
	BAD(f.a.zero[0] = 1);
	BAD(f.a.zero[2] = 1);
	BAD(f.resp_max = 23);
	BAD(f.resp_max = 16);
	BAD(f.op |= WIRE_F_DATA64);
	BAD(f.op |= WIRE_F_TAG);
	BAD(f.a.count = WIRE_ATOMIC_LEN_MAX / 8 + 1; f.a.total = 9999; f.resp_max = 1 << 20;
	    f.lists_len = WIRE_ATOMIC_LEN_MAX + 8);
}

static void refused(struct frame f, int err)
{
	struct wire_atomic_reply head;

	replies = 0;
	MUST(deliver(&f) == CORE_RX_DONE && replies == 1 && reply_len == sizeof(head));
	memcpy(&head, reply, sizeof(head));
	MUST((int)head.status == err && head.first == f.a.first);
	MUST(!memcmp(memory, model, sizeof(memory)));
}

Test(core_atomic_target, a_denied_call_gets_an_error_and_does_not_execute)
{
	struct frame f = good();

	f.a.key = 6;
	refused(f, FI_EKEYREJECTED);
	f = good();
	f.a.addr = 0x1000 - 8;
	refused(f, FI_EINVAL);
	f.a.addr = 0x1000 + sizeof(memory) - 8; /* the first one fits */
	refused(f, FI_EINVAL);
	f.a.addr = UINT64_MAX - 7;
	refused(f, FI_EINVAL);
	for (unsigned i = 1; i < 8; i++) {
		f.a.addr = 0x1000 + i;
		refused(f, FI_EINVAL);
	}
	f = good();
	mr.access = FI_REMOTE_WRITE;
	refused(f, FI_EACCES);
	mr.access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	node.ep.remote_access = FI_REMOTE_WRITE;
	refused(f, FI_EACCES);
}

Test(core_atomic_target, random_calls_touch_no_memory_without_permission)
{
	struct rng r = { 11 };
	uint8_t bytes[96];

	mr.access = 0;
	for (unsigned n = 0; n < 200000; n++) {
		uint32_t op = WIRE_OP_ATOMIC, len = (uint32_t)rng_below(&r, sizeof(bytes));
		struct frame f = good();

		memcpy(bytes, &op, 4);
		memcpy(bytes + 4, &f.a, sizeof(f.a));
		memcpy(bytes + 36, f.lists, 16);
		for (unsigned k = 0; k < 3; k++)
			bytes[4 + rng_below(&r, sizeof(bytes) - 4)] = (uint8_t)rng_next(&r);
		core_upcall_table.on_call(&chan, (struct core_call_ref){ 1, 64 }, bytes, len, 0);
	}
	MUST(!memcmp(memory, model, sizeof(memory)));
}
