/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What drives the datagram endpoints of a domain?
 *
 * An engine to core_dom, which asks it for progress and sleeps on it like on any other: so queues,
 * counters and wait objects work as they do above. Beyond that it has nothing of core_chan.h: no
 * peers, no channels, no handshake; ofi/ opens endpoints by dgram_ep.h and not by ep_open.
 *
 * Owner: whoever holds the domain. Shown by test/unit/dgram/test_dgram_engine.c.
 */
#ifndef DGRAM_ENGINE_H
#define DGRAM_ENGINE_H

#include "dgram/dgram_over.h"
#include "util/list.h"

struct dgram_engine {
	const struct dgram_over *over;
	struct dev *dev;      /* NULL: there is none below endpoints */
	struct util_list eps; /* dgram_ep.link */
	int wait_fd;          /* epoll over the endpoints' */
};

static inline struct dgram_engine *dgram_engine_of(struct core_engine *engine)
{
	return (struct dgram_engine *)engine;
}

/* core_engine_ops, but for open's first argument. */
int dgram_engine_open(const struct dgram_over *over, struct core_engine **engine);
void dgram_engine_close(struct core_engine *engine);
void dgram_engine_progress(struct core_engine *engine);
int dgram_engine_wait_fd(struct core_engine *engine);
int dgram_engine_arm(struct core_engine *engine);
void dgram_engine_disarm(struct core_engine *engine);

#define DGRAM_ENGINE_OPS_INIT(opens)                                                               \
	{                                                                                          \
		.name = "dgram", .open = (opens), .close = dgram_engine_close,                     \
		.progress = dgram_engine_progress, .wait_fd = dgram_engine_wait_fd,                \
		.arm = dgram_engine_arm, .disarm = dgram_engine_disarm,                            \
	}

#endif
