/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions between the two whole engines of eng_fixture.h, whose only transport has them. */
#ifndef UNIT_ERPC_SESSIONS_FIXTURE_H
#define UNIT_ERPC_SESSIONS_FIXTURE_H

#include <stdbool.h>

#include "erpc/transport/erpc_transport.h"
#include "unit/engine/eng_fixture.h"

struct eng_transport *transport_of(const struct whole *w);
struct erpc_transport *erpc_of(const struct whole *w);

/** Sends a message, and requests its acknowledgement. */
void send_one(struct whole *from);
/** Sends a message and makes progress until it has arrived. */
void send_and_receive(struct whole *from, struct whole *to);

/** Waits until both ends have responses to everything. */
void settle(void);

/** Calls progress until the thread may sleep. */
void arm(struct whole *w);
/** Returns true if a thread that sleeps for at most `ms` is woken. */
bool wakes(struct whole *w, int ms);

#endif
