/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engine of datagram endpoints. core_dom calls it for progress and sleeps on it like on any other
 * engine.
 *
 * Implements the progress contract (core_progress_ops), so queues, counters and wait objects work
 * as for other endpoints. The peer contract (core_engine_ops) does not apply: there are no peers,
 * channels or handshake. ofi/ opens endpoints by dgram_ep.h.
 *
 * Owner: the thread that holds the domain.
 */
#ifndef DGRAM_DGRAM_ENGINE_H
#define DGRAM_DGRAM_ENGINE_H

#include "dgram/dgram_over.h"
#include "util/list.h"

struct dgram_engine {
	/* wait_fd: epoll descriptor over those of the endpoints, of the device and of the timer */
	struct core_progress base;
	const struct dgram_over *over;
	struct dev *dev;      /* NULL: endpoints need no opened device, or it is away */
	struct util_list eps; /* dgram_ep.link */
	int timer_fd;         /* dgram_outage.h; -1: none, no device is opened */
};

static inline struct dgram_engine *dgram_engine_of(struct core_progress *base)
{
	return UTIL_CONTAINER_OF(base, struct dgram_engine, base);
}

/** Lets `fd` wake threads. Returns 0 or -errno. */
int dgram_engine_watch(struct dgram_engine *engine, int fd);

/* Implement core_progress_ops, except for open's first argument. */
int dgram_engine_open(const struct dgram_over *over, struct core_progress **base);
void dgram_engine_close(struct core_progress *base);
void dgram_engine_progress(struct core_progress *base);
int dgram_engine_arm(struct core_progress *base);
void dgram_engine_disarm(struct core_progress *base);

#define DGRAM_PROGRESS_OPS(opens)                                                                  \
	{                                                                                          \
		.name = "dgram", .open = (opens), .close = dgram_engine_close,                     \
		.progress = dgram_engine_progress, .arm = dgram_engine_arm,                        \
		.disarm = dgram_engine_disarm,                                                     \
	}

#endif
