/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Outages of a transport's device: its port is down for longer than connections outlast, or it has
 * failed (dev_ops.health).
 *
 *   0 --port down--> -FI_ENETDOWN --port up--> 0
 *   0 --failed--> -FI_EIO --no link left, closed--> -FI_ENODEV --opened again--> 0
 *
 * The connections end by themselves (DEV_EV_DOWN). Meanwhile the handshake knows that the path is
 * down, and takes another one if both ends have one. Otherwise requests wait: for the port by what
 * the device does, for a failed device by -FI_ENODEV from prepare, which is temporary. A failed
 * device is closed when no connection refers to it any more, and opened again once it is back;
 * regions that were registered with it are registered again. States of endpoints
 * (eng_transport_ops.ep_open) are closed with it, and made anew by the next connection.
 * Connections that were made meanwhile and take a worse path end as soon as both ends agree, for
 * one over the device (core_failback.h). Likewise those that lack one of several devices of their
 * path, for one by the same path.
 *
 * Called by progress: eng_outage_look where a connection failed, and at ENG_EVENT_LOOK, every
 * ENG_OUTAGE_LOOK_MS while progress is made; in an outage, of sleeping threads too. The control
 * thread calls eng_outage_enter and eng_outage_leave around prepare. `device_lock` of the engine
 * is between them: no connection is prepared while a device is opened.
 *
 * Tests: test/unit/engine/test_eng_outage.c; test/integ/peer/outage on the device model.
 */
#ifndef ENGINE_ENG_OUTAGE_H
#define ENGINE_ENG_OUTAGE_H

#include <rdma/fi_errno.h>
#include <stdbool.h>

#include "engine/eng_engine.h"

#define ENG_OUTAGE_LOOK_MS 1000

/** Returns true if a device of the engine can fail. */
bool eng_outage_is_possible(struct core_engine *engine);

/** Looks at all devices, and tries to open those that have failed. */
void eng_outage_look(struct core_engine *engine);

/** Returns true while the transport has no device. */
static inline bool eng_outage_is_closed(const struct eng_transport *transport)
{
	return transport->outage == -FI_ENODEV;
}

/**
 * Begins to prepare a connection. Returns 0 with device_lock held, or -FI_ENODEV while the device
 * has failed.
 */
int eng_outage_enter(struct eng_transport *transport);
/**
 * Ends it: `ret` is the result of prepare. Returns the error to refuse the connection with: once
 * -FI_ENODEV for -FI_EIO, as that may be the first sign of a failed device, and looks at it.
 */
int eng_outage_leave(struct core_engine_ep *eep, struct eng_transport *transport, int ret);

/** Ends a use that eng_outage_leave began with `ret` 0: the connection is freed. */
void eng_outage_put(struct eng_transport *transport);

/** Notes the better paths that are out, for the time when they are back. */
void eng_outage_on_up(struct eng_conn *conn);
/** Notes that the connection lacks a device of its own path, which may be back some time. */
void eng_outage_lacks(struct eng_conn *conn);

/** Implements core_chan_ops.better. */
uint32_t eng_chan_better(struct core_chan *chan, bool regained);

/** States the paths that are down to the handshake of a new endpoint. */
void eng_outage_tell(struct core_engine_ep *eep);

#endif
