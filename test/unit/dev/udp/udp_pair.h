/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two UDP endpoints that know each other, and bytes whose contents tell where they belong. */
#ifndef UDP_PAIR_H
#define UDP_PAIR_H

#include <stdbool.h>

#include "dev/udp/udp_dgram.h"

struct udp_pair {
	struct dev_dgram *dg[2];
	struct dev_dgram_ah *to[2]; /* to[i]: from i to the other */
};

/** On loopback, IPv4 or IPv6: false if that is not there. */
bool udp_pair_open(struct udp_pair *p, int family, uint32_t rx_cnt);
void udp_pair_close(struct udp_pair *p);

/** The n-th datagram: `len` bytes that depend on n. */
void udp_fill_bytes(uint8_t *buf, uint32_t len, uint32_t n);
bool udp_check_bytes(const uint8_t *buf, uint32_t len, uint32_t n);

/** Polls until something is there, at most a minute: how many. */
int udp_pair_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);

#endif
