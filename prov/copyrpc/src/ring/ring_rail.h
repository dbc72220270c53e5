/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rails: a second device of a transport, which moves half of each long get (docs/rails.md).
 *
 * A connection keeps its messages on the link of the first device. Where both ends have a second
 * one, it has a link there too, its *rail*, over the same rings. Nothing but gets goes over it,
 * until it takes the place of a first link that has failed (ring_takeover.h). A get of at least
 * RING_RAIL_MIN bytes is split into two parts, one for each link, which end on their own; the get
 * ends with the last one. A part that the rail did not finish is done again over the first link.
 * The rail of one end serves its own gets: the peer's device only responds.
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
#define RING_RAIL_FEATURE 1u           /* ring_params.features: a second description follows */

/** Second device of a transport. */
struct ring_rails {
	pthread_mutex_t lock;     /* Held while a link is made, and while `dev` changes */
	struct dev *dev;          /* NULL: none now */
	bool is_out;              /* No new links: the port is down, or the device has failed */
	uint32_t user_cnt;        /* Links on it; under the lock */
	uint32_t first_cnt;       /* Links on the first device; under the lock */
	uint64_t open_ns;         /* Earliest time of the next attempt to open it */
	uint64_t pause_ns;        /* From that attempt to the one after it, if it fails */
	int wait_fd;              /* Readable when one of the two devices is */
	struct util_list waiting; /* dev_get.dev_link: parts for which a link had no room */
	struct util_list taking;  /* ring_rail.taking: takeovers that are not complete */
	/*
	 * ring_conn.dirty_link and ring_ack.link while a rail takes over: nothing can leave, and
	 * threads may sleep. Never looked through
	 */
	struct util_list parked;
};

/** Steps of a takeover (ring_takeover.h). */
enum ring_rail_phase {
	RING_RAIL_BESIDE, /* The first link is in use */
	RING_RAIL_LEFT,   /* The first link has failed */
	RING_RAIL_SENT,   /* The peer knows what has arrived */
	RING_RAIL_TAKEN,  /* The rail is the connection's link */
};

/** Rail of a connection; kept, without its link, until the connection is freed. */
struct ring_rail {
	struct ring_conn *conn;
	struct dev_link *link; /* NULL: it failed, or has taken over */
	bool attached;
	bool is_tested;   /* A READ was posted to find out whether the peer is reached */
	bool is_ready;    /* The READ has come back */
	uint64_t lost_ns; /* Time at which one of the two links was lost, or 0 */
	enum ring_rail_phase phase;
	bool has_peer_pos;        /* The peer's position has arrived */
	uint32_t polls;           /* Progress calls since then, before the first link was left */
	uint64_t peer_pos;        /* Position up to which the peer has received */
	struct util_list taking;  /* In ring_rails.taking */
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
/**
 * Implements eng_transport_ops.is_unused: no link is left on the first device, and where links are
 * on the second one, that takes its place.
 */
bool ring_rails_is_unused(struct eng_transport *transport);
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
/**
 * Splits the description of the peer if it `has_rail`. Returns 0, or -FI_EIO if it is malformed.
 */
int ring_rail_split(const struct dev_desc *both, bool has_rail, struct dev_desc *first,
		    struct dev_desc *second);
/** Connects the rail behind the first link, or frees it. Control thread. */
void ring_rail_establish(struct ring_conn *conn, const struct dev_desc *second);
/** Counts a new link of the first device; ring_rail_close_link closes it. */
void ring_rails_add_link(struct ring_transport *transport);
void ring_rail_attach(struct ring_conn *conn);
/** Notes that the connection goes on over one device, for the time when both work. */
void ring_rail_lose(struct ring_conn *conn);
/**
 * Implements eng_transport_ops.improves: both devices work, and no takeover is in progress. A rail
 * that works is not asked for: the peer's may have failed, of which this end need not know.
 */
bool ring_rail_improves(const struct eng_conn *conn);
/** Ends the use of the rail's device. The rail's parts stay open. */
void ring_rail_drop(struct ring_conn *conn);
/** Frees the rail; before the link over whose rings it is. */
void ring_rail_free(struct ring_conn *conn);
/** Closes the connection's link, on either device. */
void ring_rail_close_link(struct ring_conn *conn);

/** Returns true if the get is to be split. */
bool ring_rail_takes(struct ring_conn *conn, const struct core_get *get);
/** Like core_chan_ops.get, in two parts. */
int ring_rail_get(struct ring_conn *conn, struct core_get *get);
/** Posts a part of a get. Returns like dev_link_ops.get, or an error of the registration. */
int ring_rail_post(struct ring_conn *conn, struct ring_get *part);
/**
 * Takes a part that has ended. Returns the get if it was the last one; the part is no longer valid
 * then.
 */
struct core_get *ring_rail_join(struct ring_get *part);

/** Adds the second device to an exposure of the first one. Returns 0 or -FI_E*. */
int ring_rail_expose(struct ring_conn *conn, const void *addr, size_t len,
		     struct core_exposure *exposure);
/** Ends the registrations of all exposures with the first or the second device. */
void ring_rail_release_first(struct ring_conn *conn);
void ring_rail_release_second(struct ring_conn *conn);
/** Ends an exposure with both devices. */
void ring_rail_unexpose(struct ring_conn *conn, struct core_exposure *exposure);

#endif
