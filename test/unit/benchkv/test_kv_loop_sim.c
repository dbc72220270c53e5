/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulated daemons: no request is lost, a run repeats exactly, and simple cases have the rates and
 * times that can be computed by hand. The last tests are the results of docs/batch-hold.md.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "benchkv/kv_loop_sim.h"

#define MS 1000000u

static struct kv_sim_conf plain(enum kv_sim_policy policy, uint32_t nodes)
{
	return (struct kv_sim_conf){ .nodes = nodes,
				     .loop_ns = 100,
				     .msg_ns = 40,
				     .send_ns = 150,
				     .recv_ns = 80,
				     .wire_ns = 1000,
				     .client_ns = 300,
				     .full = 64,
				     .policy = policy,
				     .seed = 1 };
}

/* Runs with a load for a while, and returns what happened in the next `ns`. */
static struct kv_sim_counts run(const struct kv_sim_conf *conf, uint32_t load, uint64_t ns)
{
	struct kv_sim *sim = kv_sim_open(conf);
	struct kv_sim_counts counts;

	cr_assert_not_null(sim);
	kv_sim_load(sim, load);
	kv_sim_run(sim, MS / 2);
	counts = kv_sim_run(sim, ns);
	cr_assert_eq(kv_sim_in_flight(sim), (uint64_t)load * conf->nodes);
	kv_sim_close(sim);
	return counts;
}

Test(kv_loop_sim, no_request_is_lost_while_the_load_changes)
{
	static const uint32_t loads[] = { 1, 7, 100, 33, KV_SIM_LOAD_MAX, 2, 0 };

	for (int policy = 0; policy < KV_SIM_POLICIES; policy++) {
		struct kv_sim_conf conf = plain(policy, 5);
		struct kv_sim *sim = kv_sim_open(&conf);
		uint64_t issued = 0, done = 0;

		for (unsigned i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
			struct kv_sim_counts c;

			kv_sim_load(sim, loads[i]);
			c = kv_sim_run(sim, 2 * MS);
			issued += c.issued;
			done += c.done;
			cr_assert_eq(kv_sim_in_flight(sim), 5u * loads[i], "%s, load %u",
				     kv_sim_policy_name(policy), loads[i]);
		}
		cr_assert_gt(done, 10000);
		cr_assert_eq(issued, done, "without load nothing is in flight");
		kv_sim_close(sim);
	}
}

Test(kv_loop_sim, a_run_repeats_exactly_and_depends_on_the_seed)
{
	for (int policy = 0; policy < KV_SIM_POLICIES; policy++) {
		struct kv_sim_conf conf = plain(policy, 4);
		struct kv_sim_counts a = run(&conf, 20, 2 * MS), b = run(&conf, 20, 2 * MS);

		cr_assert_arr_eq(&a, &b, sizeof(a));
		conf.seed = 2;
		b = run(&conf, 20, 2 * MS);
		cr_assert(memcmp(&a, &b, sizeof(a)));
	}
}

/*
 * A request alone takes the wire twice, two messages at each end, two batches sent and received,
 * and up to one loop of waiting at each of three places.
 */
Test(kv_loop_sim, a_single_request_takes_the_sum_of_its_steps)
{
	static const enum kv_sim_policy policies[] = { KV_SIM_EACH, KV_SIM_LOOP };
	uint64_t least = 2 * 1000 + 4 * 40 + 2 * 150 + 80, most = least + 80 + 5 * 100;

	for (unsigned i = 0; i < 2; i++) {
		struct kv_sim_conf conf = plain(policies[i], 2);
		struct kv_sim_counts c;

		conf.client_ns = 0;
		c = run(&conf, 1, 2 * MS);
		cr_assert_geq(bench_hist_quantile(&c.latency, 0.001), least);
		/* Each node may be busy with the request of the other once. */
		cr_assert_leq(bench_hist_quantile(&c.latency, 0.999),
			      (most + 2 * (2 * 40 + 230)) * 33 / 32);
	}
}

/* Four messages and four ends of batches per request bound the rate of a node. */
Test(kv_loop_sim, messages_that_leave_alone_saturate_a_daemon)
{
	struct kv_sim_conf conf = plain(KV_SIM_EACH, 4);
	struct kv_sim_counts c = run(&conf, 256, 4 * MS);
	uint64_t bound = 4u * 4 * MS / (4 * 40 + 2 * 150 + 2 * 80);

	cr_assert_eq(c.messages, c.batches);
	cr_assert_leq(c.done, bound * 103 / 100);
	cr_assert_geq(c.done, bound * 97 / 100);
}

Test(kv_loop_sim, batches_never_exceed_a_full_one)
{
	struct kv_sim_conf conf = plain(KV_SIM_IDLE, 2);
	struct kv_sim_counts c;

	conf.full = 8;
	c = run(&conf, 512, 2 * MS);
	cr_assert_gt(c.messages, 7 * c.batches);
	cr_assert_leq(c.messages, 8 * c.batches);
}

Test(kv_loop_sim, a_held_batch_waits_no_longer_than_its_bound)
{
	struct kv_sim_conf conf = plain(KV_SIM_HOLD, 16);
	struct kv_sim_counts c;

	conf.hold_responses = 1;
	c = run(&conf, 1, 20 * MS);
	/* Twice the longest hold, and some steps. */
	cr_assert_leq(bench_hist_quantile(&c.latency, 1), (2 * 100000u + 10000u) * 33 / 32);
	cr_assert_geq(bench_hist_quantile(&c.latency, 1), 50000, "it does hold");
}

/* Steady state of a load that was reached from `from`, in steps. */
static struct kv_sim_counts reached(const struct kv_sim_conf *conf, uint32_t from, uint32_t load)
{
	struct kv_sim *sim = kv_sim_open(conf);
	struct kv_sim_counts counts;

	for (uint32_t at = from; at != load;) {
		kv_sim_load(sim, at);
		kv_sim_run(sim, MS);
		if (from < load)
			at = at + at / 4 + 1 < load ? at + at / 4 + 1 : load;
		else
			at = at * 3 / 4 > load ? at * 3 / 4 : load;
	}
	kv_sim_load(sim, load);
	kv_sim_run(sim, MS);
	counts = kv_sim_run(sim, 2 * MS);
	kv_sim_close(sim);
	return counts;
}

/* Four nodes: the rate of a load is the same, however it was reached. */
Test(kv_loop_sim, flushing_each_loop_has_one_steady_state_from_four_nodes_on)
{
	static const enum kv_sim_policy policies[] = { KV_SIM_LOOP, KV_SIM_RULE };

	for (unsigned i = 0; i < 2; i++)
		for (uint32_t load = 4; load <= 64; load *= 4) {
			struct kv_sim_conf conf = plain(policies[i], 4);
			struct kv_sim_counts up = reached(&conf, 1, load);
			struct kv_sim_counts down = reached(&conf, 256, load);

			cr_assert_leq(up.done * 100, down.done * 103, "load %u", load);
			cr_assert_leq(down.done * 100, up.done * 103, "load %u", load);
			cr_assert_leq(up.batches * 100, down.batches * 105, "load %u", load);
			cr_assert_leq(down.batches * 100, up.batches * 105, "load %u", load);
		}
}

/* Two nodes far apart: batches that were large stay so, and are the slower state. */
Test(kv_loop_sim, two_far_nodes_have_two_states_and_small_batches_are_not_the_slower_one)
{
	struct kv_sim_conf conf = plain(KV_SIM_LOOP, 2);
	struct kv_sim_counts up, down;

	conf.wire_ns = 10000;
	conf.send_ns = 100;
	conf.recv_ns = 50;
	up = reached(&conf, 1, 32);
	down = reached(&conf, 256, 32);
	cr_assert_lt(up.messages, 5 * up.batches);
	cr_assert_gt(down.messages, 10 * down.batches);
	cr_assert_gt(up.done, down.done);
}

/* A daemon that is short of time gathers messages, whatever state it began in. */
Test(kv_loop_sim, batches_grow_when_the_daemon_is_busy)
{
	struct kv_sim_conf conf = plain(KV_SIM_LOOP, 4);
	struct kv_sim_counts c = reached(&conf, 1, 256), each;

	cr_assert_gt(c.messages, 30 * c.batches);
	conf.policy = KV_SIM_EACH;
	each = reached(&conf, 1, 256);
	cr_assert_gt(c.done, 3 * each.done);
}
