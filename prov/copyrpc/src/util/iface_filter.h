/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Value of FI_COPYRPC_IFACE: which interfaces endpoints may use. Called by util/iface.c.
 *
 * A comma-separated list, best first, of
 *
 *   eth0, ib*        names and patterns of interfaces
 *   10.1.0.0/16      networks, and single addresses, IPv4 or IPv6
 *   mlx5_0, mlx5_0:1 RDMA devices, as UCX_NET_DEVICES has them: the interface over their port
 *   all              every interface
 *   !X, ^X           not X, which may be any of these
 *
 * A ^ before the first item applies to all items, as in UCX and Open MPI. A list without any
 * permitting item permits what it does not exclude. Pure.
 */
#ifndef UTIL_IFACE_FILTER_H
#define UTIL_IFACE_FILTER_H

struct sockaddr;
struct util_iface;

/**
 * Returns the index of the item that permits `it` (0 if none is needed), or -1 if it is not
 * permitted. An excluding item is stronger than a permitting one.
 */
int util_iface_filter_item(const char *filter, const struct util_iface *it);

/** Returns whether the first `prefix_len` bits of two addresses of one family are equal. */
int util_iface_filter_is_in(const struct sockaddr *a, const struct sockaddr *b,
			    unsigned prefix_len);

#endif
