/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vector. See core_av.h.
 *
 * Entry i is in block i / 64. A word of used bits per block finds the lowest free index. Blocks,
 * not one array: doubling an array would cost twice the memory just after it grew.
 *
 * The hash is open addressing over 32-bit numbers (index + 1, 0: free) with linear probing, at most
 * three quarters full. Erasing closes the gap.
 */
#include "core/core_av.h"

#include <assert.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/bits.h"
#include "util/name.h"

#define CORE_AV_BLOCK    64u
#define CORE_AV_MAX      (UINT32_MAX - CORE_AV_BLOCK) /* index + 1 is a 32-bit number */
#define CORE_AV_HASH_MIN 16u
#define CORE_AV_HINT_MAX 4096u /* the table grows on insert beyond this */

enum core_av_family {
	CORE_AV_IN4 = 4,
	CORE_AV_IN6 = 6,
};

struct core_av_entry {
	uint8_t addr[16]; /* network order; IPv4: four bytes, sin_zero, zeros */
	uint32_t scope;
	uint32_t ref_cnt;
	uint16_t port_be;
	uint8_t family; /* enum core_av_family */
	uint8_t zero;
};

struct core_av_block {
	struct core_av_entry *entries; /* CORE_AV_BLOCK of them */
	uint64_t used;                 /* bit per entry */
};

struct core_av {
	struct core_av_block *blocks;
	size_t block_cnt;
	size_t block_max;
	uint64_t end; /* indices ever used */
	size_t used_cnt;
	size_t free_block; /* no block below has a free entry */
	uint32_t *hash;
	size_t hash_mask;
};

static_assert(sizeof(struct core_av_entry) == 28, "what a known address costs");

static struct core_av_entry *core_av_entry(const struct core_av *av, uint64_t idx)
{
	return &av->blocks[idx / CORE_AV_BLOCK].entries[idx % CORE_AV_BLOCK];
}

static bool core_av_is_used(const struct core_av *av, uint64_t idx)
{
	return idx < av->end && av->blocks[idx / CORE_AV_BLOCK].used & 1ull << idx % CORE_AV_BLOCK;
}

/* --- addresses ------------------------------------------------------------------------------ */

static int core_av_pack4(struct core_av_entry *e, const struct sockaddr_in *in)
{
	e->family = CORE_AV_IN4;
	e->port_be = in->sin_port;
	memcpy(e->addr, &in->sin_addr, 4);
	memcpy(e->addr + 4, in->sin_zero, sizeof(in->sin_zero));
	return e->port_be ? 0 : -FI_EINVAL;
}

static int core_av_pack6(struct core_av_entry *e, const struct sockaddr_in6 *in6)
{
	e->family = CORE_AV_IN6;
	e->port_be = in6->sin6_port;
	memcpy(e->addr, &in6->sin6_addr, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		e->scope = in6->sin6_scope_id;
	return e->port_be ? 0 : -FI_EINVAL;
}

/* Packs an address, copied because the caller's bytes may be misaligned. */
static int core_av_pack(struct core_av_entry *e, const struct sockaddr *addr)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	sa_family_t family;

	memcpy(&family, addr, sizeof(family));
	memset(e, 0, sizeof(*e));
	switch (family) {
	case AF_INET: memcpy(&in, addr, sizeof(in)); return core_av_pack4(e, &in);
	case AF_INET6: memcpy(&in6, addr, sizeof(in6)); return core_av_pack6(e, &in6);
	default: return -FI_EINVAL;
	}
}

static socklen_t core_av_unpack4(const struct core_av_entry *e, struct sockaddr_in *in)
{
	in->sin_family = AF_INET;
	in->sin_port = e->port_be;
	memcpy(&in->sin_addr, e->addr, 4);
	memcpy(in->sin_zero, e->addr + 4, sizeof(in->sin_zero));
	return sizeof(*in);
}

static socklen_t core_av_unpack6(const struct core_av_entry *e, struct sockaddr_in6 *in6)
{
	in6->sin6_family = AF_INET6;
	in6->sin6_port = e->port_be;
	in6->sin6_scope_id = e->scope;
	memcpy(&in6->sin6_addr, e->addr, 16);
	return sizeof(*in6);
}

/* Returns how many bytes of the address tell two entries apart. */
static size_t core_av_key_len(const struct core_av_entry *e)
{
	return e->family == CORE_AV_IN4 ? 4 : sizeof(e->addr);
}

static bool core_av_is_same(const struct core_av_entry *a, const struct core_av_entry *b)
{
	return !memcmp(a->addr, b->addr, core_av_key_len(a)) && a->port_be == b->port_be &&
	       a->scope == b->scope && a->family == b->family;
}

static uint64_t core_av_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 p =
		(unsigned __int128)(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xD1B54A32D192ED03ull);

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t core_av_hash(const struct core_av_entry *e)
{
	uint64_t half[2] = { 0 };

	memcpy(half, e->addr, core_av_key_len(e));
	return core_av_mix(core_av_mix(half[0], half[1]),
			   (uint64_t)e->scope << 32 | (uint64_t)e->port_be << 8 | e->family);
}

/* --- hash --------------------------------------------------------------------------------- */

/* Returns the slot with the number of `e`, or the free one to put it in. */
static uint32_t *core_av_probe(const struct core_av *av, const struct core_av_entry *e)
{
	size_t i = core_av_hash(e) & av->hash_mask;

	while (av->hash[i] && !core_av_is_same(core_av_entry(av, av->hash[i] - 1), e))
		i = (i + 1) & av->hash_mask;
	return &av->hash[i];
}

static int core_av_hash_resize(struct core_av *av, size_t cnt)
{
	uint32_t *hash = calloc(cnt, sizeof(*hash));

	if (!hash)
		return -FI_ENOMEM;
	free(av->hash);
	av->hash = hash;
	av->hash_mask = cnt - 1;
	for (uint64_t idx = 0; idx < av->end; idx++) {
		if (core_av_is_used(av, idx))
			*core_av_probe(av, core_av_entry(av, idx)) = (uint32_t)idx + 1;
	}
	return 0;
}

static int core_av_hash_reserve(struct core_av *av)
{
	if (4 * (av->used_cnt + 1) <= 3 * (av->hash_mask + 1))
		return 0;
	return core_av_hash_resize(av, 2 * (av->hash_mask + 1));
}

static void core_av_hash_erase(struct core_av *av, uint32_t *slot)
{
	size_t gap = (size_t)(slot - av->hash);
	size_t i = (gap + 1) & av->hash_mask;

	for (; av->hash[i]; i = (i + 1) & av->hash_mask) {
		uint64_t home = core_av_hash(core_av_entry(av, av->hash[i] - 1));

		if (((i - home) & av->hash_mask) < ((i - gap) & av->hash_mask))
			continue;
		av->hash[gap] = av->hash[i];
		gap = i;
	}
	av->hash[gap] = 0;
}

/* --- indices -------------------------------------------------------------------------------- */

static int core_av_blocks_reserve(struct core_av *av)
{
	size_t max = av->block_max + av->block_max / 2 + 4;
	struct core_av_block *blocks;

	if (av->block_cnt < av->block_max)
		return 0;
	blocks = realloc(av->blocks, max * sizeof(*blocks));
	if (!blocks)
		return -FI_ENOMEM;
	av->blocks = blocks;
	av->block_max = max;
	return 0;
}

static int core_av_block_add(struct core_av *av)
{
	struct core_av_entry *entries;
	int ret = core_av_blocks_reserve(av);

	if (ret)
		return ret;
	entries = malloc(CORE_AV_BLOCK * sizeof(*entries));
	if (!entries)
		return -FI_ENOMEM;
	av->blocks[av->block_cnt++] = (struct core_av_block){ .entries = entries };
	return 0;
}

/* Finds the lowest index not in use. It stays free until core_av_use. */
static int core_av_lowest_free(struct core_av *av, uint64_t *idx)
{
	int ret;

	if (av->used_cnt == av->end)
		av->free_block = av->end / CORE_AV_BLOCK;
	while (av->free_block < av->block_cnt && !~av->blocks[av->free_block].used)
		av->free_block++;
	if (av->free_block == av->block_cnt) {
		if (av->end >= CORE_AV_MAX)
			return -FI_ENOMEM;
		ret = core_av_block_add(av);
		if (ret)
			return ret;
	}
	*idx = av->free_block * CORE_AV_BLOCK +
	       (unsigned)__builtin_ctzll(~av->blocks[av->free_block].used);
	return 0;
}

static void core_av_use(struct core_av *av, uint64_t idx, const struct core_av_entry *e)
{
	av->blocks[idx / CORE_AV_BLOCK].used |= 1ull << idx % CORE_AV_BLOCK;
	*core_av_entry(av, idx) = *e;
	av->used_cnt++;
	if (av->end <= idx)
		av->end = idx + 1;
}

/* --- the table ------------------------------------------------------------------------------ */

struct core_av *core_av_open(size_t count_hint)
{
	size_t want = count_hint < CORE_AV_HINT_MAX ? count_hint : CORE_AV_HINT_MAX;
	size_t cnt = util_pow2_ceil(want + want / 3 + CORE_AV_HASH_MIN);
	struct core_av *av = calloc(1, sizeof(*av));

	if (!av)
		return NULL;
	if (core_av_hash_resize(av, cnt)) {
		free(av);
		return NULL;
	}
	return av;
}

void core_av_close(struct core_av *av)
{
	for (size_t i = 0; i < av->block_cnt; i++)
		free(av->blocks[i].entries);
	free(av->blocks);
	free(av->hash);
	free(av);
}

/* Adds a reference to a known address, and the further addresses if it had none. */
static int core_av_get(struct core_av *av, uint64_t idx, const struct core_av_entry *again)
{
	static const uint8_t none[sizeof(again->addr)];
	struct core_av_entry *e = core_av_entry(av, idx);
	size_t key_len = core_av_key_len(e);

	if (e->ref_cnt == UINT32_MAX)
		return -FI_ENOMEM;
	e->ref_cnt++;
	if (!memcmp(e->addr + key_len, none, sizeof(e->addr) - key_len))
		memcpy(e->addr, again->addr, sizeof(e->addr));
	return 0;
}

int core_av_insert(struct core_av *av, const struct sockaddr *addr, uint64_t *idx)
{
	struct core_av_entry e;
	uint64_t at;
	int ret = core_av_pack(&e, addr);

	if (ret)
		return ret;
	at = *core_av_probe(av, &e);
	if (at) {
		ret = core_av_get(av, at - 1, &e);
		if (!ret)
			*idx = at - 1;
		return ret;
	}
	ret = core_av_hash_reserve(av);
	if (!ret)
		ret = core_av_lowest_free(av, &at);
	if (ret)
		return ret;
	e.ref_cnt = 1;
	*core_av_probe(av, &e) = (uint32_t)at + 1;
	core_av_use(av, at, &e);
	*idx = at;
	return 0;
}

int core_av_remove(struct core_av *av, uint64_t idx, bool *gone)
{
	struct core_av_entry *e;

	if (!core_av_is_used(av, idx))
		return -FI_EINVAL;
	e = core_av_entry(av, idx);
	*gone = !--e->ref_cnt;
	if (!*gone)
		return 0;
	core_av_hash_erase(av, core_av_probe(av, e));
	av->blocks[idx / CORE_AV_BLOCK].used &= ~(1ull << idx % CORE_AV_BLOCK);
	av->used_cnt--;
	if (av->free_block > idx / CORE_AV_BLOCK)
		av->free_block = idx / CORE_AV_BLOCK;
	return 0;
}

uint64_t core_av_find(const struct core_av *av, const struct sockaddr *addr)
{
	struct core_av_entry e;
	uint32_t number;

	if (core_av_pack(&e, addr))
		return CORE_AV_NONE;
	number = *core_av_probe(av, &e);
	return number ? number - 1 : CORE_AV_NONE;
}

socklen_t core_av_addr(const struct core_av *av, uint64_t idx, struct sockaddr_storage *addr)
{
	const struct core_av_entry *e;

	if (!core_av_is_used(av, idx))
		return 0;
	e = core_av_entry(av, idx);
	memset(addr, 0, sizeof(*addr));
	if (e->family == CORE_AV_IN4)
		return core_av_unpack4(e, (struct sockaddr_in *)addr);
	return core_av_unpack6(e, (struct sockaddr_in6 *)addr);
}

bool core_av_has(const struct core_av *av, uint64_t idx, const struct sockaddr *addr)
{
	struct sockaddr_storage name;

	return core_av_addr(av, idx, &name) && util_name_has((struct sockaddr *)&name, addr);
}

uint64_t core_av_end(const struct core_av *av)
{
	return av->end;
}
