/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events of an RDMA device: a port going down, a broken queue, a dead device. Called
 * by m5_poll and vb_poll.
 *
 * Some failures give no completion: a dead device completes nothing, and a queue pair that only
 * receives gets no sign of a pulled cable. The kernel reports them as asynchronous events. Each is
 * logged with its meaning (ib_async_meaning). ib_async_run ends the links and datagram endpoints
 * that it concerns. Queue pairs that belong to no link alone are their device's matter.
 *
 * A port that is down ends all links after IB_PORT_DOWN_MS (or FI_COPYRPC_PEER_TIMEOUT, if that is
 * less) unless it comes back before: retransmission covers short outages. A port with another LID,
 * by an event of its own or after an outage, counts as a device that has failed: its links end,
 * and the device, opened again, has the new one.
 *
 * The polling thread reads events once in IB_ASYNC_TICKS idle polls (a system call each) and
 * whenever it arms. wait_fd is an epoll descriptor over the completion channel, the events and the
 * grace period's timer, so that each of them ends a sleep.
 *
 * Tests: test/unit/dev/ib/test_ib_async.c; test/integ/dev/dev_async on the device model and in
 * test/rxe.
 */
#ifndef DEV_IB_IB_ASYNC_H
#define DEV_IB_IB_ASYNC_H

#include <infiniband/verbs.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/ib/ib_dev.h"
#include "dev/ib/ib_qpns.h"
#include "util/list.h"

#define IB_PORT_DOWN_MS 2000u
#define IB_ASYNC_TICKS  65536u /* a power of two */

enum ib_async_what {
	IB_ASYNC_LOGGED,    /* only logged */
	IB_ASYNC_PORT_DOWN, /* the grace period begins */
	IB_ASYNC_PORT_UP,   /* the grace period ends */
	IB_ASYNC_LID,       /* the port's LID may have changed */
	IB_ASYNC_QP,        /* one queue pair failed */
	IB_ASYNC_ALL,       /* all of them failed */
};

struct ib_async_row {
	enum ib_async_what what;
	bool is_warning;
	const char *text; /* event and remedy */
};

/** Returns the meaning of an event, never NULL. */
const struct ib_async_row *ib_async_meaning(enum ibv_event_type type);

/** Event that ends links: `what` is IB_ASYNC_QP or IB_ASYNC_ALL. */
struct ib_async_event {
	enum ib_async_what what;
	uint32_t qpn; /* IB_ASYNC_QP */
	int err; /* error for the links; -FI_ENETDOWN for a port, where datagrams keep trying */
};

/** Event source of a device. Zero-filled: a device without events. */
struct ib_async {
	struct ib_dev *dev;
	uint32_t ticks;
	int wait_fd;
	int timer_fd;
	uint64_t deadline_ns; /* end of the grace period; 0: the port is up, or it is over */
	bool is_down;         /* the port is down, and the grace period is over */
	/* the device, or a queue that all links share; or its port has another LID */
	bool has_failed;
};

/** Starts reading events. chan_fd is the completion channel's. Returns 0 or an error, logged. */
int ib_async_init(struct ib_async *async, struct ib_dev *dev, int chan_fd);
/** Stops. Also allowed after a failed init, or none. */
void ib_async_fini(struct ib_async *async);

/** Reads events. Returns true with *event for one that ends links, false if none is left. */
bool ib_async_next(struct ib_async *async, struct ib_async_event *event);

/** Returns the state by the events read so far, for dev_ops.health. */
static inline int ib_async_health(const struct ib_async *async)
{
	if (async->has_failed)
		return -FI_EIO;
	return async->is_down ? -FI_ENETDOWN : 0;
}

/** Ends a link of ib_qpns. */
typedef void ib_async_fail_fn(void *link, int err);

/** Ends the links (`fail`) and endpoints (ib_ud.in_dev) that the event concerns. */
void ib_async_end(const struct ib_async_event *event, const struct ib_qpns *links,
		  struct util_list *uds, ib_async_fail_fn *fail);
/** Handles all events by ib_async_end. */
void ib_async_run(struct ib_async *async, const struct ib_qpns *links, struct util_list *uds,
		  ib_async_fail_fn *fail);

/** Returns true if this idle poll should read events. */
static inline bool ib_async_is_due(struct ib_async *async)
{
	return !(++async->ticks & (IB_ASYNC_TICKS - 1));
}

#endif
