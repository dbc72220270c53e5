/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two UDP endpoints that have resolved each other, and numbered contents of datagrams. */
#ifndef UDP_PAIR_H
#define UDP_PAIR_H

#include <stdbool.h>

#include "dev/udp/udp_dgram.h"

struct udp_pair {
	struct dev_dgram *dg[2];
	struct dev_dgram_ah *to[2]; /* to[i]: from i to the other */
};

/** Opens a pair on loopback, IPv4 or IPv6. Returns false if the machine lacks it. */
bool udp_pair_open(struct udp_pair *p, int family, uint32_t rx_cnt);
void udp_pair_close(struct udp_pair *p);

/** Fill and check the n-th datagram: `len` bytes that depend on n. */
void udp_fill_bytes(uint8_t *buf, uint32_t len, uint32_t n);
bool udp_check_bytes(const uint8_t *buf, uint32_t len, uint32_t n);

/** Polls until something has arrived, at most a minute. Returns the number of datagrams. */
int udp_pair_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt);

#endif
