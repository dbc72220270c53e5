/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of the fake's lists (fake_tags.h). fake_tags.c implements the contract, fake_tags_dev.c the
 * steps of the device.
 */
#ifndef FAKE_TAGS_LIST_H
#define FAKE_TAGS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core_tags.h"
#include "support/fake_tags.h"
#include "util/list.h"

enum fake_entry_state {
	FAKE_POSTED,  /* the append has not reached the device */
	FAKE_STORED,  /* in the list, inactive */
	FAKE_ACTIVE,  /* in the list */
	FAKE_MATCHED, /* bytes of its message are to come */
	FAKE_ENDED,
};

/** Receive in a list. It stays until the list closes. */
struct fake_entry {
	struct util_list link; /* fake_list.entries, or .ended */
	struct core_tags_recv *recv;
	uint64_t tag;
	uint64_t mask;
	uint8_t *buf;
	size_t len;
	enum fake_entry_state state;
	struct fake_peer *peer; /* MATCHED: that the message came from, NULL: closed */
	struct core_tags_request request;
	bool is_reported; /* MATCHED was reported */
	bool is_asked;    /* software removes it */
	bool is_sure;     /* likewise, and it has ended for software */
	bool is_returned; /* the event of its end was returned */
	bool is_dropped;
};

/** Operation of software on a list. */
struct fake_op {
	struct util_list link; /* fake_list.ops */
	struct fake_entry *append;
	struct fake_entry *remove;
	uint32_t handled; /* fake_list.handled at the post */
	bool waits;       /* for another operation, or a poll */
};

struct fake_event {
	struct util_list link; /* fake_list.events */
	struct core_tags_event ev;
	struct fake_peer *peer; /* NULL: none, or closed */
	struct fake_entry *entry;
};

enum fake_packet_kind { FAKE_REQUEST, FAKE_FIN, FAKE_KEPT };

/** Message from one end to the other. */
struct fake_packet {
	struct util_list link; /* fake_peer.out, or .fins */
	enum fake_packet_kind kind;
	struct core_tags_request request;
};

struct fake_send {
	struct util_list link; /* fake_peer.sends */
	struct core_tags_send *send;
	uint32_t id;
	bool is_kept;  /* the other end has reported that it keeps the request */
	bool is_ended; /* SENT is due */
};

struct fake_peer {
	struct util_list link; /* fake_list.peers */
	struct fake_list *list;
	void *user;
	uint32_t id;
	struct fake_peer *other; /* NULL: not connected, or closed */
	bool is_connected;
	int err;
	struct util_list out;  /* fake_packet.link: of software */
	struct util_list fins; /* likewise: of the device */
	struct util_list sends;
};

struct fake_list {
	struct core_tags_list base;
	struct util_list link; /* fake_lists */
	struct util_list peers;
	struct util_list ops;
	struct util_list entries; /* oldest first */
	struct util_list ended;
	struct util_list events;
	uint32_t room;
	uint32_t entry_cnt;
	uint32_t unexpected; /* requests that the device has reported */
	uint32_t known;      /* of them handled, as the device knows */
	uint32_t handled;    /* returned by polls */
	uint32_t advertised; /* of them stated by a posted operation */
	int err;
	/* Request that the last poll has returned, until the next append or poll */
	bool is_deciding;
	struct core_tags_request deciding;
};

extern struct util_list fake_tags_lists; /* fake_list.link */

/** Ends the test unless a rule of the contract holds. */
void fake_tags_rule(bool holds, const char *rule);

/** Queues an event. */
struct fake_event *fake_event_add(struct fake_list *list, enum core_tags_kind kind,
				  struct fake_peer *peer, struct fake_entry *entry);

/** Ends a receive for the device, with an event. */
struct fake_event *fake_entry_end(struct fake_list *list, struct fake_entry *entry,
				  enum core_tags_kind kind, struct fake_peer *peer, int status);

/** Queues a packet to the other end. */
void fake_packet_add(struct util_list *to, enum fake_packet_kind kind,
		     const struct core_tags_request *request);

/** Returns the open send with this id, or NULL. */
struct fake_send *fake_find_send(struct fake_peer *peer, uint32_t id);

/** Runs the steps that a poll runs. */
void fake_tags_run_poll(void);

#endif
