/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vector: the table behind fi_av. Called by ofi/domain and core_peer.
 *
 * Addresses are in insertion order, index = fi_addr_t (for FI_AV_MAP and FI_AV_TABLE alike). A hash
 * maps addresses to indices. An address inserted twice keeps its index and counts references. A
 * removed index is reused, lowest first. Two addresses are equal if family, address and port are,
 * and the scope of a link-local IPv6 address. Flow labels and other scopes are not kept. The
 * further addresses of a name (util/name.h) are, and tell no names apart: those inserted first
 * stay.
 *
 * An address costs 28 bytes and at most 11 in the hash; with the endpoint's pointer to its peer
 * less than 64. Entries are in blocks of 64 that never move. Not locked.
 */
#ifndef CORE_CORE_AV_H
#define CORE_CORE_AV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CORE_AV_NONE UINT64_MAX /* == FI_ADDR_NOTAVAIL */

struct core_av;

struct core_av *core_av_open(size_t count_hint); /* NULL: no memory */
void core_av_close(struct core_av *av);

/**
 * Inserts an address. Returns 0 and *idx (of a known address: its index), -FI_EINVAL (family, port
 * 0) or -FI_ENOMEM.
 */
int core_av_insert(struct core_av *av, const struct sockaddr *addr, uint64_t *idx);

/**
 * Drops one reference. Returns 0, or -FI_EINVAL for an index not in use. Sets *gone if it was the
 * last.
 */
int core_av_remove(struct core_av *av, uint64_t idx, bool *gone);

/** Returns the index of `addr`, or CORE_AV_NONE. */
uint64_t core_av_find(const struct core_av *av, const struct sockaddr *addr);

/**
 * Returns the length of the address of `idx` and sets *addr, or returns 0 for an index not in use.
 */
socklen_t core_av_addr(const struct core_av *av, uint64_t idx, struct sockaddr_storage *addr);

/** Returns whether the name of `idx` has the address `addr`, as its first or as a further one. */
bool core_av_has(const struct core_av *av, uint64_t idx, const struct sockaddr *addr);

/** Returns the number of indices ever used: an upper bound of all valid ones. */
uint64_t core_av_end(const struct core_av *av);

#endif
