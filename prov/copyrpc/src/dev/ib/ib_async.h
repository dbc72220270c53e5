/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does the device say of itself: a port that goes down, a queue that broke, its own end?
 *
 * Some failures give no completion: a device that is gone completes nothing, and a queue pair that only
 * receives never hears that its cable was pulled. The kernel tells of them by asynchronous events.
 * Each is logged with what it means (ib_async_meaning); those that end links come out of
 * ib_async_next, for the device to carry out.
 *
 * A port that is down ends all links after IB_PORT_DOWN_MS (or FI_COPYRPC_PEER_TIMEOUT, if that is
 * less) unless it comes back before: a moment's outage is what retransmission is for.
 *
 * Who looks: whoever polls, once in IB_ASYNC_TICKS idle polls (a system call each) and whenever it
 * arms to sleep. wait_fd is an epoll descriptor over the completion channel, the events and the
 * deadline of a port that is down, so that each of them ends a sleep.
 *
 * Owner: who polls. Shown by test/unit/dev/ib/test_ib_async.c, and by test/integ/dev_news on the
 * device model and in test/rxe.
 */
#ifndef IB_IB_ASYNC_H
#define IB_IB_ASYNC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/ib/ib_dev.h"

#define IB_PORT_DOWN_MS 2000u
#define IB_ASYNC_TICKS  65536u /* a power of two */

enum ib_async_what {
	IB_ASYNC_TOLD,      /* nothing to do but the line in the log */
	IB_ASYNC_PORT_DOWN, /* the clock starts */
	IB_ASYNC_PORT_UP,   /* and stops */
	IB_ASYNC_QP,        /* one queue pair is at its end */
	IB_ASYNC_ALL,       /* all of them are */
};

struct ib_async_row {
	enum ib_async_what what;
	bool is_warning;
	const char *text; /* what happened, and what to do */
};

/** Never NULL: an event that is not known says so. */
const struct ib_async_row *ib_async_meaning(enum ibv_event_type type);

/** Links that end: `what` is IB_ASYNC_QP or IB_ASYNC_ALL. */
struct ib_async_event {
	enum ib_async_what what;
	uint32_t qpn; /* IB_ASYNC_QP */
	int err;      /* -FI_E*: -FI_ENETDOWN for a port, for which datagrams go on trying */
};

/** Zero-filled: a device that says nothing. */
struct ib_async {
	struct ib_dev *dev;
	uint32_t ticks;
	int wait_fd;
	int timer_fd;
	uint64_t deadline_ns; /* the port is down: links end then; 0: it is up */
};

/** chan_fd: the completion channel's. 0 or -FI_E*, logged. */
int ib_async_init(struct ib_async *async, struct ib_dev *dev, int chan_fd);
/** Also after an init that failed, or none. */
void ib_async_fini(struct ib_async *async);

/** Reads what there is: true and *news, or false when nothing ends any more. */
bool ib_async_next(struct ib_async *async, struct ib_async_event *news);

/** An idle poll: is it time to look? */
static inline bool ib_async_is_due(struct ib_async *async)
{
	return !(++async->ticks & (IB_ASYNC_TICKS - 1));
}

#endif
