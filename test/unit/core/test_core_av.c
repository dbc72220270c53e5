/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address vector: finds exactly the addresses that were inserted. An array is the oracle. */
#include <assert.h>
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <inttypes.h>
#include <malloc.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "core/core_av.h"
#include "support/rng.h"
#include "unit/core/must.h"
#include "unit/core/no_memory.h"
#include "util/clock.h"
#include "util/name.h"

static_assert(CORE_AV_NONE == FI_ADDR_NOTAVAIL, "an index is an fi_addr_t");

static struct sockaddr *in4(uint32_t host, uint16_t port)
{
	static struct sockaddr_in in;

	in = (struct sockaddr_in){ .sin_family = AF_INET,
				   .sin_port = htons(port),
				   .sin_addr.s_addr = htonl(host) };
	return (struct sockaddr *)&in;
}

static struct sockaddr *in6(const char *host, uint16_t port, uint32_t scope)
{
	static struct sockaddr_in6 in;

	in = (struct sockaddr_in6){ .sin6_family = AF_INET6,
				    .sin6_port = htons(port),
				    .sin6_scope_id = scope };
	MUST(inet_pton(AF_INET6, host, &in.sin6_addr) == 1);
	return (struct sockaddr *)&in;
}

static uint64_t insert(struct core_av *av, const struct sockaddr *addr)
{
	uint64_t idx = CORE_AV_NONE;

	MUST(core_av_insert(av, addr, &idx) == 0);
	return idx;
}

Test(core_av, indices_follow_the_order_of_insertion)
{
	struct core_av *av = core_av_open(0);

	MUST(core_av_end(av) == 0);
	for (uint32_t i = 0; i < 1000; i++) {
		MUST(insert(av, in4(0x7F000001, (uint16_t)(i + 1))) == i);
		MUST(core_av_end(av) == i + 1);
	}
	for (uint32_t i = 0; i < 1000; i++)
		MUST(core_av_find(av, in4(0x7F000001, (uint16_t)(i + 1))) == i);
	MUST(core_av_find(av, in4(0x7F000002, 1)) == CORE_AV_NONE);
	MUST(core_av_find(av, in4(0x7F000001, 1001)) == CORE_AV_NONE);
	core_av_close(av);
}

Test(core_av, an_address_is_returned_as_inserted)
{
	struct core_av *av = core_av_open(2);
	struct sockaddr_storage got;
	struct sockaddr_in6 want6;
	struct sockaddr_in want4;

	memcpy(&want4, in4(0x0A0B0C0D, 4791), sizeof(want4));
	memcpy(&want6, in6("fe80::1:2", 65535, 3), sizeof(want6));
	insert(av, (struct sockaddr *)&want4);
	insert(av, (struct sockaddr *)&want6);
	MUST(core_av_addr(av, 0, &got) == sizeof(want4));
	MUST(!memcmp(&got, &want4, sizeof(want4)));
	MUST(core_av_addr(av, 1, &got) == sizeof(want6));
	MUST(!memcmp(&got, &want6, sizeof(want6)));
	MUST(core_av_addr(av, 2, &got) == 0);
	MUST(core_av_addr(av, CORE_AV_NONE, &got) == 0);
	core_av_close(av);
}

/** Returns the name of in4(host, port) with two further addresses. */
static struct sockaddr *named(uint32_t host, uint16_t port, uint32_t second, uint32_t third)
{
	struct in_addr others[2] = { { htonl(second) }, { htonl(third) } };
	struct sockaddr *name = in4(host, port);

	util_name_set_others((struct sockaddr_in *)name, others, third ? 2 : 1);
	return name;
}

Test(core_av, further_addresses_are_returned_and_tell_no_names_apart)
{
	struct core_av *av = core_av_open(0);
	struct sockaddr_storage got;

	MUST(insert(av, named(0x0A000001, 7, 0x0A010001, 0x0A020001)) == 0);
	MUST(core_av_addr(av, 0, &got) == sizeof(struct sockaddr_in));
	MUST(!memcmp(&got, named(0x0A000001, 7, 0x0A010001, 0x0A020001),
		     sizeof(struct sockaddr_in)));
	MUST(core_av_find(av, in4(0x0A000001, 7)) == 0);
	MUST(core_av_find(av, in4(0x0A010001, 7)) == CORE_AV_NONE);
	MUST(insert(av, named(0x0A000001, 7, 0x0A030001, 0)) == 0);
	MUST(core_av_has(av, 0, in4(0x0A020001, 7)));
	MUST(!core_av_has(av, 0, in4(0x0A030001, 7)));
	MUST(!core_av_has(av, 1, in4(0x0A020001, 7)));
	core_av_close(av);
}

Test(core_av, a_name_without_further_addresses_gets_those_of_the_next_insert)
{
	struct core_av *av = core_av_open(0);

	MUST(insert(av, in4(0x0A000001, 7)) == 0);
	MUST(!core_av_has(av, 0, in4(0x0A010001, 7)));
	MUST(insert(av, named(0x0A000001, 7, 0x0A010001, 0)) == 0);
	MUST(core_av_has(av, 0, in4(0x0A010001, 7)));
	core_av_close(av);
}

Test(core_av, an_address_inserted_twice_has_one_index_and_two_references)
{
	struct core_av *av = core_av_open(0);
	bool gone = true;

	MUST(insert(av, in4(1, 1)) == 0);
	MUST(insert(av, in4(1, 1)) == 0);
	MUST(insert(av, in4(2, 1)) == 1);
	MUST(core_av_remove(av, 0, &gone) == 0);
	MUST(!gone);
	MUST(core_av_find(av, in4(1, 1)) == 0);
	MUST(core_av_remove(av, 0, &gone) == 0);
	MUST(gone);
	MUST(core_av_find(av, in4(1, 1)) == CORE_AV_NONE);
	MUST(core_av_remove(av, 0, &gone) == -FI_EINVAL);
	MUST(core_av_remove(av, 2, &gone) == -FI_EINVAL);
	MUST(core_av_remove(av, CORE_AV_NONE, &gone) == -FI_EINVAL);
	core_av_close(av);
}

Test(core_av, removed_indices_are_reused_lowest_first)
{
	static const uint64_t removed[] = { 300, 5, 64, 63, 299 };
	static const uint64_t back[] = { 5, 63, 64, 299, 300, 400, 401 };
	struct core_av *av = core_av_open(0);
	bool gone;

	for (uint16_t i = 0; i < 400; i++)
		insert(av, in4(1, (uint16_t)(i + 1)));
	for (int i = 0; i < 5; i++)
		MUST(core_av_remove(av, removed[i], &gone) == 0);
	for (int i = 0; i < 7; i++)
		MUST(insert(av, in4(2, (uint16_t)(i + 1))) == back[i]);
	MUST(core_av_end(av) == 402);
	core_av_close(av);
}

Test(core_av, an_invalid_address_is_refused_and_changes_nothing)
{
	struct core_av *av = core_av_open(0);
	struct sockaddr bad = { .sa_family = AF_UNIX };
	uint64_t idx = 77;

	MUST(core_av_insert(av, &bad, &idx) == -FI_EINVAL);
	bad.sa_family = AF_UNSPEC;
	MUST(core_av_insert(av, &bad, &idx) == -FI_EINVAL);
	MUST(core_av_insert(av, in4(1, 0), &idx) == -FI_EINVAL);
	MUST(core_av_insert(av, in6("::1", 0, 0), &idx) == -FI_EINVAL);
	MUST(core_av_find(av, &bad) == CORE_AV_NONE);
	MUST(idx == 77);
	MUST(core_av_end(av) == 0);
	core_av_close(av);
}

Test(core_av, only_fields_that_identify_a_peer_distinguish_addresses)
{
	struct core_av *av = core_av_open(0);
	struct sockaddr_in6 flow;

	memcpy(&flow, in6("2001:db8::1", 7, 0), sizeof(flow));
	MUST(insert(av, (struct sockaddr *)&flow) == 0);
	flow.sin6_flowinfo = htonl(99);
	MUST(insert(av, (struct sockaddr *)&flow) == 0);
	MUST(insert(av, in6("2001:db8::1", 7, 2)) == 0);
	MUST(insert(av, in6("fe80::1", 7, 1)) == 1);
	MUST(insert(av, in6("fe80::1", 7, 2)) == 2);
	MUST(insert(av, in6("::ffff:1.2.3.4", 7, 0)) == 3);
	MUST(insert(av, in4(0x01020304, 7)) == 4);
	for (uint32_t i = 5; i < 2000; i++)
		MUST(insert(av, in6("fe80::1", 7, i)) == i);
	core_av_close(av);
}

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

Test(core_av, a_known_address_costs_at_most_48_bytes)
{
	size_t before = heap_bytes();
	struct core_av *av = core_av_open(0);

	for (uint32_t n = 1; n <= 200000; n++) {
		insert(av, in4(0x0A000000 + n, 4791));
		if (n >= 1024) /* before, chunks that the allocator caches count too */
			MUST(heap_bytes() - before <= 48 * (size_t)n);
	}
	core_av_close(av);
}

Test(core_av, a_size_hint_allocates_little)
{
	static const size_t hints[] = { 0, 1, 100, 65536, SIZE_MAX };

	for (int i = 0; i < 5; i++) {
		size_t before = heap_bytes();
		struct core_av *av = core_av_open(hints[i]);

		MUST(av);
		MUST(heap_bytes() - before <= 64 * 1024);
		insert(av, in4(1, 1));
		core_av_close(av);
	}
}

Test(core_av, without_memory_an_insert_fails_and_changes_nothing)
{
	struct no_memory *taken;
	uint64_t idx, cnt = 0;
	struct core_av *av;

	if (!NO_MEMORY_WORKS)
		cr_skip("a sanitizer needs the memory itself");
	av = core_av_open(0);
	insert(av, in4(1, 1));
	taken = no_memory_begin();
	while (!core_av_insert(av, in4(2, (uint16_t)(cnt + 1)), &idx))
		cnt++;
	MUST(core_av_insert(av, in4(3, 1), &idx) == -FI_ENOMEM);
	MUST(!core_av_open(1000));
	no_memory_end(taken);
	MUST(core_av_end(av) == cnt + 1);
	MUST(core_av_find(av, in4(3, 1)) == CORE_AV_NONE);
	MUST(core_av_find(av, in4(2, (uint16_t)cnt)) == cnt);
	for (; cnt < 1000; cnt++)
		MUST(insert(av, in4(2, (uint16_t)(cnt + 1))) == cnt + 1);
	core_av_close(av);
}

/* --- random operations against the oracle --------------------------------------------------- */

#define PEERS 700u

struct oracle {
	uint64_t idx_of[PEERS]; /* of peer p, or CORE_AV_NONE */
	uint32_t refs[PEERS];
	uint32_t peer_at[PEERS]; /* peer with index i, or PEERS */
	uint64_t end;
};

static const struct sockaddr *peer_addr(uint32_t p)
{
	static struct sockaddr_in6 in;

	if (p % 3)
		return in4(0x0A000000 + p / 7, (uint16_t)(1 + p));
	memcpy(&in, in6("fd00::", (uint16_t)(1 + p % 5), 0), sizeof(in));
	in.sin6_addr.s6_addr[15] = (uint8_t)p;
	in.sin6_addr.s6_addr[3] = (uint8_t)(p >> 8);
	return (struct sockaddr *)&in;
}

static uint64_t oracle_lowest_free(const struct oracle *o)
{
	uint64_t i = 0;

	while (i < o->end && o->peer_at[i] != PEERS)
		i++;
	return i;
}

static void step_insert(struct core_av *av, struct oracle *o, uint32_t p)
{
	if (!o->refs[p]++) {
		o->idx_of[p] = oracle_lowest_free(o);
		o->peer_at[o->idx_of[p]] = p;
		o->end = o->end > o->idx_of[p] ? o->end : o->idx_of[p] + 1;
	}
	MUST(insert(av, peer_addr(p)) == o->idx_of[p]);
}

static void step_remove(struct core_av *av, struct oracle *o, uint64_t idx)
{
	uint32_t p = o->peer_at[idx];
	bool gone;

	if (p == PEERS) {
		MUST(core_av_remove(av, idx, &gone) == -FI_EINVAL);
		return;
	}
	MUST(core_av_remove(av, idx, &gone) == 0);
	MUST(gone == !--o->refs[p]);
	if (gone) {
		o->idx_of[p] = CORE_AV_NONE;
		o->peer_at[idx] = PEERS;
	}
}

static void check_peer(const struct core_av *av, const struct oracle *o, uint32_t p)
{
	struct sockaddr_storage got;
	socklen_t len;

	MUST(core_av_find(av, peer_addr(p)) == o->idx_of[p]);
	len = core_av_addr(av, o->idx_of[p], &got);
	MUST(!!len == !!o->refs[p]);
	if (len)
		MUST(!memcmp(&got, peer_addr(p), len));
}

Test(core_av, random_operations_agree_with_an_array)
{
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", util_clock_ns());
	uint64_t steps = rng_env("COPYRPC_TEST_STEPS", 40000);
	struct core_av *av = core_av_open(0);
	struct rng rng = { seed };
	static struct oracle o;

	fprintf(stderr, "core_av: COPYRPC_TEST_SEED=%" PRIu64 "\n", seed);
	for (uint32_t p = 0; p < PEERS; p++) {
		o.idx_of[p] = CORE_AV_NONE;
		o.peer_at[p] = PEERS;
	}
	while (steps--) {
		bool fill = steps / 2000 % 2;

		if (rng_chance(&rng, fill ? 2 : 1, 3))
			step_insert(av, &o, (uint32_t)rng_below(&rng, PEERS));
		else
			step_remove(av, &o, rng_below(&rng, PEERS));
		check_peer(av, &o, (uint32_t)rng_below(&rng, PEERS));
		MUST(core_av_end(av) == o.end);
	}
	for (uint32_t p = 0; p < PEERS; p++)
		check_peer(av, &o, p);
	core_av_close(av);
}
