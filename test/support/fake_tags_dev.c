/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Steps of the fake device that matches tags: see fake_tags.h. */
#include <limits.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_fail.h"
#include "support/fake_tags.h"
#include "support/fake_tags_list.h"

struct util_list fake_tags_lists = { &fake_tags_lists, &fake_tags_lists };

void fake_tags_rule(bool holds, const char *rule)
{
	if (!holds)
		fake_fail("tags: %s", rule);
}

static bool fake_coin(void)
{
	return fake_tags_cfg.is_random && rng_chance(&fake_tags_cfg.rng, 1, 2);
}

/* ---- events ---- */

struct fake_event *fake_event_add(struct fake_list *list, enum core_tags_kind kind,
				  struct fake_peer *peer, struct fake_entry *entry)
{
	struct fake_event *event = calloc(1, sizeof(*event));

	event->ev.kind = kind;
	event->peer = peer;
	event->entry = entry;
	event->ev.recv = entry ? entry->recv : NULL;
	util_list_push_back(&list->events, &event->link);
	return event;
}

struct fake_event *fake_entry_end(struct fake_list *list, struct fake_entry *entry,
				  enum core_tags_kind kind, struct fake_peer *peer, int status)
{
	struct fake_event *event = fake_event_add(list, kind, peer, entry);

	entry->state = FAKE_ENDED;
	util_list_remove(&entry->link);
	util_list_push_back(&list->ended, &entry->link);
	list->entry_cnt--;
	event->ev.status = status;
	return event;
}

/* ---- steps of the device ---- */

void fake_packet_add(struct util_list *to, enum fake_packet_kind kind,
		     const struct core_tags_request *request)
{
	struct fake_packet *packet = calloc(1, sizeof(*packet));

	packet->kind = kind;
	packet->request = *request;
	util_list_push_back(to, &packet->link);
}

/** Reads the bytes of a matched message, and tells its sender. */
static void fake_read(struct fake_list *list, struct fake_entry *entry)
{
	struct fake_peer *peer = entry->peer;
	const struct core_tags_request *request = &entry->request;
	bool fails = peer->err || !peer->other || peer->other->err;
	struct fake_event *event;

	event = fake_entry_end(list, entry, CORE_TAGS_RECEIVED, peer, fails ? -FI_EIO : 0);
	if (!entry->is_reported) {
		event->ev.request.tag = request->tag;
		event->ev.request.data = request->data;
		event->ev.request.has_data = request->has_data;
	}
	if (fails)
		return;
	fake_tags_rule(!entry->is_dropped, "a receive is dropped before its end");
	event->ev.len = request->len;
	memcpy(entry->buf, (const void *)(uintptr_t)request->addr, request->len);
	fake_packet_add(&peer->fins, FAKE_FIN, request);
}

/** Gives a request to a receive. */
static void fake_match(struct fake_list *list, struct fake_entry *entry, struct fake_peer *peer,
		       const struct core_tags_request *request)
{
	struct fake_event *event;

	fake_tags_cnt.matches++;
	fake_tags_rule(!entry->is_sure, "a receive whose removal was sure has a match");
	if (request->len > entry->len) {
		fake_entry_end(list, entry, CORE_TAGS_TOO_LONG, peer, 0)->ev.request = *request;
		return;
	}
	entry->state = FAKE_MATCHED;
	entry->peer = peer;
	entry->request = *request;
	if (!fake_tags_cfg.hold_reads && !fake_coin()) {
		fake_read(list, entry);
		return;
	}
	entry->is_reported = true;
	event = fake_event_add(list, CORE_TAGS_MATCHED, peer, entry);
	event->ev.request.tag = request->tag;
	event->ev.request.data = request->data;
	event->ev.request.has_data = request->has_data;
}

static void fake_take_request(struct fake_peer *peer, const struct core_tags_request *request)
{
	struct fake_list *list = peer->list;

	for (struct util_list *it = list->entries.next; it != &list->entries; it = it->next) {
		struct fake_entry *entry = UTIL_CONTAINER_OF(it, struct fake_entry, link);

		if (entry->state != FAKE_ACTIVE || ((request->tag ^ entry->tag) & entry->mask))
			continue;
		fake_match(list, entry, peer, request);
		return;
	}
	list->unexpected++;
	fake_tags_cnt.unexpected++;
	fake_event_add(list, CORE_TAGS_UNEXPECTED, peer, NULL)->ev.request = *request;
}

struct fake_send *fake_find_send(struct fake_peer *peer, uint32_t id)
{
	for (struct util_list *it = peer->sends.next; it != &peer->sends; it = it->next) {
		struct fake_send *send = UTIL_CONTAINER_OF(it, struct fake_send, link);

		if (send->id == id)
			return send;
	}
	return NULL;
}

static void fake_take_fin(struct fake_peer *peer, const struct core_tags_request *request)
{
	struct fake_send *send = fake_find_send(peer, request->id);

	fake_tags_rule(send && !send->is_ended, "a request is finished that is not open");
	send->is_ended = true;
	fake_event_add(peer->list, CORE_TAGS_SENT, peer, NULL)->ev.send = send->send;
}

static void fake_take_kept(struct fake_peer *peer, const struct core_tags_request *request)
{
	struct fake_send *send = fake_find_send(peer, request->id);

	fake_tags_rule(send && !send->is_ended, "a request is kept that is not open");
	fake_tags_rule(!send->is_kept, "a request is kept twice");
	send->is_kept = true;
	fake_event_add(peer->list, CORE_TAGS_KEPT, peer, NULL)->ev.send = send->send;
}

void fake_tags_keep_again(struct core_tags_peer *base)
{
	struct fake_peer *peer = (struct fake_peer *)base;

	for (struct util_list *it = peer->sends.next; it != &peer->sends; it = it->next) {
		struct fake_send *send = UTIL_CONTAINER_OF(it, struct fake_send, link);

		fake_event_add(peer->list, CORE_TAGS_KEPT, peer, NULL)->ev.send = send->send;
	}
}

/** Moves the first packet of a queue to the other end. */
static void fake_deliver(struct fake_peer *peer, struct util_list *queue)
{
	struct fake_packet *packet =
		UTIL_CONTAINER_OF(util_list_pop(queue), struct fake_packet, link);
	struct fake_peer *to = peer->other;

	if (to && !to->err && !to->list->err && !peer->err) {
		fake_tags_rule(to->other == peer, "a peer is sent to that has not connected");
		switch (packet->kind) {
		case FAKE_REQUEST: fake_take_request(to, &packet->request); break;
		case FAKE_FIN: fake_take_fin(to, &packet->request); break;
		case FAKE_KEPT: fake_take_kept(to, &packet->request); break;
		}
	}
	free(packet);
}

static void fake_execute_remove(struct fake_list *list, struct fake_entry *entry)
{
	bool listed = entry->state == FAKE_STORED || entry->state == FAKE_ACTIVE;

	fake_tags_rule(listed || !entry->is_sure, "a receive whose removal was sure had a match");
	if (!listed)
		return;
	if (!entry->is_sure) {
		fake_entry_end(list, entry, CORE_TAGS_REMOVED, NULL, 0);
		return;
	}
	entry->state = FAKE_ENDED;
	util_list_remove(&entry->link);
	util_list_push_back(&list->ended, &entry->link);
	list->entry_cnt--;
}

/** Executes the first operation on the list. New entries match nothing while it is behind. */
static void fake_execute(struct fake_list *list)
{
	struct fake_op *op = UTIL_CONTAINER_OF(util_list_pop(&list->ops), struct fake_op, link);

	list->known = op->handled;
	if (op->append && op->append->state == FAKE_POSTED)
		op->append->state = FAKE_STORED;
	if (op->remove)
		fake_execute_remove(list, op->remove);
	free(op);
	if (list->known != list->unexpected)
		return;
	for (struct util_list *it = list->entries.next; it != &list->entries; it = it->next) {
		struct fake_entry *entry = UTIL_CONTAINER_OF(it, struct fake_entry, link);

		if (entry->state == FAKE_STORED)
			entry->state = FAKE_ACTIVE;
	}
}

/** Returns true for the step that is to run: `*skip` steps are before it. */
static bool fake_is_turn(unsigned *skip)
{
	return !(*skip)--;
}

static bool fake_step_entries(struct fake_list *list, unsigned *skip)
{
	if (fake_tags_cfg.hold_reads)
		return false;
	for (struct util_list *it = list->entries.next; it != &list->entries; it = it->next) {
		struct fake_entry *entry = UTIL_CONTAINER_OF(it, struct fake_entry, link);

		if (entry->state != FAKE_MATCHED || !entry->peer || !fake_is_turn(skip))
			continue;
		fake_read(list, entry);
		return true;
	}
	return false;
}

static bool fake_step_queue(struct fake_peer *peer, struct util_list *queue, unsigned *skip)
{
	if (util_list_is_empty(queue) || !fake_is_turn(skip))
		return false;
	fake_deliver(peer, queue);
	return true;
}

static bool fake_step_peers(struct fake_list *list, unsigned *skip)
{
	for (struct util_list *it = list->peers.next; it != &list->peers; it = it->next) {
		struct fake_peer *peer = UTIL_CONTAINER_OF(it, struct fake_peer, link);

		if (fake_step_queue(peer, &peer->fins, skip))
			return true;
		if (!fake_tags_cfg.hold_requests && fake_step_queue(peer, &peer->out, skip))
			return true;
	}
	return false;
}

static bool fake_has_op(const struct fake_list *list)
{
	return !util_list_is_empty(&list->ops) &&
	       !UTIL_CONTAINER_OF(list->ops.next, struct fake_op, link)->waits;
}

/** Runs the step behind `*skip` others. Returns false, and subtracts their number, without it. */
static bool fake_step(unsigned *skip)
{
	for (struct util_list *it = fake_tags_lists.next; it != &fake_tags_lists; it = it->next) {
		struct fake_list *list = UTIL_CONTAINER_OF(it, struct fake_list, link);

		if (list->err)
			continue;
		if (fake_has_op(list) && fake_is_turn(skip)) {
			fake_execute(list);
			return true;
		}
		if (fake_step_entries(list, skip) || fake_step_peers(list, skip))
			return true;
	}
	return false;
}

static unsigned fake_count(void)
{
	unsigned skip = UINT_MAX;

	fake_step(&skip);
	return UINT_MAX - skip;
}

void fake_tags_run(void)
{
	unsigned skip = 0;

	while (fake_step(&skip))
		skip = 0;
}

static void fake_run_some(void)
{
	while (rng_chance(&fake_tags_cfg.rng, fake_tags_cfg.chance, 100)) {
		unsigned cnt = fake_count();
		unsigned skip = cnt ? (unsigned)rng_below(&fake_tags_cfg.rng, cnt) : 0;

		if (!cnt)
			return;
		fake_step(&skip);
	}
}

void fake_tags_run_poll(void)
{
	if (fake_tags_cfg.is_random)
		fake_run_some();
	else if (!fake_tags_cfg.hold)
		fake_tags_run();
}
