/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tag matching by a device: failures of a device or a peer, and work before sleep. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "unit/core/msg/offload_fixture.h"

TestSuite(core_offload_fail, .init = off_setup, .fini = off_teardown);

Test(core_offload_fail, the_failure_of_a_peer_ends_its_connection)
{
	off_connect(0);
	off_connect(2);
	off_post(1);
	off_list(1);
	fake_tags_cfg.hold_requests = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	fake_tags_fail_peer(off_peer(0, 1)->dev, -FI_EIO);
	off_settle();
	fake_tags_cfg.hold_requests = false;
	off_check_err(0, off_outs[0], FI_EIO);
	cr_expect_null(core_peer_lookup(&off_nodes[0].ep, 1)->chan);
	cr_expect_null(off_nodes[0].ep.offload);
	off_send(2, 1, 1, OFF_LONG, 0);
	off_settle();
	off_check_received(1, 1, OFF_LONG, 2);
	off_check_sent(2, 1);
}

Test(core_offload_fail, the_failure_of_a_list_ends_all_connections)
{
	off_connect(0);
	off_connect(2);
	off_post(1);
	off_list(1);
	fake_tags_cfg.hold_requests = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	off_send(2, 1, 0, OFF_LONG, 0);
	fake_tags_fail_list(off_nodes[1].ep.offload->list, -FI_EIO);
	off_settle();
	fake_tags_cfg.hold_requests = false;
	for (unsigned n = 0; n < OFF_NODES; n += 2)
		cr_expect_eq(node_poll(&off_nodes[n], &off_cqe, &off_err), -FI_EAVAIL, "node %u",
			     n);
	cr_expect_null(off_nodes[1].ep.offload);
	while (node_poll(&off_nodes[1], &off_cqe, &off_err))
		;
	/* A new connection has a new list. */
	off_connect(0);
	off_post(0);
	off_settle();
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	off_check_received(0, 0, OFF_LONG, 0);
	off_check_sent(0, 0);
}

/** A request is reported, and the late receive for it cannot be removed. */
Test(core_offload_fail, a_removal_that_fails_ends_the_connections)
{
	off_connect(0);
	fake_tags_cfg.hold = true;
	off_send(0, 1, 0, OFF_LONG, 0);
	fake_tags_run();
	off_post(0);
	fake_tags_cfg.remove_err = -FI_EIO;
	core_dom_progress(&off_nodes[1].dom);
	fake_tags_cfg.hold = false;
	off_post(1); /* may have the record of the first */
	off_settle();
	cr_expect_null(off_nodes[1].ep.offload);
	cr_assert_neq(node_poll(&off_nodes[1], &off_cqe, &off_err), 0);
	cr_expect_eq(node_poll(&off_nodes[0], &off_cqe, &off_err), -FI_EAVAIL);
}

/** A device that does not remove a receive for a second has failed. */
Test(core_offload_fail, a_device_that_stands_still_is_given_up)
{
	off_connect(0);
	off_post(0);
	off_list(1);
	fake_tags_cfg.hold = true;
	cr_expect_eq(core_rx_cancel(&off_nodes[1].ep, off_ins[0]), 0);
	off_check_err(1, off_ins[0], FI_ECANCELED);
	off_settle();
	cr_expect_null(off_nodes[1].ep.offload);
}

/** A peer may state any tag. It must name itself. */
Test(core_offload_fail, a_request_with_the_name_of_another_peer_ends_its_connection)
{
	off_connect(0);
	off_connect(2);
	off_peer(0, 1)->own_id = off_peer(2, 1)->own_id;
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	cr_expect_eq(node_poll(&off_nodes[0], &off_cqe, &off_err), -FI_EAVAIL);
	cr_expect_null(core_peer_lookup(&off_nodes[1].ep, 0)->chan);
	cr_expect_not_null(core_peer_lookup(&off_nodes[1].ep, 2)->chan);
}

/** Before a thread sleeps, work is looked at once more. The list must be polled afterwards, too. */
Test(core_offload_fail, a_list_is_polled_after_sleep)
{
	off_connect(0);
	off_post(0);
	off_list(1);
	for (unsigned n = 0; n < 2; n++) {
		core_dom_arm(&off_nodes[n].dom);
		core_dom_disarm(&off_nodes[n].dom);
	}
	off_send(0, 1, 0, OFF_LONG, 0);
	off_settle();
	off_check_received(0, 0, OFF_LONG, 0);
	off_check_sent(0, 0);
}

/** A peer that breaks the rules loses its connection. The send ends. */
Test(core_offload_fail, a_request_is_kept_once)
{
	off_keep();
	cr_expect_eq(fake_tags_cnt.keeps, 1);
	fake_tags_keep_again(off_peer(0, 1)->dev);
	off_settle();
	cr_expect_eq(node_poll(&off_nodes[0], &off_cqe, &off_err), -FI_EAVAIL);
	cr_expect_eq(off_err.op_context, off_outs[2]);
	cr_expect_null(core_peer_lookup(&off_nodes[0].ep, 1)->chan);
}

/** Without room for the notice, the sender's next message waits; later it passes. */
Test(core_offload_fail, a_notice_of_a_kept_request_waits_for_room)
{
	off_connect(0);
	off_post(0);
	off_list(1);
	off_send(0, 1, 2, OFF_LONG, 0);
	off_send(0, 1, 0, OFF_SHORT, 0);
	fake_tags_cfg.refused = 100;
	off_settle();
	off_check_none(1);
	fake_tags_cfg.refused = 0;
	off_settle();
	off_check_received(0, 0, OFF_SHORT, 0);
	cr_expect_eq(fake_tags_cnt.keeps, 1);
}

/** An end that takes nothing out of its ring learns all the same that a request is kept. */
Test(core_offload_fail, a_notice_of_a_kept_request_needs_no_ring)
{
	off_connect(0);
	fake_engine_cfg.no_delivery = true;
	off_send(0, 1, 2, OFF_LONG, 0);
	off_settle();
	cr_expect_eq(fake_tags_cnt.keeps, 1);
	cr_expect_eq(core_peer_lookup(&off_nodes[0].ep, 1)->offloads, 0);
	fake_engine_cfg.no_delivery = false;
}
