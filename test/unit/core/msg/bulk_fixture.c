/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two nodes that exchange bulk messages: see bulk_fixture.h. */
#include "unit/core/msg/bulk_fixture.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

struct node bulk_nodes[2];
uint8_t bulk_out[BULK_LEN], bulk_in[BULK_LEN];
struct core_cqe bulk_cqe;
struct fi_cq_err_entry bulk_err;

void bulk_setup(void)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = BULK_EAGER,
					    .single_copy_min = BULK_RNDV_MIN,
					    .unexpected_mem = 1 << 20 };
	nodes_open(bulk_nodes, 2);
}

void bulk_teardown(void)
{
	cr_expect_eq(fake_engine_exposed(), 0);
	cr_expect_eq(fake_engine_retained(), 0);
	cr_expect_eq(bulk_nodes[0].ep.tx_open, 0);
	cr_expect_eq(bulk_nodes[0].ep.tx_copied, 0);
	nodes_close(bulk_nodes, 2);
}

void bulk_send(size_t len, uint64_t flags)
{
	node_fill(bulk_out, len, 1);
	memset(bulk_in, 0, sizeof(bulk_in));
	cr_assert_eq(node_send(&bulk_nodes[0], 1, bulk_out, len, true, 0, FI_COMPLETION | flags,
			       bulk_out),
		     0);
	nodes_settle(bulk_nodes, 2);
}

bool bulk_has_left(void)
{
	int ret = node_poll(&bulk_nodes[0], &bulk_cqe, &bulk_err);

	cr_assert_neq(ret, -FI_EAVAIL, "%d", bulk_err.err);
	return ret;
}

void bulk_post(uint64_t tag)
{
	cr_assert_eq(node_recv(&bulk_nodes[1], 0, bulk_in, sizeof(bulk_in), true, tag, 0,
			       FI_COMPLETION, bulk_in),
		     0);
}

void bulk_receive(size_t len)
{
	bulk_post(0);
	nodes_settle(bulk_nodes, 2);
	cr_assert_eq(node_poll(&bulk_nodes[1], &bulk_cqe, &bulk_err), 1);
	cr_expect_eq(bulk_cqe.e.len, len);
	cr_expect(node_check(bulk_in, len, 1), "%zu bytes", len);
}
