/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Contract of a device's tag matching, for tests: see fake_tags.h. */
#include "support/fake_tags.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_tags_list.h"

#define FAKE_TAGS_MAGIC 0x5A6DAD5Eu

struct fake_tags_cfg fake_tags_cfg;
struct fake_tags_cnt fake_tags_cnt;
static uint32_t fake_next_id = 1;

void fake_tags_reset(void)
{
	fake_tags_cfg = (struct fake_tags_cfg){ .room = UINT32_MAX, .rng = { 1 } };
	fake_tags_cnt = (struct fake_tags_cnt){ 0 };
}

static struct fake_list *fake_list_of(struct core_tags_list *list)
{
	return (struct fake_list *)list;
}

static struct fake_peer *fake_peer_of(struct core_tags_peer *peer)
{
	return (struct fake_peer *)peer;
}

static bool fake_refuses(void)
{
	return fake_tags_cfg.refused && rng_chance(&fake_tags_cfg.rng, fake_tags_cfg.refused, 100);
}

/* ---- the contract ---- */

/** Shows all posted operations to the device. */
static void fake_ring(struct fake_list *list)
{
	for (struct util_list *it = list->ops.next; it != &list->ops; it = it->next)
		UTIL_CONTAINER_OF(it, struct fake_op, link)->waits = false;
}

static void fake_post_op(struct fake_list *list, struct fake_entry *append,
			 struct fake_entry *remove, bool more)
{
	struct fake_op *op = calloc(1, sizeof(*op));

	op->append = append;
	op->remove = remove;
	op->handled = list->handled;
	list->advertised = list->handled;
	op->waits = more;
	util_list_push_back(&list->ops, &op->link);
	if (!more)
		fake_ring(list);
}

static int fake_append(struct core_tags_list *base, struct core_tags_recv *recv, uint64_t tag,
		       uint64_t mask, void *buf, size_t len, bool more)
{
	struct fake_list *list = fake_list_of(base);
	struct fake_entry *entry;

	list->is_deciding = false;
	fake_tags_rule(len && len <= CORE_TAGS_LEN_MAX, "a receive of this length");
	fake_tags_rule(!(tag & ~mask), "a receive whose tag has bits outside of its mask");
	if (list->err || fake_tags_cfg.append_err)
		return list->err ? list->err : fake_tags_cfg.append_err;
	if (list->entry_cnt >= list->room || list->entry_cnt >= fake_tags_cfg.room ||
	    fake_refuses())
		return -FI_EAGAIN;
	entry = calloc(1, sizeof(*entry));
	entry->recv = recv;
	entry->tag = tag;
	entry->mask = mask;
	entry->buf = buf;
	entry->len = len;
	recv->opaque[0] = (uintptr_t)entry;
	util_list_push_back(&list->entries, &entry->link);
	list->entry_cnt++;
	fake_tags_cnt.appends++;
	fake_tags_cnt.registered++;
	fake_post_op(list, entry, NULL, more);
	return 0;
}

static struct fake_entry *fake_entry_of(struct core_tags_recv *recv)
{
	struct fake_entry *entry = (void *)(uintptr_t)recv->opaque[0];

	fake_tags_rule(entry && entry->recv == recv && !entry->is_dropped,
		       "a receive that is not in the list");
	return entry;
}

/** Checks that the request in question is the reason to remove this receive for sure. */
static void fake_check_sure(const struct fake_list *list, const struct fake_entry *entry)
{
	fake_tags_rule(list->is_deciding,
		       "a sure removal without a request that was just reported");
	fake_tags_rule(!((list->deciding.tag ^ entry->tag) & entry->mask),
		       "a sure removal of a receive that does not accept the request");
	fake_tags_rule(entry->state == FAKE_POSTED || entry->state == FAKE_STORED,
		       "a sure removal of a receive that is active, or has a match");
}

static int fake_remove(struct core_tags_list *base, struct core_tags_recv *recv, bool is_sure)
{
	struct fake_list *list = fake_list_of(base);
	struct fake_entry *entry = fake_entry_of(recv);

	fake_tags_rule(!entry->is_asked && !entry->is_returned, "a receive is removed twice");
	if (list->err || fake_tags_cfg.remove_err)
		return list->err ? list->err : fake_tags_cfg.remove_err;
	if (!is_sure && fake_refuses())
		return -FI_EAGAIN;
	if (is_sure)
		fake_check_sure(list, entry);
	entry->is_asked = true;
	entry->is_sure = is_sure;
	fake_tags_cnt.removes++;
	fake_tags_cnt.sure_removes += is_sure;
	fake_post_op(list, NULL, entry, false);
	return 0;
}

/** A list that is down, or without peers, accesses no bytes: there a drop may come early. */
static void fake_drop(struct core_tags_list *base, struct core_tags_recv *recv)
{
	struct fake_list *list = fake_list_of(base);
	struct fake_entry *entry = fake_entry_of(recv);

	fake_tags_rule(entry->is_returned || entry->is_sure || list->err ||
			       util_list_is_empty(&list->peers) || fake_tags_cfg.remove_err ||
			       fake_tags_cfg.hold,
		       "a receive is dropped before its end");
	entry->is_dropped = true;
	fake_tags_cnt.registered--;
}

static int fake_send(struct core_tags_peer *base, struct core_tags_send *send, uint64_t tag,
		     const uint32_t *data, uint64_t addr, uint64_t key, uint32_t len)
{
	struct fake_peer *peer = fake_peer_of(base);
	struct core_tags_request request = { .tag = tag,
					     .addr = addr,
					     .key = key,
					     .len = len,
					     .id = fake_next_id,
					     .data = data ? *data : 0,
					     .has_data = data != NULL };
	struct fake_send *open;

	fake_tags_rule(len && len <= CORE_TAGS_LEN_MAX, "a send of this length");
	if (peer->err || peer->list->err || fake_tags_cfg.send_err)
		return peer->err ? peer->err : peer->list->err ? -FI_EIO : fake_tags_cfg.send_err;
	fake_tags_rule(peer->is_connected, "a send by a peer that is not connected");
	if (fake_refuses())
		return -FI_EAGAIN;
	open = calloc(1, sizeof(*open));
	open->send = send;
	open->id = fake_next_id++;
	util_list_push_back(&peer->sends, &open->link);
	fake_tags_cnt.sends++;
	fake_packet_add(&peer->out, FAKE_REQUEST, &request);
	return 0;
}

static int fake_notify(struct core_tags_peer *base, const struct core_tags_request *request,
		       enum fake_packet_kind kind)
{
	struct fake_peer *peer = fake_peer_of(base);

	if (peer->err || peer->list->err || fake_tags_cfg.finish_err)
		return peer->err                  ? peer->err
		       : fake_tags_cfg.finish_err ? fake_tags_cfg.finish_err
						  : -FI_EIO;
	if (fake_refuses())
		return -FI_EAGAIN;
	fake_tags_cnt.finishes += kind == FAKE_FIN;
	fake_tags_cnt.keeps += kind == FAKE_KEPT;
	fake_packet_add(&peer->out, kind, request);
	return 0;
}

static int fake_finish(struct core_tags_peer *peer, const struct core_tags_request *request)
{
	return fake_notify(peer, request, FAKE_FIN);
}

static int fake_keep(struct core_tags_peer *peer, const struct core_tags_request *request)
{
	return fake_notify(peer, request, FAKE_KEPT);
}

/* ---- polls ---- */

/** Fills in what changed since the event was queued. Returns false if it is void. */
static bool fake_return(struct fake_list *list, struct fake_event *event,
			struct core_tags_event *ev)
{
	struct fake_send *send;

	*ev = event->ev;
	ev->user = event->peer ? event->peer->user : NULL;
	if (ev->kind == CORE_TAGS_UNEXPECTED) {
		list->handled++;
		list->is_deciding = event->peer && !event->peer->err;
		list->deciding = ev->request;
		return list->is_deciding;
	}
	if (ev->kind == CORE_TAGS_SENT) {
		if (!event->peer || event->peer->err)
			return false;
		for (struct util_list *it = event->peer->sends.next;; it = it->next) {
			send = UTIL_CONTAINER_OF(it, struct fake_send, link);
			if (send->send == ev->send && send->is_ended)
				break;
		}
		util_list_remove(&send->link);
		free(send);
		ev->user = NULL;
	}
	if (ev->kind == CORE_TAGS_KEPT) {
		if (!event->peer || event->peer->err)
			return false;
		ev->user = NULL;
	}
	if (event->entry && ev->kind != CORE_TAGS_MATCHED) {
		event->entry->is_returned = true;
		if (event->entry->is_reported || ev->kind == CORE_TAGS_REMOVED)
			ev->user = NULL;
	}
	return true;
}

static bool fake_poll(struct core_tags_list *base, struct core_tags_event *ev)
{
	struct fake_list *list = fake_list_of(base);
	struct util_list *first;

	list->is_deciding = false;
	fake_ring(list);
	fake_tags_run_poll();
	while ((first = util_list_pop(&list->events))) {
		struct fake_event *event = UTIL_CONTAINER_OF(first, struct fake_event, link);
		bool is_valid = fake_return(list, event, ev);

		free(event);
		if (is_valid)
			return true;
	}
	if (list->handled != list->advertised && !list->err)
		fake_post_op(list, NULL, NULL, false);
	return false;
}

/* ---- peers, and the list ---- */

static int fake_peer_open(struct core_tags_list *base, void *user, uint8_t *desc,
			  struct core_tags_peer **out)
{
	const uint32_t magic = FAKE_TAGS_MAGIC;
	struct fake_peer *peer;

	if (fake_tags_cfg.peer_err)
		return fake_tags_cfg.peer_err;
	peer = calloc(1, sizeof(*peer));
	peer->list = fake_list_of(base);
	peer->user = user;
	peer->id = fake_next_id++;
	util_list_init(&peer->out);
	util_list_init(&peer->fins);
	util_list_init(&peer->sends);
	util_list_push_back(&peer->list->peers, &peer->link);
	memset(desc, 0, CORE_TAGS_DESC_LEN);
	memcpy(desc, &magic, sizeof(magic));
	memcpy(desc + sizeof(magic), &peer->id, sizeof(peer->id));
	*out = (struct core_tags_peer *)peer;
	return 0;
}

static struct fake_peer *fake_find_peer(uint32_t id)
{
	for (struct util_list *it = fake_tags_lists.next; it != &fake_tags_lists; it = it->next) {
		struct fake_list *list = UTIL_CONTAINER_OF(it, struct fake_list, link);

		for (struct util_list *pt = list->peers.next; pt != &list->peers; pt = pt->next) {
			struct fake_peer *peer = UTIL_CONTAINER_OF(pt, struct fake_peer, link);

			if (peer->id == id)
				return peer;
		}
	}
	return NULL;
}

static int fake_peer_connect(struct core_tags_peer *base, const uint8_t *desc)
{
	struct fake_peer *peer = fake_peer_of(base);
	uint32_t magic, id;

	fake_tags_rule(!peer->is_connected, "a peer is connected twice");
	memcpy(&magic, desc, sizeof(magic));
	memcpy(&id, desc + sizeof(magic), sizeof(id));
	if (fake_tags_cfg.connect_err)
		return fake_tags_cfg.connect_err;
	if (magic != FAKE_TAGS_MAGIC)
		return -FI_EINVAL;
	peer->other = fake_find_peer(id);
	peer->is_connected = true;
	return 0;
}

static void fake_free_packets(struct util_list *packets)
{
	struct util_list *first;

	while ((first = util_list_pop(packets)))
		free(UTIL_CONTAINER_OF(first, struct fake_packet, link));
}

/** Ends what a peer that closes has matched, and takes it out of events. */
static void fake_forget_peer(struct fake_list *list, struct fake_peer *peer)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &list->events) {
		struct fake_event *event = UTIL_CONTAINER_OF(it, struct fake_event, link);

		if (event->peer != peer)
			continue;
		event->peer = NULL;
		if (event->ev.kind != CORE_TAGS_DOWN)
			continue;
		util_list_remove(it); /* without a user, it would tell of the list */
		free(event);
	}
	UTIL_LIST_FOREACH_SAFE (it, tmp, &list->entries) {
		struct fake_entry *entry = UTIL_CONTAINER_OF(it, struct fake_entry, link);

		if (entry->peer == peer && entry->state == FAKE_MATCHED)
			fake_entry_end(list, entry, CORE_TAGS_RECEIVED, NULL, -FI_ECONNABORTED);
	}
}

/** Lets no peer lead to one that closes. */
static void fake_disconnect(const struct fake_peer *peer)
{
	for (struct util_list *it = fake_tags_lists.next; it != &fake_tags_lists; it = it->next) {
		struct fake_list *list = UTIL_CONTAINER_OF(it, struct fake_list, link);

		for (struct util_list *pt = list->peers.next; pt != &list->peers; pt = pt->next) {
			struct fake_peer *half = UTIL_CONTAINER_OF(pt, struct fake_peer, link);

			if (half->other == peer)
				half->other = NULL;
		}
	}
}

static void fake_peer_close(struct core_tags_peer *base)
{
	struct fake_peer *peer = fake_peer_of(base);
	struct util_list *first;

	fake_forget_peer(peer->list, peer);
	fake_free_packets(&peer->out);
	fake_free_packets(&peer->fins);
	while ((first = util_list_pop(&peer->sends)))
		free(UTIL_CONTAINER_OF(first, struct fake_send, link));
	util_list_remove(&peer->link);
	fake_disconnect(peer);
	free(peer);
}

static void fake_free_entries(struct util_list *entries)
{
	struct util_list *first;

	while ((first = util_list_pop(entries))) {
		struct fake_entry *entry = UTIL_CONTAINER_OF(first, struct fake_entry, link);

		fake_tags_rule(entry->is_dropped,
			       "a list closes with a receive that was not dropped");
		free(entry);
	}
}

static void fake_list_close(struct core_tags_list *base)
{
	struct fake_list *list = fake_list_of(base);
	struct util_list *first;

	fake_tags_rule(util_list_is_empty(&list->peers), "a list closes with an open peer");
	while ((first = util_list_pop(&list->ops)))
		free(UTIL_CONTAINER_OF(first, struct fake_op, link));
	while ((first = util_list_pop(&list->events)))
		free(UTIL_CONTAINER_OF(first, struct fake_event, link));
	fake_free_entries(&list->entries);
	fake_free_entries(&list->ended);
	util_list_remove(&list->link);
	free(list);
	fake_tags_cnt.lists--;
}

static const struct core_tags_ops fake_tags_ops = {
	.close = fake_list_close,
	.peer_open = fake_peer_open,
	.peer_connect = fake_peer_connect,
	.peer_close = fake_peer_close,
	.append = fake_append,
	.remove = fake_remove,
	.drop = fake_drop,
	.send = fake_send,
	.finish = fake_finish,
	.keep = fake_keep,
	.poll = fake_poll,
};

int fake_tags_open(uint32_t cnt, struct core_tags_list **out)
{
	struct fake_list *list;

	if (fake_tags_cfg.open_err)
		return fake_tags_cfg.open_err;
	list = calloc(1, sizeof(*list));
	list->base.ops = &fake_tags_ops;
	list->room = cnt;
	util_list_init(&list->peers);
	util_list_init(&list->ops);
	util_list_init(&list->entries);
	util_list_init(&list->ended);
	util_list_init(&list->events);
	util_list_push_back(&fake_tags_lists, &list->link);
	fake_tags_cnt.opens++;
	fake_tags_cnt.lists++;
	*out = &list->base;
	return 0;
}

void fake_tags_fail_peer(struct core_tags_peer *base, int err)
{
	struct fake_peer *peer = fake_peer_of(base);

	if (peer->err)
		return;
	peer->err = err;
	fake_event_add(peer->list, CORE_TAGS_DOWN, peer, NULL)->ev.status = err;
}

void fake_tags_fail_list(struct core_tags_list *base, int err)
{
	struct fake_list *list = fake_list_of(base);

	if (list->err)
		return;
	list->err = err;
	fake_event_add(list, CORE_TAGS_DOWN, NULL, NULL)->ev.status = err;
}
