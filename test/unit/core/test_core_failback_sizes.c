/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that are replaced for rings of another size. */
#include <criterion/criterion.h>

#include "core/core_failback.h"
#include "support/core_pair.h"
#include "unit/core/failback_pair.h"

TestSuite(core_failback_sizes, .init = pair_setup, .fini = pair_teardown, .timeout = 200);

/** Lets an end ask for what both can have, and expects that the connection is replaced. */
static void replace_for(uint32_t better)
{
	fake_engine_cfg.better = better;
	pair_mark();
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
	pair_expect_traffic();
}

Test(core_failback_sizes, the_next_channel_has_rings_of_another_size)
{
	replace_for(CORE_BETTER_ROOM);
	cr_expect_eq(fake_engine_cfg.enlarged, 1);
	cr_expect_eq(fake_engine_cfg.reduced, 0);
	replace_for(CORE_BETTER_QUIET);
	cr_expect_eq(fake_engine_cfg.enlarged, 1);
	cr_expect_eq(fake_engine_cfg.reduced, 1, "that of the end that asked");
}

Test(core_failback_sizes, for_a_path_alone_the_next_channel_is_not_larger)
{
	fake_engine_cfg.wants = CORE_BETTER_ROOM; /* for which the peer has no memory */
	replace_for(PAIR_BETTER);
	cr_expect_eq(fake_engine_cfg.enlarged, 0);
	fake_engine_cfg.wants = 0;
}

Test(core_failback_sizes, a_peer_without_memory_is_asked_again)
{
	fake_engine_cfg.better = 0;
	fake_engine_cfg.wants = CORE_BETTER_ROOM;
	pair_mark();
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	cr_expect(pair_is_marked(0) && pair_is_marked(1));
	cr_expect_not(pair_peer_at(0)->holds);
	cr_expect_eq(pair_peer_at(0)->failback.pause_ns, CORE_FAILBACK_PAUSE_NS);
	fake_engine_cfg.better = CORE_BETTER_ROOM;
	pair_look(0);
	nodes_settle(pair_nodes, 2);
	pair_expect_moved();
	cr_expect_eq(fake_engine_cfg.enlarged, 1);
	fake_engine_cfg.wants = 0;
}
