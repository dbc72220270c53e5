/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two whole engines in one process, with the handshake and its thread, for test/unit/engine.
 *
 * The test chooses their transports: rings over fake devices (ring_pair.h), or the fake transports
 * here, which carry nothing and record the engine's calls.
 */
#ifndef UNIT_ENG_FIXTURE_H
#define UNIT_ENG_FIXTURE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/core_ep.h"
#include "engine/eng_conn.h"
#include "engine/eng_engine.h"

struct whole {
	/* First member; zeroed: the engine reads whether the endpoint is a connected one */
	struct core_ep ep;
	struct core_engine *engine;
	struct core_engine_ep *eep;
	struct sockaddr_storage addr;
	struct core_chan *chan;
	int up, down, failed, aliased, msgs, regained;
	uint64_t alias_inc;
	struct sockaddr_storage alias_addr;
	int err;
	struct sockaddr_storage failed_addr;
};

extern struct whole wholes[2];

void whole_open(struct whole *w, const struct eng_transports *transports);
void whole_close(struct whole *w);
void whole_progress(struct whole *w);
void whole_close_chan(struct whole *w);

/** Opens both with these transports and connects them. */
void wholes_meet(const struct eng_transports *first, const struct eng_transports *second);
void wholes_connect(void);
void wholes_close(void);
/** Runs progress on both until *what is not 0; fails after some minutes. */
void wholes_until(const int *what);

/**
 * Fake transports. The engine's calls are appended to `fake_story`, one letter each: p prepare, e
 * establish, a attach, d drain, x end, s stop, f free; o ep_open, c ep_close.
 */
extern const struct eng_transport_ops fake_transport_ops[2]; /* Of paths SHM and NIC */
extern const struct eng_transports fake_transports_first, fake_transports_second,
	fake_transports_both;

struct fake_transport_cfg {
	int fail_open[2]; /* Per transport */
	int fail_port, fail_prepare, fail_establish, fail_attach;
	bool busy;        /* poll and arm report more work */
	bool peer_writes; /* withdraw returns false, and is recorded: w */
};

extern struct fake_transport_cfg fake_cfg;
extern char fake_story[256];
extern unsigned fake_polls[2];  /* Polls per transport */
extern enum eng_size fake_size; /* Of the last connection */

/** Returns how often the call `what` (a letter) was made. */
unsigned fake_calls(char what);

#endif
