/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ramps the load of simulated daemons up and down (kv_loop_sim.h) and prints a line for each step:
 * with two stable states, the way down would differ from the way up.
 *
 * usage: kv_loop_sim [NAME=VALUE...]	names of struct kv_sim_conf, and
 *	policy=NAME	one policy instead of all
 *	max=N		largest load; the steps are its powers of two and those x 1.5
 *	time=US		simulated time of a step; the first half is not counted
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv_loop_sim.h"

struct ramp {
	struct kv_sim_conf conf;
	uint32_t max, time, policy;
};

static int ramp_set(struct ramp *ramp, const char *arg)
{
	const struct {
		const char *name;
		uint32_t *value;
	} names[] = {
		{ "nodes", &ramp->conf.nodes },
		{ "loop_ns", &ramp->conf.loop_ns },
		{ "msg_ns", &ramp->conf.msg_ns },
		{ "send_ns", &ramp->conf.send_ns },
		{ "recv_ns", &ramp->conf.recv_ns },
		{ "wire_ns", &ramp->conf.wire_ns },
		{ "full", &ramp->conf.full },
		{ "client_ns", &ramp->conf.client_ns },
		{ "target", &ramp->conf.target },
		{ "max", &ramp->max },
		{ "time", &ramp->time },
		{ "hold_responses", &ramp->conf.hold_responses },
	};
	const char *value = strchr(arg, '=');
	size_t len = value ? (size_t)(value - arg) : 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len && strlen(names[i].name) == len && !strncmp(arg, names[i].name, len)) {
			*names[i].value = (uint32_t)strtoul(value + 1, NULL, 0);
			return 0;
		}
	for (uint32_t i = 0; i < KV_SIM_POLICIES; i++)
		if (len == 6 && !strncmp(arg, "policy", 6) &&
		    !strcmp(value + 1, kv_sim_policy_name(i))) {
			ramp->policy = i;
			return 0;
		}
	fprintf(stderr, "kv_loop_sim: what is %s?\n", arg);
	return 1;
}

static void ramp_step(const struct ramp *ramp, struct kv_sim *sim, const char *way, uint32_t load)
{
	uint64_t half = (uint64_t)ramp->time * 500, before;
	struct kv_sim_counts c;

	kv_sim_load(sim, load);
	kv_sim_run(sim, half);
	before = kv_sim_in_flight(sim);
	c = kv_sim_run(sim, half);
	if (before != (uint64_t)load * ramp->conf.nodes || before != kv_sim_in_flight(sim))
		fprintf(stderr, "kv_loop_sim: requests were lost\n");
	printf("%s %s %u %llu %.3f %llu %llu %llu\n", kv_sim_policy_name(ramp->conf.policy), way,
	       load, (unsigned long long)(c.done * 1000000 / half / ramp->conf.nodes),
	       (double)c.messages / (double)(c.batches ? c.batches : 1),
	       (unsigned long long)bench_hist_quantile(&c.latency, 0.5),
	       (unsigned long long)bench_hist_quantile(&c.latency, 0.99),
	       (unsigned long long)(c.loops ? c.few * 100 / c.loops : 0));
}

/* Loads 1, 2, 3, 4, 6, 8, 12, ... up to max. */
static uint32_t ramp_load(uint32_t step)
{
	uint32_t power = 1u << (step + 1) / 2;

	return step % 2 || !step ? power : power + power / 2;
}

static int ramp_run(struct ramp *ramp)
{
	struct kv_sim *sim = kv_sim_open(&ramp->conf);
	uint32_t steps = 0;

	if (!sim)
		return 1;
	while (ramp_load(steps) < ramp->max)
		steps++;
	for (uint32_t i = 0; i < steps; i++)
		ramp_step(ramp, sim, "up", ramp_load(i));
	for (uint32_t i = steps + 1; i-- > 0;)
		ramp_step(ramp, sim, "down", ramp_load(i) < ramp->max ? ramp_load(i) : ramp->max);
	kv_sim_close(sim);
	return 0;
}

int main(int argc, char **argv)
{
	struct ramp ramp = {
		.conf = { .nodes = 4,
			  .loop_ns = 100,
			  .msg_ns = 40,
			  .send_ns = 150,
			  .recv_ns = 80,
			  .wire_ns = 1000,
			  .client_ns = 300,
			  .full = 64,
			  .seed = 1 },
		.max = 256,
		.time = 2000,
		.policy = KV_SIM_POLICIES,
	};
	int ret = 0;

	for (int i = 1; i < argc; i++)
		if (ramp_set(&ramp, argv[i]))
			return 2;
	printf("# policy way load requests/ms/node messages/batch p50_ns p99_ns few_%%\n");
	for (uint32_t i = 0; i < KV_SIM_POLICIES && !ret; i++)
		if (ramp.policy == KV_SIM_POLICIES || ramp.policy == i) {
			ramp.conf.policy = i;
			ret = ramp_run(&ramp);
		}
	return ret;
}
