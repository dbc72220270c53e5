/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two datagram endpoints with an AV that contains both, on the simulated network.
 *
 * Any failure here fails the test. With `inline_max` the device behaves like a NIC
 * (support/fake_net.h).
 */
#ifndef UNIT_DGRAM_PAIR_H
#define UNIT_DGRAM_PAIR_H

#include <criterion/criterion.h>

#include "dgram/dgram_ep.h"
#include "support/fake_net.h"

struct dgram_pair {
	struct fake_net net;
	struct dgram_engine engine;
	struct dgram_av *av;
	struct core_comp tx[2];
	struct core_comp rx[2];
	struct core_cq cq[2];
	struct core_cntr sent[2], received[2];
	struct dgram_ep *ep[2];
	uint64_t number[2]; /* Numbers in av */
	size_t min_multi_recv;
	uint32_t prefix; /* Set before dgram_pair_open */
};

/** Opens both endpoints. The caller has set up the network (fake_net_init). */
void dgram_pair_open(struct dgram_pair *p);
void dgram_pair_close(struct dgram_pair *p);

/** Delivers everything, with progress at both ends. */
void dgram_pair_run(struct dgram_pair *p);

/** Sends one buffer from ep[0] to ep[1]; the context is the buffer. */
int dgram_pair_send(struct dgram_pair *p, const void *buf, size_t len, uint64_t flags);
/** Posts a receive of one buffer at ep[1]; the context is the buffer. */
void dgram_pair_recv(struct dgram_pair *p, void *buf, size_t len, uint64_t flags);

/** Returns the next completion of end i, which must exist. err: the expected error. */
struct fi_cq_tagged_entry dgram_pair_take(struct dgram_pair *p, int i, int err);
/** Returns the number of completions of end i in its queue. */
uint64_t dgram_pair_left(const struct dgram_pair *p, int i);

#endif
