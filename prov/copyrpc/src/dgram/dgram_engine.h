/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engine of datagram endpoints. core_dom calls it for progress and sleeps on it like on any other
 * engine.
 *
 * Queues, counters and wait objects therefore work as for other endpoints. It implements nothing
 * else of core_chan.h: no peers, channels or handshake. ofi/ opens endpoints by dgram_ep.h and not
 * by ep_open.
 *
 * Owner: the thread that holds the domain. Tested by test/unit/dgram/test_dgram_engine.c.
 */
#ifndef DGRAM_DGRAM_ENGINE_H
#define DGRAM_DGRAM_ENGINE_H

#include "dgram/dgram_over.h"
#include "util/list.h"

struct dgram_engine {
	const struct dgram_over *over;
	struct dev *dev;      /* NULL: endpoints need no opened device */
	struct util_list eps; /* dgram_ep.link */
	int wait_fd;          /* Epoll descriptor over the endpoints' descriptors */
};

static inline struct dgram_engine *dgram_engine_of(struct core_engine *engine)
{
	return (struct dgram_engine *)engine;
}

/* Implement core_engine_ops, except for open's first argument. */
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
