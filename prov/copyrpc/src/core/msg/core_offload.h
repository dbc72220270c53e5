/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching by the device (FI_COPYRPC_TAG_OFFLOAD): long tagged receives are in a list of the
 * device too (core_tags.h), and long tagged sends are requests to the peer's list. The rendezvous
 * then needs no processor at the receiver. Called by core_rx.c, core_rx_post.c, core_tx.c,
 * core_tx_bulk.c, core_unexp.c and core_modules.c; core_offload.c has lists and peers,
 * core_offload_tx.c sends, core_offload_rx.c receives.
 *
 * Nothing orders a request and what is in a peer's ring. So
 *
 *   - a request leaves only when the peer has parsed all earlier messages of this end; otherwise
 *     the message goes by the ring's rendezvous. Requests may follow each other at once.
 *   - tagged messages to this peer wait until the requests have ended, or the peer has reported
 *     that it keeps their messages, because no receive matches yet.
 *
 * A receive is in the matcher as well. It is listed when it is posted, or by a later progress: as
 * soon as no older receive outside of the list could take the same message. A message of the
 * ring that takes it, a cancel, or the end of its source, removes it from the list first, and finds
 * out whether the device was faster.
 *
 * The device compares 64 bits and knows no source. So the upper 16 bits of a request's tag name
 * the sender, by a number that the receiver has given to it, and messages whose own tags use these
 * bits are not offloaded.
 *
 * A list lives from the first peer of its endpoint to the end of the last one, so that a failed
 * device can be closed.
 *
 * Two ends make contact by messages in the ring (WIRE_OP_TAGS): HELLO with the queue pairs and the
 * number for the peer, READY once it is connected to them. An end without a list ignores HELLO.
 *
 * Tests: test/unit/core/msg/test_core_offload.c; on the device model test/suite.d/66-mpi-tags.
 */
#ifndef CORE_MSG_CORE_OFFLOAD_H
#define CORE_MSG_CORE_OFFLOAD_H

#include "core/core_dom.h"
#include "core/core_handler.h"
#include "core/core_tags.h"
#include "core/msg/core_req.h"

struct core_peer;

#define CORE_OFFLOAD_TAGS      512u /* receives in a list */
#define CORE_OFFLOAD_PEERS     256u /* peers of a list */
#define CORE_OFFLOAD_TAG_BITS  48
#define CORE_OFFLOAD_TAG_MASK  ((1ull << CORE_OFFLOAD_TAG_BITS) - 1)
#define CORE_OFFLOAD_OLDER     64u         /* older receives that one is compared with */
#define CORE_OFFLOAD_LOOK      64u         /* receives behind one that cannot be listed yet */
#define CORE_OFFLOAD_PAUSE     16u         /* looks before a full list is tried again */
#define CORE_OFFLOAD_EVENTS    4096u       /* events that are handled in a row */
#define CORE_OFFLOAD_REMOVE_NS 1000000000u /* time for the device to remove a receive */

/** Receive in the list, from its append until its end. */
struct core_listed {
	struct core_tags_recv dev;
	struct core_rx_req *req; /* in the matcher; NULL: taken by the device, or removed */
	struct core_dest dest;   /* taken by the device */
	struct core_head head;   /* likewise: of the message */
	fi_addr_t src;           /* likewise */
	bool used;
	bool is_taken;
	bool is_removed;
	bool is_forged; /* the message states another sender */
};

/** Request whose sender is to be notified. */
struct core_offload_due {
	struct util_list link; /* core_offload_peer.due */
	struct core_tags_request request;
	bool is_kept; /* no receive matches; otherwise this end has finished it */
};

/** Peer with a list of its own. */
struct core_offload_peer {
	struct core_peer *peer;
	struct core_tags_peer *dev; /* NULL: closed, is_down */
	struct util_list link;      /* core_offload.peers */
	struct util_list due;       /* core_offload_due.link */
	struct util_list gets;      /* core_unexp.claim_link: matched, their gets found no room */
	bool is_greeted;            /* HELLO was sent */
	bool is_connected;          /* by the peer's HELLO */
	bool has_replied;           /* READY was sent */
	bool is_ready;              /* READY has come */
	bool is_down;               /* the connection is to end */
	uint16_t id;                /* of the peer, in tags of its requests */
	uint16_t own_id;            /* of this end, in tags of requests to the peer */
	uint64_t seen;              /* position of the ring at the last look */
	uint64_t tagged_end;        /* no tagged message is behind it, up to `seen` */
	uint8_t desc[CORE_TAGS_DESC_LEN];
};

struct core_offload {
	struct core_ep *ep;
	struct core_tags_list *list;
	struct core_work work;  /* always queued: each progress polls the list */
	struct util_list peers; /* core_offload_peer.link */
	struct core_offload_peer *by_id[CORE_OFFLOAD_PEERS];
	uint64_t next_seq; /* of the first receive that may still be listed */
	uint64_t seen_seq; /* state of the matcher at the last look */
	size_t seen_cnt;
	uint32_t listed_cnt;  /* listed[] in use */
	uint32_t queued_cnt;  /* of these, in the matcher */
	uint32_t next_listed; /* where the search for a free one begins */
	bool looks;           /* core_offload_look runs, and closes the list if need be */
	bool has_failed;      /* the list, or a peer, is to be given up */
	bool is_down;         /* the list has failed */
	bool is_full;         /* an append was refused: a pause, or until a listed one ends */
	uint32_t full_looks;  /* looks with is_full */
	struct core_listed listed[CORE_OFFLOAD_TAGS];
};

/** Implement core_module's hooks, and core_handler.on_msg for WIRE_OP_TAGS. */
void core_offload_ep_stop(struct core_ep *ep);
void core_offload_peer_up(struct core_peer *peer);
void core_offload_peer_failing(struct core_peer *peer, int err);
enum core_rx_verdict core_offload_on_msg(struct core_chan *chan, struct core_head *head,
					 core_retain_t retain);

/* ---- sends: core_offload_tx.c ---- */

/** Results of core_offload_start besides 0 and -FI_E*. */
#define CORE_OFFLOAD_BY_RING 1

/**
 * Starts a tagged send, the first of the peer's queue. Returns 0 if it is the device's now,
 * CORE_OFFLOAD_BY_RING, or -FI_EAGAIN.
 */
int core_offload_start(struct core_tx_req *req);

/**
 * Notes that a reply to a peer with a list is about to be sent, which is no tagged message, and
 * then that it was.
 */
uint64_t core_offload_reply_begins(const struct core_peer *peer);
void core_offload_reply_ends(const struct core_peer *peer, uint64_t begin);

/** Ends a send whose bytes the peer has. */
void core_offload_sent(struct core_tags_send *send);

/** Lets messages pass a send that the peer keeps. */
void core_offload_kept(struct core_tags_send *send);

/**
 * Notifies the sender of a message that came by a request: this end has its bytes. An error, `code`
 * not 0, ends the connection, as a device can report none.
 */
void core_offload_finish(struct core_unexp *in, uint32_t code);

/** Lets the get of a matched message begin later. */
void core_offload_get_later(struct core_unexp *in);

/** Starts gets and finishes requests that had to wait for the device. */
void core_offload_retry(struct core_offload_peer *op);

/** Notifies the sender of such a message that it is kept. */
void core_offload_keep(struct core_unexp *in);

/* ---- receives: core_offload_rx.c ---- */

/** Lists the receives that can be. `more`: the device need not see them before the next poll. */
void core_offload_list(struct core_offload *of, bool more);

/** Lets a refused receive be listed by the next look. */
void core_offload_try_again(struct core_offload *of);

/** Looks at all receives again. */
void core_offload_list_again(struct core_offload *of);

/** Handles an event of the list. */
void core_offload_event(struct core_offload *of, const struct core_tags_event *ev);

/**
 * Takes a listed receive out of the matcher and the list. Returns false if the device has given it
 * a message: then it ends with that.
 */
bool core_offload_unlist(struct core_ep *ep, struct core_match_recv *recv);

/**
 * Gives up the list: the device accesses no more memory, and the connections of all peers with one
 * end with the next look.
 */
void core_offload_fail(struct core_offload *of);

/** Lets the connection of a peer end with the next look. */
void core_offload_end_peer(struct core_offload_peer *op);

/** Forgets the list: its receives remain in the matcher, those with a message end with `err`. */
void core_offload_drop_list(struct core_offload *of, int err);

#endif
