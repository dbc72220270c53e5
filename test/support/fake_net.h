/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a network do that keeps dev/dgram.h to the letter and helps in nothing?
 *
 * Any number of datagram endpoints in memory, over simulated time, deterministic by seed:
 *
 *	send -> the sender's link (bytes_per_s) -> latency -> the receiver's link (the same rate, a queue
 *	of queue_max bytes, what does not fit is lost) -> a receive buffer (none: lost) -> poll
 *
 * Time stands still until fake_net_run or fake_net_step moves it: whoever polls sees what has come
 * by now. Faults by chance (struct fake_faults), and by a hook that sees each datagram when it is sent
 * and may change everything. Datagrams that nobody sent: fake_net_forge.
 *
 * poll_into guesses as badly as it may: where nothing fits it has written to the place all the same, and what
 * was put into its place is nowhere else.
 *
 * A device like UDP (copies: all is done at once) or, with inline_max below the mtu, like a NIC: what is
 * longer is gathered when it leaves, tx_done lags, reports come for what is marked and each 8th,
 * and only in poll. A rule of dgram.h that the user breaks ends the test with fake_fail: bytes
 * changed before tx_done, too long, released twice, addresses left at close. What is released is
 * freed, and has its exact length before: ASan sees who reads too much.
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
	uint32_t reorder; /* held back by up to reorder_ns: what comes behind passes it */
	uint32_t corrupt; /* a checksum of the wire finds it: lost, and counted apart */
	uint32_t
		damage; /* no checksum finds it: 1 to 8 bits of its first 16 bytes are other ones */
	uint64_t reorder_ns;
};

/** A datagram on its way. The hook may change all of it but `data`'s address and len. */
struct fake_pkt {
	uint32_t from; /* number of the port */
	uint32_t to;
	uint32_t len;
	uint64_t nth;      /* datagrams that were sent before it, by anybody */
	uint32_t copies;   /* 1; 0: lost */
	uint64_t delay_ns; /* on top of the latency */
	bool as_seen;      /* the hook has placed it: no fault by chance */
	uint8_t *data;
};

struct fake_net_cnt {
	uint64_t sent;
	uint64_t delivered; /* put into a buffer */
	uint64_t dropped;   /* by chance or by the hook, corrupt ones among them */
	uint64_t doubled;
	uint64_t reordered;
	uint64_t corrupt;
	uint64_t damaged;
	uint64_t queue_full;
	uint64_t no_buffer;
	uint64_t nobody; /* its port is closed */
	uint64_t forged;
};

struct fake_net {
	uint64_t now_ns;
	struct rng rng;
	/* Of ports opened from now on: */
	uint32_t mtu;        /* 1024 */
	uint32_t rx_room;    /* 0; only said */
	uint32_t inline_max; /* = mtu at open when 0: like UDP */
	/* Of datagrams sent from now on: */
	uint64_t latency_ns;  /* one way; 5000 */
	double bytes_per_s;   /* of each link; 0: endless */
	uint64_t queue_max;   /* bytes before a receiver's link; 0: endless */
	uint64_t busy_chance; /* send says -FI_EAGAIN for no reason, in parts of 1,000,000 */
	struct fake_faults faults;
	void (*hook)(struct fake_net *net, struct fake_pkt *pkt, void *arg);
	void *hook_arg;
	struct fake_net_cnt cnt;

	struct fake_event *heap; /* on the way, the next one first */
	uint32_t heap_cnt;
	uint32_t heap_max;
	uint64_t event_seq;
	struct fake_port **ports; /* by number; NULL: closed */
	uint32_t port_cnt;
};

/** A port: an endpoint of the network. */
struct fake_port {
	struct dev_dgram base; /* first */
	struct fake_net *net;
	uint32_t number;
	uint32_t tx_cnt;
	uint32_t ah_cnt;
	uint64_t egress_free_ns; /* when the link to the network has sent everything */
	uint64_t ingress_free_ns;
	uint64_t queue_peak; /* bytes that stood before the ingress */
	int status;          /* not 0: what ended the endpoint; set it to break one */
	struct fake_tx *tx;  /* ring of tx_cnt, of datagrams from tx_done on */
	struct fake_rx *rx;  /* rx_cnt buffers */
	uint32_t *order;     /* ring of rx_cnt: filled buffers, oldest first */
	uint32_t order_head, order_tail;
	uint32_t *free;
	uint32_t free_cnt;
	uint32_t into_head; /* order_head behind the last poll_into, which gave into_cnt */
	uint32_t into_cnt;
	uint32_t into_turn; /* poll_into gives one, two, ... datagrams at most, in turn */
};

extern const struct dev_dgram_ops fake_net_ops;

void fake_net_init(struct fake_net *net, uint64_t seed);
/** No port is open. */
void fake_net_fini(struct fake_net *net);

/** What to pass as `dev` to fake_net_ops.open; attr->local is not looked at. */
static inline struct dev *fake_net_dev(struct fake_net *net)
{
	return (struct dev *)net;
}

static inline struct fake_port *fake_port_of(struct dev_dgram *dg)
{
	return (struct fake_port *)dg;
}

/** Moves time to `until_ns`, with everything that arrives by then. */
void fake_net_run(struct fake_net *net, uint64_t until_ns);
/** Moves time to the next arrival, but not beyond `until_ns`. False: nothing arrived by then. */
bool fake_net_step(struct fake_net *net, uint64_t until_ns);
/** Nothing is on its way (what is in buffers has arrived). */
static inline bool fake_net_is_idle(const struct fake_net *net)
{
	return !net->heap_cnt;
}

/** A datagram that looks as if port `from` (open or not) had sent it arrives at `to` after delay_ns. */
void fake_net_forge(struct fake_net *net, uint32_t from, uint32_t to, const void *data,
		    uint32_t len, uint64_t delay_ns);

/* Between the two files of the network. */
void fake_net_send(struct fake_port *port, uint32_t to, const struct dev_dgram_out *out);
/** It has come: takes a buffer for `len` bytes, or NULL. */
uint8_t *fake_port_take(struct fake_port *port, uint32_t from, uint32_t len);

#endif
