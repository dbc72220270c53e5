/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rails: a second device of a transport, which moves half of each long get (docs/rails.md).
 *
 * A connection keeps its messages on the link of the first device. Where both ends have a second
 * one, it has a link there too, its *rail*. The ring of that link is not used: nothing but gets
 * goes over it. A get of at least RING_RAIL_MIN bytes is split into two parts, one for each link,
 * which end on their own; the get ends with the last one. A part that the rail did not finish is
 * done again over the first link. The rail of one end serves its own gets: the peer's device only
 * responds.
 *
 * Key of an exposure: that of the first device, and that of the second one in the upper 32 bits; 0
 * there if it has none.
 *
 * Owner: the thread that holds the domain. Links are made by the control thread: `lock` guards the
 * device against its end meanwhile. All of this exists only with FI_COPYRPC_RAILS 2.
 */
#ifndef RING_RING_RAIL_H
#define RING_RING_RAIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_bulk.h"
#include "ring/ring_conn.h"
#include "ring/ring_transport.h"

#define RING_RAIL_MIN     (128u << 10) /* Shortest get that is split */
#define RING_RAIL_ALIGN   4096u        /* Bytes of the first part are a multiple */
#define RING_RAIL_RING    1024u        /* Bytes of the ring of its link, which nothing uses */
#define RING_RAIL_FEATURE 1u           /* ring_params.features: a second description follows */

/** Second device of a transport. */
struct ring_rails {
	pthread_mutex_t lock;     /* Held while a link is made, and while `dev` changes */
	struct dev *dev;          /* NULL: none now */
	bool is_out;              /* No new links: the port is down, or the device has failed */
	uint32_t user_cnt;        /* Links on it; under the lock */
	uint64_t open_ns;         /* Earliest time of the next attempt to open it */
	uint64_t pause_ns;        /* From that attempt to the one after it, if it fails */
	int wait_fd;              /* Readable when one of the two devices is */
	struct util_list waiting; /* dev_get.dev_link: parts for which a link had no room */
};

/** Rail of a connection; kept, without its link, until the connection is freed. */
struct ring_rail {
	struct dev_link *link; /* NULL: it failed */
	bool attached;
	bool is_tested;           /* A READ was posted to find out whether the peer is reached */
	bool is_ready;            /* The READ has come back */
	struct util_list exposed; /* ring_exposed.link */
	struct util_list stripes; /* ring_stripe.link: gets in two parts that are in progress */
};

/** Opens the second device, if the parameter and the device permit one. Returns 0 or -FI_E*. */
int ring_rails_open(struct ring_transport *transport);
void ring_rails_close(struct ring_transport *transport);
/**
 * Returns the state of the transport: out only if both devices are. -FI_EIO if the first one is out
 * and the second one is not, so that ring_rails_swap follows. Opens a second device again.
 */
int ring_rails_health(struct ring_transport *transport);
/** Makes the second device the first one. Returns false if it is out, too. */
bool ring_rails_swap(struct ring_transport *transport);
/** Opens the first device, on another port than the second one. Returns 0 or -FI_E*. */
int ring_rails_open_first(struct ring_transport *transport);
/** Adds the first device to those waited for, or removes it, before it is closed. */
void ring_rails_watch(struct ring_transport *transport, bool on);
/** Processes events of the second device. Returns true if there may be more. */
bool ring_rails_poll(struct ring_transport *transport);
/** Like ring_transport_arm, for the second device. */
int ring_rails_arm(struct ring_transport *transport);

/**
 * Makes the local half of a rail, and appends its description, unless the transport has no second
 * device. Returns true if it did. Control thread.
 */
bool ring_rail_prepare(struct ring_conn *conn, struct ring_transport *transport,
		       struct dev_desc *desc);
/** Splits the description of the peer if it `has_rail`, and connects the rail. Control thread. */
int ring_rail_establish(struct ring_conn *conn, bool has_rail, struct dev_desc *first,
			const struct dev_desc *both);
void ring_rail_attach(struct ring_conn *conn);
/** Ends the use of the rail's device. The rail's parts stay open. */
void ring_rail_drop(struct ring_conn *conn);
void ring_rail_free(struct ring_conn *conn);

/** Returns true if the get is to be split. */
bool ring_rail_takes(struct ring_conn *conn, const struct core_get *get);
/** Like core_chan_ops.get, in two parts. */
int ring_rail_get(struct ring_conn *conn, struct core_get *get);
/** Frees the parts of gets that are open while the connection closes. The links are detached. */
void ring_rail_abandon(struct ring_conn *conn);
/**
 * Takes a part that has ended. Returns the get if it was the last one; the part is no longer valid
 * then.
 */
struct core_get *ring_rail_join(struct ring_get *part);

/** Adds the second device to an exposure of the first one. Returns 0 or -FI_ENOMEM. */
int ring_rail_expose(struct ring_conn *conn, const void *addr, size_t len,
		     struct core_exposure *exposure);
/** Removes it: exposure->engine is that of the first device again. */
void ring_rail_unexpose(struct ring_conn *conn, struct core_exposure *exposure);

#endif
