/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two whole engines in one process, with the handshake and its thread, for test/unit/engine.
 *
 * Their transports are the test's choice: rings over fake devices (ring_pair.h), or the fake transports here,
 * which carry nothing and write down what the engine asks of them.
 */
#ifndef UNIT_ENG_FIXTURE_H
#define UNIT_ENG_FIXTURE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/core_ep.h"
#include "engine/eng_conn.h"
#include "engine/eng_engine.h"

struct whole {
	struct core_ep ep; /* first; zero: an engine looks whether it is a connected one */
	struct core_engine *engine;
	struct core_engine_ep *eep;
	struct sockaddr_storage addr;
	struct core_chan *chan;
	int up, down, failed, msgs;
	int err;
	struct sockaddr_storage failed_addr;
};

extern struct whole wholes[2];

void whole_open(struct whole *w, const struct eng_transports *transports);
void whole_close(struct whole *w);
void whole_progress(struct whole *w);
void whole_close_chan(struct whole *w);

/** Both are opened, with these transports, and have met. */
void wholes_meet(const struct eng_transports *first, const struct eng_transports *second);
void wholes_connect(void);
void wholes_close(void);
/** Progress on both until *what is not 0; it fails after some minutes. */
void wholes_until(const int *what);

/**
 * Lanes that carry nothing. What the engine asks, in the order of calls, goes to the end of `fake_story`:
 * p prepare, e establish, a attach, d drain, x end, s stop, f free; o ep_open, c ep_close.
 */
extern const struct eng_transport_ops fake_transport_ops[2]; /* of paths SHM and NIC */
extern const struct eng_transports fake_transports_first, fake_transports_second,
	fake_transports_both;

struct fake_transport_cfg {
	int fail_open[2]; /* of either */
	int fail_port, fail_prepare, fail_establish, fail_attach;
	bool busy; /* poll and arm say that there is more */
};

extern struct fake_transport_cfg fake_cfg;
extern char fake_story[256];
extern unsigned fake_polls[2]; /* of either kind of transport */

/** Is `what` (a letter) in the story so many times? */
unsigned fake_told(char what);

#endif
