/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which address is peer number n, and which number has this address?
 *
 * The table behind fi_av: addresses in insertion order, index = fi_addr_t (for FI_AV_MAP and
 * FI_AV_TABLE alike), and a hash for the way back. An address inserted twice keeps its index and
 * counts its references; a removed index is handed out again, lowest first. Two addresses are the
 * same if family, address and port are, and the scope of a link-local IPv6 address; its flow label
 * is not kept, nor the scope of any other. A merely known peer costs 28 bytes here (a packed IPv4
 * or IPv6 address) and at most 11 in the hash; with the endpoint's pointer to its peer that stays
 * under 64. Addresses stand in blocks of 64 that never move. Not locked.
 *
 * Shown by test/unit/core/test_core_av.c.
 */
#ifndef CORE_AV_H
#define CORE_AV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CORE_AV_NONE UINT64_MAX /* == FI_ADDR_NOTAVAIL */

struct core_av;

struct core_av *core_av_open(size_t count_hint); /* NULL: no memory */
void core_av_close(struct core_av *av);

/** 0 and *idx (known already: the same index again); -FI_EINVAL (family, port 0), -FI_ENOMEM. */
int core_av_insert(struct core_av *av, const struct sockaddr *addr, uint64_t *idx);

/** Drops one reference: 0, or -FI_EINVAL for an index that is not in use. *gone: the last one. */
int core_av_remove(struct core_av *av, uint64_t idx, bool *gone);

/** The index of `addr`, or CORE_AV_NONE. */
uint64_t core_av_find(const struct core_av *av, const struct sockaddr *addr);

/** The address of `idx` in *addr: its length, or 0 if the index is not in use. */
socklen_t core_av_addr(const struct core_av *av, uint64_t idx, struct sockaddr_storage *addr);

/** Indices ever used: every valid one is below. */
uint64_t core_av_end(const struct core_av *av);

/** Bytes of memory that the table holds now. */
size_t core_av_mem(const struct core_av *av);

#endif
