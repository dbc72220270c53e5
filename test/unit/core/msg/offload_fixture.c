/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Nodes whose devices match tags: see offload_fixture.h. */
#include "support/pool_used.h"
#include "unit/core/msg/offload_fixture.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "util/param.h"

struct node off_nodes[OFF_NODES];
struct core_cqe off_cqe;
struct fi_cq_err_entry off_err;
uint8_t off_outs[4][OFF_LONG], off_ins[4][OFF_LONG];

void off_setup(void)
{
	util_params.tag_offload = 1;
	fake_tags_reset();
	nodes_open_plain(off_nodes, OFF_NODES);
	for (unsigned i = 0; i < 4; i++)
		node_fill(off_outs[i], OFF_LONG, i);
	memset(off_ins, 0xA5, sizeof(off_ins));
}

void off_teardown(void)
{
	nodes_close(off_nodes, OFF_NODES);
	cr_expect_eq(fake_engine_exposed(), 0);
	cr_expect_eq(fake_engine_retained(), 0);
	cr_expect_eq(fake_tags_cnt.lists, 0);
	cr_expect_eq(fake_tags_cnt.registered, 0);
}

void off_send(unsigned from, unsigned to, unsigned i, size_t len, uint64_t flags)
{
	cr_assert_eq(node_send(&off_nodes[from], to, off_outs[i], len, true, i,
			       FI_COMPLETION | flags, off_outs[i]),
		     0);
}

void off_post_len(fi_addr_t from, unsigned i, size_t len)
{
	cr_assert_eq(node_recv(&off_nodes[1], from, off_ins[i], len, true, i, 0, FI_COMPLETION,
			       off_ins[i]),
		     0);
}

void off_post(unsigned i)
{
	off_post_len(FI_ADDR_UNSPEC, i, OFF_LONG);
}

void off_settle(void)
{
	nodes_settle(off_nodes, OFF_NODES);
}

void off_check_sent(unsigned n, unsigned i)
{
	cr_assert_eq(node_poll(&off_nodes[n], &off_cqe, &off_err), 1, "message %u of node %u", i,
		     n);
	cr_expect_eq(off_cqe.e.op_context, off_outs[i]);
}

void off_check_none(unsigned n)
{
	cr_expect_eq(node_poll(&off_nodes[n], &off_cqe, &off_err), 0, "node %u", n);
}

void off_check_err(unsigned n, void *context, int want)
{
	cr_assert_eq(node_poll(&off_nodes[n], &off_cqe, &off_err), -FI_EAVAIL);
	cr_expect_eq(off_err.op_context, context);
	cr_expect_eq(off_err.err, want, "%d", off_err.err);
}

void off_check_received(unsigned i, unsigned msg, size_t len, unsigned from)
{
	cr_assert_eq(node_poll(&off_nodes[1], &off_cqe, &off_err), 1, "receive %u", i);
	cr_expect_eq(off_cqe.e.op_context, off_ins[i]);
	cr_expect_eq(off_cqe.e.len, len);
	cr_expect_eq(off_cqe.e.tag, msg);
	cr_expect_eq(off_cqe.src, from);
	cr_expect(node_check(off_ins[i], len, msg), "bytes of message %u", msg);
	if (len < OFF_LONG)
		cr_expect_eq(off_ins[i][len], 0xA5);
}

void off_connect(unsigned n)
{
	off_post(3);
	off_send(n, 1, 3, OFF_SHORT, 0);
	off_settle();
	off_check_sent(n, 3);
	off_check_received(3, 3, OFF_SHORT, n);
	memset(off_ins, 0xA5, sizeof(off_ins));
	fake_tags_cnt.removes = 0;
}

struct core_offload_peer *off_peer(unsigned n, unsigned other)
{
	return core_peer_lookup(&off_nodes[n].ep, other)->offload;
}

void off_list(unsigned cnt)
{
	off_settle();
	cr_assert_eq(off_nodes[1].ep.offload->listed_cnt, cnt);
}

void off_keep(void)
{
	off_connect(0);
	off_send(0, 1, 2, OFF_LONG, FI_REMOTE_CQ_DATA);
	off_settle();
	cr_assert_eq(fake_tags_cnt.unexpected, 1);
	off_check_none(0);
	cr_assert_eq(pool_used(&off_nodes[1].ep.unexps), 1);
}
