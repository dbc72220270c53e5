/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring transport of an engine (engine/eng_transport.h): one device with links, and the loop
 * compiled for it.
 *
 * ring_template.h defines a transport's ops table. Owner: the engine, which provides the
 * memory; the lists belong to the thread that holds the domain.
 */
#ifndef RING_RING_TRANSPORT_H
#define RING_RING_TRANSPORT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "engine/eng_transport.h"
#include "ring/ring_bounce.h"
#include "ring/ring_conn.h"
#include "util/list.h"

struct ring_rails;

struct ring_transport {
	struct eng_transport eng; /* First member */
	const struct dev_ops *dev_ops;
	struct dev *dev; /* NULL: none, after a reopen that failed */
	const struct core_chan_ops *chan_ops;
	struct util_list dirty; /* ring_conn.dirty_link: connections with something to send */
	/* Devices that move the bytes (ring_ack.h). */
	struct util_list unacked; /* ring_ack.link: connections with awaited arrival */
	uint64_t unacked_ns;      /* Start of the current tick */
	uint32_t unacked_polls;   /* Progress calls since then */
	uint32_t unacked_tick;
	uint32_t polls; /* Progress calls, modulo 2^32 */
	struct ring_bounce bounce;
	struct util_list regs;    /* ring_reg.link: registrations of regions (ring_direct.c) */
	struct util_list movable; /* ring_conn.balance_link (ring_balance.h) */
	uint64_t balanced_ns;     /* Time of the last look at them */
	struct ring_rails *rails; /* Second device (ring_rail.h); NULL: there is one */
};

static_assert(sizeof(struct ring_transport) <= sizeof(union eng_transport_space), "it lies there");

static inline struct ring_transport *ring_transport_of(struct eng_transport *transport)
{
	return (struct ring_transport *)transport;
}

static inline struct ring_transport *ring_conn_transport(const struct ring_conn *conn)
{
	return ring_transport_of(conn->eng.transport);
}

/** Returns true if the device moves only registered memory. */
static inline bool ring_transport_registers(const struct ring_transport *transport)
{
	return transport->dev_ops->mem_reg;
}

/*
 * Functions common to all transports: ring_transport.c, ring_life.c, and ring_setup.c (control
 * thread).
 */
/** `rails_ops` replaces the transport's ops if it has rails; NULL: it has none. */
int ring_transport_open(struct eng_transport *transport, const struct dev_ops *dev_ops,
			const struct core_chan_ops *chan_ops,
			const struct eng_transport_ops *rails_ops);
void ring_transport_close(struct eng_transport *transport);
/** Implement eng_transport_ops.health and reopen. */
int ring_transport_health(struct eng_transport *transport);
int ring_transport_reopen(struct eng_transport *transport);
int ring_transport_wait_fd(struct eng_transport *transport);
int ring_transport_arm(struct eng_transport *transport);
void ring_transport_disarm(struct eng_transport *transport);
/** Implements core_chan_ops.call_room. */
size_t ring_transport_call_room(struct core_chan *chan, size_t len, uint32_t resp_max);
/** Implements core_chan_ops.call_shortage. */
enum core_shortage ring_transport_call_shortage(const struct core_chan *chan, size_t len,
						uint32_t resp_max);
/** Implements core_chan_ops.positions. */
void ring_transport_positions(struct core_chan *chan, uint64_t *sent, uint64_t *parsed);
/** Records why a call of `span` bytes was refused with `err`. Returns `err`. */
int ring_transport_refuse_cold(struct ring_conn *conn, uint64_t span, uint32_t resp_max, int err);
/** Counts a message that finds no space. Returns -FI_EAGAIN. */
int ring_transport_no_space_cold(struct ring_conn *conn);

const char *ring_life_name(const struct eng_conn *conn);
int ring_life_attach(struct eng_conn *conn);
bool ring_life_has_received(const struct eng_conn *conn);
void ring_life_drain(struct eng_conn *conn);
bool ring_life_withdraw(struct eng_conn *conn);
void ring_life_end(struct eng_conn *conn);
void ring_life_stop(struct eng_conn *conn);
void ring_life_free(struct eng_conn *conn);

int ring_setup_prepare(struct eng_transport *transport, struct core_engine_ep *eep, void *ep_state,
		       enum eng_size size, struct cm_params *params, struct eng_conn **conn);
int ring_setup_establish(struct eng_conn *conn, const struct cm_params *peer);

#endif
