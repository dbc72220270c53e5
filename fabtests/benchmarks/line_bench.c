/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of the machine itself, as a lower bound for the other benchmarks: two processes exchange
 * cache lines, a number and up to 56 bytes in each, through shared memory.
 *
 * No messaging library can be faster. On a virtual machine this bound changes by a factor of five
 * within seconds, when the host moves the two cores. fabtests/scripts/compare therefore runs
 * line_bench around every other run, and compares only runs with the same bound.
 *
 * A message is one slot: the payload, then its number with release order; the reader spins on the
 * number with acquire order. A rank is at most one window ahead of the other (see bench.h: a window
 * is acknowledged, or matched by one the other way), so two windows of slots are enough and nothing
 * else is shared.
 */
#include "bench.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define INLINE_MAX 56

struct line_slot {
	_Alignas(64) _Atomic uint64_t number; /* of the message in it, from 1 */
	char payload[INLINE_MAX];
};

struct line_shared {
	_Alignas(64) _Atomic uint64_t words[2][8]; /* agreement: a line a rank; value, number */
	struct line_slot slots[];                  /* two windows of rank 0, two of rank 1 */
};

struct line_wire {
	struct bench_wire base;
	struct line_shared *shared;
	struct line_slot *tx_slots, *rx_slots;
	uint64_t slot_mask; /* slots of one direction */
	uint64_t sent, received, agreed;
	char tx_payload[INLINE_MAX], rx_payload[INLINE_MAX];
};

static void line_send(struct line_wire *wire, size_t size)
{
	struct line_slot *slot = &wire->tx_slots[wire->sent++ & wire->slot_mask];

	(void)size; /* The whole line is written, whatever the size: the cost is the same. */
	memcpy(slot->payload, wire->tx_payload, INLINE_MAX);
	atomic_store_explicit(&slot->number, wire->sent, memory_order_release);
}

static void line_recv(struct line_wire *wire, size_t size)
{
	struct line_slot *slot = &wire->rx_slots[wire->received++ & wire->slot_mask];

	while (atomic_load_explicit(&slot->number, memory_order_acquire) != wire->received)
		;
	memcpy(wire->rx_payload, slot->payload, INLINE_MAX);
}

static void line_pingpong(struct bench_wire *base, size_t size, long rounds)
{
	struct line_wire *wire = (struct line_wire *)base;

	for (long i = 0; i < rounds; i++) {
		if (base->rank == 0)
			line_send(wire, size);
		line_recv(wire, size);
		if (base->rank == 1)
			line_send(wire, size);
	}
}

static void line_stream(struct bench_wire *base, size_t size, int window, long rounds)
{
	struct line_wire *wire = (struct line_wire *)base;

	for (long i = 0; i < rounds; i++) {
		for (int n = 0; n < window; n++) {
			if (base->rank == 0)
				line_send(wire, size);
			else
				line_recv(wire, size);
		}
		if (base->rank == 0)
			line_recv(wire, 0);
		else
			line_send(wire, 0);
	}
}

static void line_exchange(struct bench_wire *base, size_t size, int window, long rounds)
{
	struct line_wire *wire = (struct line_wire *)base;

	for (long i = 0; i < rounds; i++) {
		for (int n = 0; n < window; n++)
			line_send(wire, size);
		for (int n = 0; n < window; n++)
			line_recv(wire, size);
	}
}

/* Publishes a value to the other rank and returns the other's. */
static uint64_t words_swap(struct line_wire *wire, uint64_t value)
{
	_Atomic uint64_t *mine = wire->shared->words[wire->base.rank];
	_Atomic uint64_t *theirs = wire->shared->words[!wire->base.rank];
	uint64_t parity = wire->agreed++ % 2 * 2; /* The other rank may be one agreement ahead. */

	atomic_store_explicit(&mine[parity], value, memory_order_relaxed);
	atomic_store_explicit(&mine[parity + 1], wire->agreed, memory_order_release);
	while (atomic_load_explicit(&theirs[parity + 1], memory_order_acquire) != wire->agreed)
		;
	return atomic_load_explicit(&theirs[parity], memory_order_relaxed);
}

static long line_agree(struct bench_wire *base, long value)
{
	long other = (long)words_swap((struct line_wire *)base, (uint64_t)value);

	return base->rank == 0 ? value : other;
}

static uint64_t line_sum(struct bench_wire *base, uint64_t value)
{
	return value + words_swap((struct line_wire *)base, value);
}

/* Returns the slots of one direction: two windows, rounded up to a power of two. */
static uint64_t line_slot_cnt(const struct bench_conf *conf)
{
	uint64_t cnt = 2;

	while (cnt < 2 * (uint64_t)conf->window)
		cnt *= 2;
	return cnt;
}

static void rank_run(int rank, struct line_shared *shared, const struct bench_conf *conf)
{
	uint64_t slot_cnt = line_slot_cnt(conf);
	struct line_wire wire = {
		.base = { .name = "memory",
			  .rank = rank,
			  .tx = wire.tx_payload,
			  .rx = wire.rx_payload,
			  .pingpong = line_pingpong,
			  .stream = line_stream,
			  .exchange = line_exchange,
			  .agree = line_agree,
			  .sum = line_sum },
		.shared = shared,
		.tx_slots = shared->slots + (rank ? slot_cnt : 0),
		.rx_slots = shared->slots + (rank ? 0 : slot_cnt),
		.slot_mask = slot_cnt - 1,
	};

	bench_run(conf, &wire.base);
}

static int ranks_run(const struct bench_conf *conf)
{
	size_t slots = 2 * line_slot_cnt(conf);
	size_t size = sizeof(struct line_shared) + slots * sizeof(struct line_slot);
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (shared == MAP_FAILED)
		return EXIT_FAILURE;
	child = bench_fork();
	if (child < 0)
		return EXIT_FAILURE;
	rank_run(child == 0, shared, conf);
	if (child > 0)
		bench_join(child);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct bench_conf conf;
	int opt, bad = 0, ret;

	bench_conf_init(&conf);
	bench_conf_option(&conf, 't', "latency,rate");
	bench_conf_option(&conf, 's', "8");
	while (!bad && (opt = getopt(argc, argv, BENCH_OPTIONS "h")) != -1)
		bad = opt == 'h' || bench_conf_option(&conf, opt, optarg);
	if (bad || bench_conf_max_size(&conf) > INLINE_MAX) {
		fprintf(stderr, "usage: line_bench [options], sizes up to %d\n" BENCH_USAGE,
			INLINE_MAX);
		return EXIT_FAILURE;
	}
	ret = ranks_run(&conf);
	bench_conf_free(&conf);
	return ret;
}
