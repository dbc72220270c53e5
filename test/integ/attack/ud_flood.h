/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of the attacker, for ud_attacked: what each flood sends. Random bytes, valid-looking
 * headers, connection requests, invented cookies, handshakes without an end, and packets in
 * sessions that no peer sends. Each function sends one packet, the i-th of its flood.
 */
#ifndef INTEG_UD_FLOOD_H
#define INTEG_UD_FLOOD_H

#include <stdint.h>

#include "ud_foe.h"

#define FOES 400u

extern struct foe foes[FOES];

uint64_t flood_random(void);

/** Adds the UDP ports of a process (of its endpoint, of its sessions) to those that are flooded. */
void flood_find_ports(pid_t pid);

void flood_garbage(struct foe *foe, uint32_t i);
/** Sends valid-looking headers, for sessions that may exist. */
void flood_headers(struct foe *foe, uint32_t i);
void flood_requests(struct foe *foe, uint32_t i);
/** Sends invented cookies, and those of another attacker. */
void flood_cookies(struct foe *foe, uint32_t i);
/** Sends the last cookie, and nothing after it. */
void flood_half_open(struct foe *foe, uint32_t i);
/** Sends packets with random contents in an established session. */
void flood_session(struct foe *foe, uint32_t i);

#endif
