/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flow control under random steps of both ends. (ring_tx.h, ring_rx.h, ring_flow.h)
 *
 * Defines the cases; flow.h runs and checks them. Rings of the smallest legal sizes, so that wrap
 * and stall come within the first dozen messages; different sizes; positions that begin just below
 * 2^32, 2^63 and 2^64; devices with and without reads of the consumer word.
 *
 * COPYRPC_TEST_SEED and COPYRPC_TEST_STEPS (per run) as in rng.h: the long campaign.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "flow.h"
#include "support/rng.h"

#define FLOW_STEPS 60000u

#define KIB               1024ull
#define BELOW(lap, below) ((lap) - (below))
#define LEAVE_AT_ONCE                                                                              \
	{                                                                                          \
		.best_len = 4096, .cheap_signal = true                                             \
	}
#define LEAVE_SINGLE                                                                               \
	{                                                                                          \
		.best_len = 512, .cheap_signal = false                                             \
	}
#define LOOK                                                                                       \
	{                                                                                          \
		.best_len = 544, .reads_consumer = true, .head_bits = 32                           \
	}
#define GATHER                                                                                     \
	{                                                                                          \
		.best_len = 1u << 20, .cheap_signal = false                                        \
	}

#define PACKETS                                                                                    \
	{                                                                                          \
		.best_len = 256, .packet_len = 256, .cheap_signal = false                          \
	}

/* Ring sizes are given by reader; `start` is the position of the first byte. */
static const struct flow_case flow_cases[] = {
	{ "direct 1K", { .direct = true, .rx_len = { KIB, KIB } }, LEAVE_AT_ONCE, 0, false },
	{ "direct 1K, gathered", { .direct = true, .rx_len = { KIB, KIB } }, GATHER, 0, false },
	{ "direct 1K, no read",
	  { .direct = true, .rx_len = { KIB, KIB } },
	  LEAVE_AT_ONCE,
	  0,
	  true },
	{ "direct 1K/4K, no read",
	  { .direct = true, .rx_len = { KIB, 4 * KIB } },
	  LEAVE_SINGLE,
	  0,
	  true },
	{ "direct 4K/1K", { .direct = true, .rx_len = { 4 * KIB, KIB } }, LEAVE_AT_ONCE, 0, false },
	{ "direct 2K, no read, below 2^32",
	  { .direct = true,
	    .rx_len = { 2 * KIB, 2 * KIB },
	    .start = { BELOW(1ull << 32, 96), BELOW(1ull << 32, 2048) } },
	  LEAVE_AT_ONCE,
	  0,
	  true },
	{ "direct 1K, below 2^63",
	  { .direct = true,
	    .rx_len = { KIB, KIB },
	    .start = { BELOW(1ull << 63, 32), BELOW(1ull << 63, 4096) } },
	  LEAVE_SINGLE,
	  0,
	  false },
	{ "direct 1K, no read, below 2^64",
	  { .direct = true,
	    .rx_len = { KIB, KIB },
	    .start = { BELOW(0ull, 64), BELOW(0ull, 9984) } },
	  LEAVE_AT_ONCE,
	  0,
	  true },
	{ "direct 64K",
	  { .direct = true, .rx_len = { 64 * KIB, 64 * KIB } },
	  LEAVE_AT_ONCE,
	  0,
	  false },
	{ "direct 1K, 64 ahead, no read",
	  { .direct = true, .ahead = 64, .rx_len = { KIB, KIB } },
	  LEAVE_SINGLE,
	  0,
	  true },
	{ "direct 1K, looks", { .direct = true, .rx_len = { KIB, KIB } }, LOOK, 0, false },
	{ "direct 16K/2K, 64 ahead, looks, below 2^64",
	  { .direct = true,
	    .ahead = 64,
	    .rx_len = { 16 * KIB, 2 * KIB },
	    .start = { BELOW(0ull, 96), BELOW(0ull, 9984) } },
	  LOOK,
	  0,
	  false },
	{ "direct 4K/16K, 512 ahead",
	  { .direct = true, .ahead = 512, .rx_len = { 4 * KIB, 16 * KIB } },
	  LEAVE_AT_ONCE,
	  0,
	  false },
	{ "direct 64K/1K, no read",
	  { .direct = true, .rx_len = { 64 * KIB, KIB } },
	  LEAVE_AT_ONCE,
	  0,
	  true },
	{ "staged 1K, queue of 1", { .rx_len = { KIB, KIB } }, LEAVE_SINGLE, 1, false },
	{ "staged 1K, queue of 1, no read", { .rx_len = { KIB, KIB } }, LEAVE_AT_ONCE, 1, true },
	{ "staged 1K, queue of 3, gathered", { .rx_len = { KIB, KIB } }, GATHER, 3, true },
	{ "staged 1K/4K", { .rx_len = { KIB, 4 * KIB } }, LEAVE_SINGLE, 2, false },
	{ "staged 4K/1K, no read", { .rx_len = { 4 * KIB, KIB } }, LEAVE_SINGLE, 2, true },
	{ "staged 2K, below 2^32",
	  { .rx_len = { 2 * KIB, 2 * KIB },
	    .start = { BELOW(1ull << 32, 64), BELOW(1ull << 32, 32) } },
	  LEAVE_AT_ONCE,
	  4,
	  false },
	{ "staged 1K, no read, below 2^63",
	  { .rx_len = { KIB, KIB }, .start = { BELOW(1ull << 63, 96), BELOW(1ull << 63, 32) } },
	  LEAVE_SINGLE,
	  2,
	  true },
	{ "staged 64K, queue of 8", { .rx_len = { 64 * KIB, 64 * KIB } }, LEAVE_SINGLE, 8, false },
	{ "staged 64K/2K, no read, little credit",
	  { .rx_len = { 64 * KIB, 2 * KIB }, .announce = { 128, 256 } },
	  LEAVE_SINGLE,
	  8,
	  true },
	{ "late 1K, queue of 1", { .ack = true, .rx_len = { KIB, KIB } }, LEAVE_SINGLE, 1, false },
	{ "late 1K, gathered in packets, no read",
	  { .ack = true, .rx_len = { KIB, KIB } },
	  PACKETS,
	  3,
	  true },
	{ "late 1K/4K, below 2^64 and 2^32",
	  { .ack = true,
	    .rx_len = { KIB, 4 * KIB },
	    .start = { BELOW(0ull, 96), BELOW(1ull << 32, 32) } },
	  PACKETS,
	  2,
	  false },
	{ "late 64K", { .ack = true, .rx_len = { 64 * KIB, 64 * KIB } }, LEAVE_SINGLE, 8, true },
};

#define FLOW_CASES (sizeof(flow_cases) / sizeof(flow_cases[0]))

/* Indexes: a case's name has another address in the process that runs the test. */
ParameterizedTestParameters(ring_flow, random_steps_of_two_ends_keep_the_invariants)
{
	static unsigned cases[FLOW_CASES];
	unsigned i;

	for (i = 0; i < FLOW_CASES; i++)
		cases[i] = i;
	return cr_make_param_array(unsigned, cases, FLOW_CASES);
}

ParameterizedTest(unsigned *i, ring_flow, random_steps_of_two_ends_keep_the_invariants)
{
	uint64_t steps = rng_env("COPYRPC_TEST_STEPS", FLOW_STEPS);
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 0);

	if (seed) {
		flow_play(&flow_cases[*i], seed, steps);
		return;
	}
	for (seed = 1; seed <= 3; seed++)
		flow_play(&flow_cases[*i], seed, steps);
}
