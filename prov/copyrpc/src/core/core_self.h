/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Loopback channel: its other end is the same endpoint. A send is an up-call, so is the reply to a
 * call; a get is a memcpy. Only memory can run out. Opened by core_peer.
 */
#ifndef CORE_CORE_SELF_H
#define CORE_CORE_SELF_H

struct core_chan;

/** Opens a loopback channel, freed by ops->close. NULL: no memory. */
struct core_chan *core_self_open(void);

#endif
