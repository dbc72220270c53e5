/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulated network that implements dev/dgram.h to the letter, in the least helpful way.
 *
 * Any number of datagram endpoints in memory, over simulated time, deterministic by seed:
 *
 * 	send -> the sender's link (bytes_per_s) -> latency -> receiver's link (same rate, a queue
 * 	of queue_max bytes, excess is lost) -> a receive buffer (none: lost) -> poll
 *
 * Time advances only in fake_net_run and fake_net_step. Faults happen by chance (struct
 * fake_faults) or by a hook that sees each datagram at its send and may change it. fake_net_forge
 * adds datagrams with a forged source. poll_into guesses badly: where no datagram fits it still
 * writes to the target, and bytes in the target are in no buffer.
 *
 * Like UDP each send is copied at once. With inline_max below the mtu the device is like a NIC:
 * longer datagrams are gathered when they leave, tx_done lags, only poll reports, and only marked
 * datagrams and each 8th. fake_fail reports violations of dgram.h: bytes changed before tx_done,
 * too long, released twice, addresses left at close. Released buffers are freed and have their
 * exact length, so ASan finds reads beyond.
 *
 * Owner: one thread. Used by test/unit/erpc, test/stress, test/fuzz.
 */
#ifndef SUPPORT_FAKE_NET_H
#define SUPPORT_FAKE_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dgram.h"
#include "support/rng.h"

/** Chances of a datagram, each in parts of 1,000,000. */
struct fake_faults {
	uint32_t drop;
	uint32_t dup;
	uint32_t reorder; /* delayed by up to reorder_ns: later datagrams pass it */
	uint32_t corrupt; /* found by a checksum of the network: lost, and counted separately */
	uint32_t damage;  /* found by no checksum: 1 to 8 bits of the first 16 bytes change */
	uint64_t reorder_ns;
};

/** Datagram in flight. The hook may change all of it but the address of `data` and len. */
struct fake_pkt {
	uint32_t from; /* number of the port */
	uint32_t to;
	uint32_t len;
	uint64_t nth;      /* number of datagrams that all ports sent before */
	uint32_t copies;   /* 1; 0: lost */
	uint64_t delay_ns; /* added to the latency */
	bool as_seen;      /* set by the hook: no fault by chance */
	uint8_t *data;
};

struct fake_net_cnt {
	uint64_t sent;
	uint64_t delivered; /* put into a buffer */
	uint64_t dropped;   /* by chance or by the hook, including corrupt ones */
	uint64_t doubled;
	uint64_t reordered;
	uint64_t corrupt;
	uint64_t damaged;
	uint64_t queue_full;
	uint64_t no_buffer;
	uint64_t nobody; /* sent to a closed port */
	uint64_t forged;
};

struct fake_net {
	uint64_t now_ns;
	struct rng rng;
	/* Apply to ports opened from now on: */
	uint32_t mtu;        /* 1024 */
	uint32_t rx_room;    /* 0; reported only, without effect */
	uint32_t inline_max; /* = mtu at open when 0: like UDP */
	/* Apply to datagrams sent from now on: */
	uint64_t latency_ns; /* one way; 5000 */
	double bytes_per_s;  /* of each link; 0: unlimited */
	uint64_t queue_max;  /* bytes before a receiver's link; 0: unlimited */
	/* chance that send returns -FI_EAGAIN without cause, in parts of 1,000,000 */
	uint64_t busy_chance;
	struct fake_faults faults;
	void (*hook)(struct fake_net *net, struct fake_pkt *pkt, void *arg);
	void *hook_arg;
	struct fake_net_cnt cnt;

	struct fake_event *heap; /* datagrams in flight, the next one first */
	uint32_t heap_cnt;
	uint32_t heap_max;
	uint64_t event_seq;
	struct fake_port **ports; /* by number; NULL: closed */
	uint32_t port_cnt;
};

/** Port: an endpoint of the network. */
struct fake_port {
	struct dev_dgram base; /* First member */
	struct fake_net *net;
	uint32_t number;
	uint32_t tx_cnt;
	uint32_t ah_cnt;
	uint64_t egress_free_ns; /* time at which the link to the network has sent everything */
	uint64_t ingress_free_ns;
	uint64_t queue_peak; /* most bytes in the queue before the ingress */
	int status;          /* not 0: error that ended the endpoint; tests set it to break one */
	struct fake_tx *tx;  /* ring of tx_cnt datagrams, from tx_done on */
	struct fake_rx *rx;  /* rx_cnt buffers */
	uint32_t *order;     /* ring of rx_cnt: filled buffers, oldest first */
	uint32_t order_head, order_tail;
	uint32_t *free;
	uint32_t free_cnt;
	uint32_t into_head; /* order_head after the last poll_into, which returned into_cnt */
	uint32_t into_cnt;
	uint32_t into_turn; /* limits poll_into to one, two, ... datagrams in turn */
};

extern const struct dev_dgram_ops fake_net_ops;

void fake_net_init(struct fake_net *net, uint64_t seed);
/** Frees the network. No port may be open. */
void fake_net_fini(struct fake_net *net);

/** Returns the `dev` argument for fake_net_ops.open; attr->local is ignored. */
static inline struct dev *fake_net_dev(struct fake_net *net)
{
	return (struct dev *)net;
}

static inline struct fake_port *fake_port_of(struct dev_dgram *dg)
{
	return (struct fake_port *)dg;
}

/** Advances time to `until_ns` and delivers everything that arrives by then. */
void fake_net_run(struct fake_net *net, uint64_t until_ns);
/**
 * Advances time to the next arrival, at most to `until_ns`. Returns false if nothing arrived by
 * then.
 */
bool fake_net_step(struct fake_net *net, uint64_t until_ns);
/** Returns true if nothing is in flight. Filled buffers have arrived. */
static inline bool fake_net_is_idle(const struct fake_net *net)
{
	return !net->heap_cnt;
}

/** Delivers a datagram to `to` after delay_ns, with port `from` (open or not) as its source. */
void fake_net_forge(struct fake_net *net, uint32_t from, uint32_t to, const void *data,
		    uint32_t len, uint64_t delay_ns);

/* Shared between the two files of the network. */
void fake_net_send(struct fake_port *port, uint32_t to, const struct dev_dgram_out *out);
/** Returns a buffer for an arriving datagram of `len` bytes, or NULL. */
uint8_t *fake_port_take(struct fake_port *port, uint32_t from, uint32_t len);

#endif
