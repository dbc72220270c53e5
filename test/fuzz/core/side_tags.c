/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device that matches tags, for a fuzzer: see side.h and core/core_tags.h. The device obeys the
 * contract; what its peers' requests state is the fuzzer's.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/msg/core_offload.h"
#include "side.h"
#include "support/check.h"
#include "util/bits.h"

enum recv_state { RECV_LISTED, RECV_MATCHED, RECV_REMOVED, RECV_ENDED };

/** Receive in the list, from its append to its drop. */
struct side_recv {
	struct util_list link; /* recvs */
	struct core_tags_recv *recv;
	uint8_t *buf;
	size_t len;
	uint64_t tag, mask;
	enum recv_state state;
	bool is_active;         /* may be matched: all unexpected requests before it are handled */
	struct side_peer *from; /* MATCHED: NULL: closed */
};

struct side_send {
	struct util_list link; /* sends */
	struct core_tags_send *send;
	struct side_peer *to;
};

struct side_peer {
	struct util_list link; /* peers */
	struct core_offload_peer *user;
	bool has_failed;
};

struct side_event {
	struct util_list link; /* events */
	struct core_tags_event ev;
	struct side_peer *peer;
	struct side_recv *recv;
};

static struct core_tags_list list;
static unsigned list_cnt;
static struct util_list recvs = { &recvs, &recvs }, sends = { &sends, &sends };
static struct util_list peers = { &peers, &peers }, events = { &events, &events };

static unsigned count(const struct util_list *head)
{
	unsigned cnt = 0;

	for (const struct util_list *it = head->next; it != head; it = it->next)
		cnt++;
	return cnt;
}

/** Returns the entry with this number, modulo theirs, or NULL if there is none. */
static struct util_list *nth(struct util_list *head, unsigned which)
{
	unsigned cnt = count(head);
	struct util_list *it = head->next;

	for (which = cnt ? which % cnt : 0; which; which--)
		it = it->next;
	return cnt ? it : NULL;
}

static struct side_event *event_add(enum core_tags_kind kind, struct side_peer *peer,
				    struct side_recv *recv)
{
	struct side_event *event = calloc(1, sizeof(*event));

	CHECK(event);
	event->ev.kind = kind;
	event->ev.recv = recv ? recv->recv : NULL;
	event->peer = peer;
	event->recv = recv;
	util_list_push_back(&events, &event->link);
	return event;
}

/* ---- the contract ---- */

static struct side_recv *recv_of(struct core_tags_recv *recv)
{
	struct util_list *it = recvs.next;

	while (it != &recvs && UTIL_CONTAINER_OF(it, struct side_recv, link)->recv != recv)
		it = it->next;
	CHECK(it != &recvs);
	return UTIL_CONTAINER_OF(it, struct side_recv, link);
}

static int tags_append(struct core_tags_list *l, struct core_tags_recv *recv, uint64_t tag,
		       uint64_t mask, void *buf, size_t len, bool more)
{
	struct side_recv *r;

	(void)l;
	(void)more;
	CHECK(len && len <= CORE_TAGS_LEN_MAX && !(tag & ~mask));
	if (side_cfg.tags_full)
		return -FI_EAGAIN;
	r = calloc(1, sizeof(*r));
	CHECK(r);
	*r = (struct side_recv){ .recv = recv, .buf = buf, .len = len, .tag = tag, .mask = mask };
	util_list_push_back(&recvs, &r->link);
	return 0;
}

/* The contract has a removal that is not sure wait for room, and then end. */
static int tags_remove(struct core_tags_list *l, struct core_tags_recv *recv, bool is_sure)
{
	struct side_recv *r = recv_of(recv);

	(void)l;
	if (r->state == RECV_MATCHED || r->state == RECV_ENDED) {
		CHECK(!is_sure);
		return 0; /* MATCHED is on the way */
	}
	CHECK(r->state == RECV_LISTED);
	r->state = RECV_REMOVED;
	if (!is_sure)
		event_add(CORE_TAGS_REMOVED, NULL, r);
	return 0;
}

static void forget_recv(const struct side_recv *r)
{
	for (struct util_list *it = events.next; it != &events; it = it->next)
		CHECK(UTIL_CONTAINER_OF(it, struct side_event, link)->recv != r);
}

/* A device that is closed, or has no peers, accesses no memory: there a drop may come early. */
static void tags_drop(struct core_tags_list *l, struct core_tags_recv *recv)
{
	struct side_recv *r = recv_of(recv);

	(void)l;
	if (!util_list_is_empty(&peers)) {
		CHECK(r->state == RECV_REMOVED || r->state == RECV_ENDED);
		forget_recv(r);
	}
	util_list_remove(&r->link);
	free(r);
}

static int tags_send(struct core_tags_peer *peer, struct core_tags_send *send, uint64_t tag,
		     const uint32_t *data, uint64_t addr, uint64_t key, uint32_t len)
{
	struct side_send *s;

	(void)tag;
	(void)data;
	(void)addr;
	(void)key;
	CHECK(len && len <= CORE_TAGS_LEN_MAX);
	if (side_cfg.tags_full)
		return -FI_EAGAIN;
	s = calloc(1, sizeof(*s));
	CHECK(s);
	s->send = send;
	s->to = (struct side_peer *)peer;
	util_list_push_back(&sends, &s->link);
	return 0;
}

static int tags_notify(struct core_tags_peer *peer, const struct core_tags_request *request)
{
	(void)request;
	CHECK(peer);
	return side_cfg.tags_full ? -FI_EAGAIN : 0;
}

/** Software has handled all that was reported: what is listed may be matched now. */
static void activate(void)
{
	for (struct util_list *it = recvs.next; it != &recvs; it = it->next)
		UTIL_CONTAINER_OF(it, struct side_recv, link)->is_active = true;
}

static bool tags_poll(struct core_tags_list *l, struct core_tags_event *ev)
{
	struct util_list *first = util_list_pop(&events);
	struct side_event *event;

	(void)l;
	if (!first) {
		activate();
		return false;
	}
	event = UTIL_CONTAINER_OF(first, struct side_event, link);
	*ev = event->ev;
	ev->user = event->peer ? event->peer->user : NULL;
	if (ev->kind == CORE_TAGS_RECEIVED || ev->kind == CORE_TAGS_TOO_LONG)
		CHECK(event->recv->state == RECV_ENDED);
	free(event);
	return true;
}

static int tags_peer_open(struct core_tags_list *l, void *user, uint8_t *desc,
			  struct core_tags_peer **out)
{
	struct side_peer *peer = calloc(1, sizeof(*peer));

	(void)l;
	CHECK(peer);
	peer->user = user;
	memset(desc, 0x11, CORE_TAGS_DESC_LEN);
	util_list_push_back(&peers, &peer->link);
	*out = (struct core_tags_peer *)peer;
	return 0;
}

static int tags_peer_connect(struct core_tags_peer *peer, const uint8_t *desc)
{
	(void)peer;
	return desc[0] & 0x80 ? -FI_EINVAL : 0;
}

/** Queues the ends of receives that messages of a peer have matched, and forgets its sends. */
static void end_peer(struct side_peer *peer)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &sends) {
		if (UTIL_CONTAINER_OF(it, struct side_send, link)->to != peer)
			continue;
		util_list_remove(it);
		free(UTIL_CONTAINER_OF(it, struct side_send, link));
	}
	for (it = recvs.next; it != &recvs; it = it->next) {
		struct side_recv *r = UTIL_CONTAINER_OF(it, struct side_recv, link);

		if (r->state != RECV_MATCHED || r->from != peer)
			continue;
		r->state = RECV_ENDED;
		event_add(CORE_TAGS_RECEIVED, NULL, r)->ev.status = -FI_ECONNABORTED;
	}
}

static void tags_peer_close(struct core_tags_peer *base)
{
	struct side_peer *peer = (struct side_peer *)base;
	struct util_list *it, *tmp;

	end_peer(peer);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &events) {
		struct side_event *event = UTIL_CONTAINER_OF(it, struct side_event, link);

		if (event->peer != peer)
			continue;
		event->peer = NULL;
		if (event->recv)
			continue;
		util_list_remove(it);
		free(event);
	}
	util_list_remove(&peer->link);
	free(peer);
}

static void tags_close(struct core_tags_list *l)
{
	struct util_list *it;

	CHECK(l == &list && util_list_is_empty(&peers));
	while ((it = util_list_pop(&events)))
		free(UTIL_CONTAINER_OF(it, struct side_event, link));
	list_cnt--;
}

static const struct core_tags_ops tags_ops = {
	.close = tags_close,
	.peer_open = tags_peer_open,
	.peer_connect = tags_peer_connect,
	.peer_close = tags_peer_close,
	.append = tags_append,
	.remove = tags_remove,
	.drop = tags_drop,
	.send = tags_send,
	.finish = tags_notify,
	.keep = tags_notify,
	.poll = tags_poll,
};

int side_tags_open(uint32_t cnt, struct core_tags_list **out)
{
	(void)cnt;
	if (!side_cfg.has_tags)
		return -FI_EOPNOTSUPP;
	CHECK(!list_cnt++);
	list.ops = &tags_ops;
	*out = &list;
	return 0;
}

unsigned side_tags_left(void)
{
	return list_cnt + count(&peers) + count(&recvs) + count(&sends);
}

/* ---- what the fuzzer states ---- */

static struct side_peer *peer_at(unsigned which)
{
	struct util_list *it = nth(&peers, which);
	struct side_peer *peer = it ? UTIL_CONTAINER_OF(it, struct side_peer, link) : NULL;

	return peer && !peer->has_failed ? peer : NULL;
}

/** Returns a listed receive, in the state that it should have, from `which` on, or NULL. */
static struct side_recv *recv_at(unsigned which, enum recv_state state)
{
	unsigned cnt = count(&recvs);

	for (unsigned i = 0; i < cnt; i++) {
		struct side_recv *r =
			UTIL_CONTAINER_OF(nth(&recvs, which + i), struct side_recv, link);

		if (r->state == state)
			return r;
	}
	return NULL;
}

/** Returns the receive to which the device gives a request, or NULL. */
static struct side_recv *recv_for(uint64_t tag)
{
	for (struct util_list *it = recvs.next; it != &recvs; it = it->next) {
		struct side_recv *r = UTIL_CONTAINER_OF(it, struct side_recv, link);

		if (r->state == RECV_LISTED && r->is_active && !((r->tag ^ tag) & r->mask))
			return r;
	}
	return NULL;
}

static void report_match(struct side_peer *peer, struct side_recv *r,
			 const struct core_tags_request *request)
{
	struct core_tags_event *ev;
	bool is_long = request->len > r->len;

	r->state = is_long ? RECV_ENDED : RECV_MATCHED;
	r->from = peer;
	ev = &event_add(is_long ? CORE_TAGS_TOO_LONG : CORE_TAGS_MATCHED, peer, r)->ev;
	ev->request = *request;
}

bool side_tags_request(unsigned which, const struct core_tags_request *request)
{
	struct side_peer *peer = peer_at(which);
	struct side_recv *r;

	if (!peer || !request->len || request->len > CORE_TAGS_LEN_MAX)
		return false;
	r = recv_for(request->tag);
	if (r)
		report_match(peer, r, request);
	else
		event_add(CORE_TAGS_UNEXPECTED, peer, NULL)->ev.request = *request;
	return true;
}

bool side_tags_end(unsigned which, uint32_t len, int status)
{
	struct side_recv *r = recv_at(which, RECV_MATCHED);
	struct core_tags_event *ev;

	if (!r)
		return false;
	len = len < r->len ? len : (uint32_t)r->len;
	memset(r->buf, 0x5A, status ? 0 : len);
	r->state = RECV_ENDED;
	ev = &event_add(CORE_TAGS_RECEIVED, r->from, r)->ev;
	ev->status = status;
	ev->len = status ? 0 : len;
	return true;
}

bool side_tags_sent(unsigned which, bool is_kept)
{
	struct util_list *it = nth(&sends, which);
	struct side_send *s = it ? UTIL_CONTAINER_OF(it, struct side_send, link) : NULL;

	if (!s || s->to->has_failed)
		return false;
	event_add(is_kept ? CORE_TAGS_KEPT : CORE_TAGS_SENT, s->to, NULL)->ev.send = s->send;
	if (is_kept)
		return true;
	util_list_remove(&s->link);
	free(s);
	return true;
}

bool side_tags_fail(unsigned which)
{
	struct side_peer *peer = peer_at(which);

	if (!peer)
		return false;
	peer->has_failed = true;
	event_add(CORE_TAGS_DOWN, peer, NULL)->ev.status = -FI_EIO;
	return true;
}

uint16_t side_tags_number(unsigned which)
{
	struct side_peer *peer = peer_at(which);

	return peer ? peer->user->id : 0;
}
