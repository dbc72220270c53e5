/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Choice of the GID that peers get. Called by ib_dev.c.
 *
 * On Ethernet: RoCE v2 with an IPv4 address, then with a routable IPv6 address, then link-local,
 * then RoCE v1; the lowest index among equals. On InfiniBand: index 0, the port's own.
 */
#ifndef DEV_IB_IB_GID_H
#define DEV_IB_IB_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#define IB_GID_TEXT_MAX 64

/** Returns the rank of an entry: 0 if it is unusable, higher is better. */
unsigned ib_gid_rank(const struct ibv_gid_entry *entry);

/** Returns the position in table[] of the best entry, or -1. */
int ib_gid_pick(const struct ibv_gid_entry *table, size_t cnt);

/**
 * Returns true if two entries are of one kind, so that one may take the place of the other: their
 * type, and whether they hold IPv4 addresses.
 */
bool ib_gid_is_like(const struct ibv_gid_entry *a, const struct ibv_gid_entry *b);

/** Formats a GID: IPv4 if it holds an IPv4 address, otherwise IPv6. Returns buf. */
const char *ib_gid_text(const union ibv_gid *gid, char buf[IB_GID_TEXT_MAX]);

#endif
