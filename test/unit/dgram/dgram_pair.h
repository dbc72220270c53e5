/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two datagram endpoints that know each other and themselves, on the simulated network.
 *
 * Whatever fails here fails the test. With `inline_max` the device is like a NIC (support/fake_net.h).
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
	uint64_t number[2]; /* in av */
	size_t min_multi_recv;
	uint32_t prefix; /* set before dgram_pair_open */
};

/** The network is set up already (fake_net_init). */
void dgram_pair_open(struct dgram_pair *p);
void dgram_pair_close(struct dgram_pair *p);

/** Lets everything arrive, with progress at both ends. */
void dgram_pair_run(struct dgram_pair *p);

/** A send of one buffer by ep[0] to ep[1]; its context is the buffer. */
int dgram_pair_send(struct dgram_pair *p, const void *buf, size_t len, uint64_t flags);
/** A receive of one buffer by ep[1]; its context is the buffer. */
void dgram_pair_recv(struct dgram_pair *p, void *buf, size_t len, uint64_t flags);

/** The next completion of end i, which must be there. err: the error it must have. */
struct fi_cq_tagged_entry dgram_pair_take(struct dgram_pair *p, int i, int err);
/** Completions of end i that nobody has taken. */
uint64_t dgram_pair_left(const struct dgram_pair *p, int i);

#endif
