/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contract of a list of receives with which the device itself matches messages (tag matching), and
 * whose rendezvous it finishes without this processor. Implemented by ring/ring_mlx5_tags.c, called
 * by core/msg/core_offload*.c.
 *
 * A list belongs to an endpoint. A sender's request names the bytes of a message; the device gives
 * it to the oldest receive in the list with ((request's tag ^ receive's tag) & mask) == 0, reads
 * the bytes, and notifies the sender. A request that matches none is reported, and the caller reads
 * the bytes with the channel (core_chan_ops.get).
 *
 * A request that is reported as UNEXPECTED is given to a receive, or kept, before the next call of
 * append or poll. A listed receive that shall take it is removed with `is_sure`. Another message
 * takes a listed receive only after REMOVED.
 *
 * Runs under the domain's lock. Bytes of peers are validated; a peer that breaks the rules is DOWN.
 * Tests: test/unit/core/msg/test_core_offload.c with test/support/fake_tags.h.
 */
#ifndef CORE_CORE_TAGS_H
#define CORE_CORE_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORE_TAGS_DESC_LEN 40u /* bytes of the description of a peer's queue pairs */
#define CORE_TAGS_LEN_MAX  (1u << 30)

struct core_tags_list;
struct core_tags_peer; /* the device's part of a peer */

/** Receive, embedded by the caller. The device's until its end, and then until `drop`. */
struct core_tags_recv {
	uint64_t opaque[4];
};

/** Send, embedded by the caller. The device's until SENT, or the close of the peer. */
struct core_tags_send {
	uint64_t opaque[5];
};

/** Request of a peer that this end finishes. */
struct core_tags_request {
	uint64_t tag;
	uint64_t addr;
	uint64_t key;
	uint32_t len;
	uint32_t id;
	uint32_t data;
	bool has_data;
};

enum core_tags_kind {
	CORE_TAGS_MATCHED,  /* recv has a message, whose bytes are to come */
	CORE_TAGS_RECEIVED, /* recv has ended: `len` bytes, or status. It may be without MATCHED */
	CORE_TAGS_TOO_LONG, /* recv has ended: `request` is longer than its buffer */
	CORE_TAGS_REMOVED,  /* recv has ended without a message */
	CORE_TAGS_UNEXPECTED, /* `request` matches no receive in the list */
	CORE_TAGS_SENT,       /* the peer has the bytes of `send` */
	CORE_TAGS_KEPT,       /* the peer keeps `send`, which stays open: no receive matches yet */
	CORE_TAGS_DOWN,       /* peer has failed, or all, if `user` is NULL */
};

struct core_tags_event {
	enum core_tags_kind kind;
	int status;
	uint32_t len;
	struct core_tags_recv *recv;
	struct core_tags_send *send;
	void *user; /* of the peer, NULL if that is closed. Not with SENT, KEPT and REMOVED */
	/*
	 * MATCHED, and RECEIVED without it: tag and data; RECEIVED behind it: tag; TOO_LONG and
	 * UNEXPECTED: all of it
	 */
	struct core_tags_request request;
};

struct core_tags_ops {
	/* Closes the list, whose peers are closed. Receives in it end without events. */
	void (*close)(struct core_tags_list *list);
	/*
	 * Makes the local half of a peer, and describes it in CORE_TAGS_DESC_LEN bytes. Returns 0,
	 * -FI_ENOSPC if there are too many, or another error, logged.
	 */
	int (*peer_open)(struct core_tags_list *list, void *user, uint8_t *desc,
			 struct core_tags_peer **peer);
	/* Validates the peer's description and connects. Returns 0 or an error, logged. */
	int (*peer_connect)(struct core_tags_peer *peer, const uint8_t *desc);
	/*
	 * Closes a peer: the device accesses no bytes for it any more. Its sends get no event.
	 * Receives that its messages have matched end with later polls.
	 */
	void (*peer_close)(struct core_tags_peer *peer);
	/*
	 * Appends a receive of `len` bytes, at most CORE_TAGS_LEN_MAX. Returns 0, -FI_EAGAIN
	 * without room, or another error if the device cannot take it. `more`: the device need not
	 * see it before the next poll.
	 */
	int (*append)(struct core_tags_list *list, struct core_tags_recv *recv, uint64_t tag,
		      uint64_t mask, void *buf, size_t len, bool more);
	/*
	 * Removes a receive: at once if `is_sure`, otherwise REMOVED or MATCHED follows. Returns 0,
	 * -FI_EAGAIN without room before a poll, or an error of the list.
	 */
	int (*remove)(struct core_tags_list *list, struct core_tags_recv *recv, bool is_sure);
	/* Frees what the device has of a receive that has ended, or of any without peers. */
	void (*drop)(struct core_tags_list *list, struct core_tags_recv *recv);
	/*
	 * Sends a request for `len` bytes that are exposed under `key`. `data`: at most 32 bits, or
	 * NULL. Returns 0, -FI_EAGAIN without room, or an error.
	 */
	int (*send)(struct core_tags_peer *peer, struct core_tags_send *send, uint64_t tag,
		    const uint32_t *data, uint64_t addr, uint64_t key, uint32_t len);
	/* Notifies the sender of a request that its bytes are read. Returns like send. */
	int (*finish)(struct core_tags_peer *peer, const struct core_tags_request *request);
	/* Notifies the sender of an UNEXPECTED request that it is kept. Returns like send. */
	int (*keep)(struct core_tags_peer *peer, const struct core_tags_request *request);
	/* Returns one event, if there is one. */
	bool (*poll)(struct core_tags_list *list, struct core_tags_event *ev);
};

/** Embedded by the device. An armed engine (core_progress_ops.arm) wakes for its events. */
struct core_tags_list {
	const struct core_tags_ops *ops;
};

#endif
