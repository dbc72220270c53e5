/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Plans. test/integ/info/info-plan compares them with a measurement. */
#include "info/info_plan.h"

#include <stdlib.h>

#include "ring/ring_len.h"
#include "unit/info/info_tree.h"

#define MIB ((uint64_t)1 << 20)

static const struct info_plan_settings plain = { .mem = 256 * MIB, .shm = true };

Test(info_plan, a_job_on_one_node_has_a_ring_for_each_peer)
{
	struct info_plan plan;

	info_plan_make(64, 64, &plain, &plan);
	cr_expect_eq(plan.nodes, 1);
	cr_expect_eq(plan.local_peers, 63);
	cr_expect_eq(plan.remote_peers, 0);
	cr_expect_eq(plan.ring_first, RING_LEN_DEFAULT);
	cr_expect_eq(plan.ring_mem, 63 * (RING_LEN_DEFAULT + 4096));
	cr_expect_eq(plan.node_mem, 64 * plan.ring_mem);
	cr_expect_eq(plan.session_mem + plan.qps + plan.unserved, 0);
	cr_expect_eq(plan.ports, 64);
}

Test(info_plan, peers_on_other_nodes_take_queue_pairs_or_sessions)
{
	struct info_plan_settings nic = plain;
	struct info_plan plan;

	info_plan_make(100, 10, &plain, &plan);
	cr_expect_eq(plan.nodes, 10);
	cr_expect_eq(plan.remote_peers, 90);
	cr_expect_eq(plan.session_mem, 90 * 4096);
	cr_expect_eq(plan.ports, 20);
	cr_expect_eq(plan.qps, 0);
	nic.nic = true;
	info_plan_make(100, 10, &nic, &plan);
	cr_expect_eq(plan.qps, 90);
	cr_expect_eq(plan.node_qps, 900);
	cr_expect_eq(plan.session_mem, 0);
	cr_expect_eq(plan.ports, 10);
	cr_expect_eq(plan.ring_mem, 9 * (RING_LEN_DEFAULT + 4096) + 90 * 2 * RING_LEN_DEFAULT);
}

Test(info_plan, peers_beyond_rc_max_share_queue_pairs_if_there_is_dc)
{
	struct info_plan_settings dc = plain;
	struct info_plan plan;

	dc.nic = true;
	dc.rc_max = 40;
	dc.dci_count = 8;
	info_plan_make(100, 10, &dc, &plan);
	cr_expect_eq(plan.qps, 90, "without DC");
	dc.dc = true;
	info_plan_make(100, 10, &dc, &plan);
	cr_expect_eq(plan.qps, 40 + 8 + 1);
	cr_expect_eq(plan.node_qps, 490);
	dc.rc_max = 90;
	info_plan_make(100, 10, &dc, &plan);
	cr_expect_eq(plan.qps, 90);
}

Test(info_plan, tag_matching_takes_two_queue_pairs_more_a_peer)
{
	struct info_plan_settings tags = plain;
	struct info_plan plan;

	tags.tags = true;
	info_plan_make(100, 10, &tags, &plan);
	cr_expect_eq(plan.qps, 0, "no device");
	tags.nic = true;
	info_plan_make(100, 10, &tags, &plan);
	cr_expect_eq(plan.qps, 90 + 1 + 2 * 90);
	info_plan_make(1000, 10, &tags, &plan);
	cr_expect_eq(plan.qps, 990 + 1 + 2 * 256, "the processor matches the others");
}

Test(info_plan, each_address_has_a_socket_and_over_udp_two)
{
	struct info_plan_settings three = plain;
	struct info_plan one, plan;

	three.addrs = 3;
	info_plan_make(64, 64, &plain, &one);
	info_plan_make(64, 64, &three, &plan);
	cr_expect_eq(one.sockets, 1);
	cr_expect_eq(plan.sockets, 3);
	cr_expect_eq(plan.ports, 64, "all at one port");
	cr_expect_eq(plan.files, one.files + 2);
	info_plan_make(64, 32, &plain, &one);
	info_plan_make(64, 32, &three, &plan);
	cr_expect_eq(one.sockets, 2);
	cr_expect_eq(plan.sockets, 6);
	cr_expect_eq(plan.ports, 32 * 4);
	cr_expect_eq(plan.files, one.files + 2 * 4);
}

Test(info_plan, a_range_of_ports_is_compared_with_the_need)
{
	struct info_plan_settings few = plain;
	struct info_report report = { 0 };
	struct info_plan plan;

	few.port_cnt = 20;
	info_plan_make(20, 10, &few, &plan);
	info_plan_judge(&plan, &few, &report);
	cr_expect_null(info_report_find(&report, "plan-ports"));
	few.port_cnt = 19;
	info_plan_judge(&plan, &few, &report);
	info_expect(&report, INFO_BROKEN, "plan-ports", "FI_COPYRPC_PORTS");
	info_report_fini(&report);
}

Test(info_plan, rings_shrink_and_then_run_out)
{
	struct info_plan_settings little = { .mem = MIB, .shm = true };
	struct info_plan plan;

	info_plan_make(65, 65, &little, &plan);
	cr_expect_eq(plan.unserved, 0);
	cr_expect_eq(plan.ring_last, RING_LEN_LEAST);
	cr_expect_eq(plan.mem_needed, MIB);
	info_plan_make(70, 70, &little, &plan);
	cr_expect_eq(plan.unserved, 5);
	little.mem = plan.mem_needed;
	info_plan_make(70, 70, &little, &plan);
	cr_expect_eq(plan.unserved, 0);
}

Test(info_plan, the_needed_memory_is_enough_for_any_job)
{
	for (uint64_t ranks = 2; ranks < 5000; ranks = ranks * 7 / 4 + 1) {
		struct info_plan_settings settings = { .mem = 0, .shm = true, .nic = ranks % 2 };
		struct info_plan plan;

		info_plan_make(ranks, ranks / 2 + 1, &settings, &plan);
		cr_assert_eq(plan.unserved,
			     plan.nodes > 1 && !settings.nic ? plan.local_peers : ranks - 1);
		settings.mem = plan.mem_needed;
		info_plan_make(ranks, ranks / 2 + 1, &settings, &plan);
		cr_assert_eq(plan.unserved, 0, "%zu ranks", (size_t)ranks);
	}
}

Test(info_plan, one_rank_needs_nothing)
{
	struct info_plan plan;

	info_plan_make(1, 5, &plain, &plan);
	cr_expect_eq(plan.per_node, 1);
	cr_expect_eq(plan.ring_mem + plan.session_mem + plan.qps + plan.unserved, 0);
}

Test(info_plan, peers_for_a_limit_are_those_that_a_plan_permits)
{
	struct info_plan plan;

	cr_expect_eq(info_plan_peers_for_files(10), 0);
	for (uint64_t files = 200; files < 3000; files += 77) {
		uint64_t peers = info_plan_peers_for_files(files);

		info_plan_make(peers + 1, peers + 1, &plain, &plan);
		cr_expect_leq(plan.files, files);
		info_plan_make(peers + 2, peers + 2, &plain, &plan);
		cr_expect_gt(plan.files, files);
	}
}

Test(info_plan, missing_rings_and_memory_are_findings)
{
	struct info_plan_settings little = { .mem = MIB, .shm = true };
	struct info_report report = { 0 };
	struct info_plan plan;

	info_plan_make(70, 70, &little, &plan);
	info_plan_judge(&plan, &little, &report);
	info_expect(&report, INFO_BROKEN, "plan-mem", "FI_COPYRPC_MEM=2M");
	info_report_fini(&report);
	little.node_total = 1024 * MIB;
	info_plan_make(1000000, 1000000, &little, &plan);
	info_plan_judge(&plan, &little, &report);
	info_expect(&report, INFO_BROKEN, "plan-node-mem", "FI_COPYRPC_ENDPOINT=ud");
	info_expect(&report, INFO_BROKEN, "plan-files", "ulimit -n");
	info_report_fini(&report);
	info_plan_make(2, 2, &plain, &plan);
	info_plan_judge(&plan, &plain, &report);
	info_expect(&report, INFO_GOOD, "plan", NULL);
	info_report_fini(&report);
}

Test(info_plan, the_memory_that_a_finding_names_is_less_than_that_of_the_node)
{
	for (uint64_t ranks = 128; ranks <= 512; ranks += 32) {
		struct info_plan_settings settings = { .mem = 64 * MIB, .shm = true };
		struct info_report report = { 0 };
		const struct info_finding *finding;
		struct info_plan plan;
		unsigned mib;

		info_plan_make(ranks, ranks, &settings, &plan);
		settings.node_total = plan.node_mem;
		info_plan_judge(&plan, &settings, &report);
		finding = info_report_find(&report, "plan-node-mem");
		cr_assert_not_null(finding);
		cr_expect_eq(finding->verdict, INFO_BROKEN);
		cr_assert_eq(sscanf(finding->mend, "export FI_COPYRPC_MEM=%uM", &mib), 1, "%s",
			     finding->mend);
		info_report_fini(&report);
		settings.mem = mib * MIB;
		info_plan_make(ranks, ranks, &settings, &plan);
		info_plan_judge(&plan, &settings, &report);
		finding = info_report_find(&report, "plan-node-mem");
		cr_expect(!finding || finding->verdict == INFO_SLOW);
		cr_expect_eq(plan.unserved, 0);
		info_report_fini(&report);
	}
}

Test(info_plan, no_memory_is_named_where_every_peer_has_the_least_ring)
{
	struct info_plan_settings settings = { .mem = MIB, .shm = true };
	struct info_report report = { 0 };
	const struct info_finding *finding;
	struct info_plan plan;

	info_plan_make(65, 65, &settings, &plan);
	settings.node_total = plan.node_mem;
	info_plan_judge(&plan, &settings, &report);
	finding = info_report_find(&report, "plan-node-mem");
	cr_assert_not_null(finding);
	cr_expect_null(strstr(finding->mend, "MEM="));
	info_report_fini(&report);
}

Test(info_plan, sessions_for_all_need_no_rings)
{
	struct info_plan_settings settings;

	info_plan_read(&settings, true, false);
	cr_expect(settings.nic && settings.shm);
	cr_assert_eq(setenv("FI_COPYRPC_ENDPOINT", "ud", 1), 0);
	info_plan_read(&settings, true, false);
	cr_expect_not(settings.nic || settings.shm);
}
