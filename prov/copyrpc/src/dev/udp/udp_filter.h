/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Filter of a socket: the kernel drops datagrams that are not for the engine before they take room
 * in the receive buffer and wake the process. Called by udp_dgram.c.
 *
 * A classic BPF program, which needs no privileges. It keeps a flood of a stranger that does not
 * know the bytes to match from displacing the datagrams of peers. It is no check: the engine
 * validates every packet.
 */
#ifndef DEV_UDP_UDP_FILTER_H
#define DEV_UDP_UDP_FILTER_H

#include "dev/dgram.h"

/** Attaches the filter, if the kernel permits: otherwise all datagrams arrive. */
void udp_filter_attach(int fd, const struct dev_dgram_match *match, uint32_t match_cnt);

#endif
