/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hashed half of matching: called by core_match.h when the oldest entry does not match.
 *
 * Invariants:
 *	posted			hashed_cnt receives, each in the table of its shape or in excess,
 *				then younger ones that are CORE_MATCH_UNHASHED
 *	bit s of live		recv_shapes[s].cnt > 0
 *	bit s of indexed	msg_shapes[s].table holds all unexpected messages; else it is empty
 *
 * A receive is hashed at most once, when an arrival has to look past the oldest, so hashing costs
 * at most constant time per post. Message indexes are dropped when the queue is empty, so no entry
 * has to be removed. An index replaces one of another shape only if the latter was not used in
 * the last unexpected_cnt searches, the cost of building it.
 *
 * Each shape has a table of its own: an arrival then probes only with masks that are in use.
 */
#include "core/msg/core_match.h"

#include <stdlib.h>

struct core_match *core_match_open(void)
{
	size_t len = util_align_up(sizeof(struct core_match), UTIL_CACHE_LINE);
	struct core_match *m = aligned_alloc(UTIL_CACHE_LINE, len);

	if (!m)
		return NULL;
	*m = (struct core_match){ 0 };
	util_list_init(&m->posted);
	util_list_init(&m->unexpected);
	util_list_init(&m->excess);
	return m;
}

void core_match_close(struct core_match *m)
{
	for (int s = 0; s < CORE_MATCH_SHAPES; s++) {
		core_match_table_free(&m->recv_shapes[s].table);
		core_match_table_free(&m->msg_shapes[s].table);
	}
	free(m);
}

/* Returns the index of a shape with a bit in `set`, or -1. */
static int core_match_shape_find(const struct core_match_shape *shapes, unsigned set,
				 uint64_t ignore, bool any)
{
	for (; set; set &= set - 1) {
		int s = __builtin_ctz(set);

		if (shapes[s].ignore == ignore && shapes[s].any == any)
			return s;
	}
	return -1;
}

/* Returns the lowest index without a bit in `set`, or -1. */
static int core_match_shape_free(unsigned set)
{
	int s = __builtin_ctz(~set);

	return s < CORE_MATCH_SHAPES ? s : -1;
}

/* Returns the source part of a key: one constant in shapes with any source. */
static uint64_t core_match_key_src(const struct core_match_shape *shape, uint64_t src)
{
	return shape->any ? CORE_MATCH_ANY : src;
}

/* --- posted receives ------------------------------------------------------------------------ */

/* Returns the index of the table for the receive's shape, a free one if need be, or -1. */
static int core_match_recv_shape(struct core_match *m, const struct core_match_recv *recv)
{
	bool any = recv->src == CORE_MATCH_ANY;
	int s = core_match_shape_find(m->recv_shapes, m->live, recv->ignore, any);

	if (s >= 0)
		return s;
	s = core_match_shape_free(m->live);
	if (s >= 0) {
		m->recv_shapes[s].ignore = recv->ignore;
		m->recv_shapes[s].any = any;
	}
	return s;
}

/* Hashes a receive as the youngest with its key: callers hash in the order of age. */
static void core_match_recv_hash(struct core_match *m, struct core_match_recv *recv)
{
	int s = core_match_recv_shape(m, recv);
	struct core_match_shape *shape = &m->recv_shapes[s < 0 ? 0 : s];

	if (s < 0 || !core_match_table_push(&shape->table, recv->tag & ~recv->ignore, recv->src,
					    &recv->bucket)) {
		recv->shape = CORE_MATCH_EXCESS;
		util_list_push_back(&m->excess, &recv->bucket);
		return;
	}
	recv->shape = (int16_t)s;
	shape->cnt++;
	m->live |= (uint8_t)(1u << s);
}

/* Returns the oldest receive that is not hashed, or the head. */
static struct util_list *core_match_fresh(struct core_match *m)
{
	struct util_list *it = &m->posted;
	size_t left;

	if (!m->hashed_cnt)
		return it->next;
	for (left = core_match_fresh_cnt(m); left; left--)
		it = it->prev;
	return it;
}

void core_match_hash_all(struct core_match *m)
{
	struct util_list *it;

	for (it = core_match_fresh(m); it != &m->posted; it = it->next)
		core_match_recv_hash(m, UTIL_CONTAINER_OF(it, struct core_match_recv, order));
	m->hashed_cnt += core_match_fresh_cnt(m);
	m->past_cnt = m->seq;
}

static void core_match_tables_trim(struct core_match *m)
{
	for (int s = 0; s < CORE_MATCH_SHAPES; s++)
		core_match_table_trim(&m->recv_shapes[s].table);
}

/* Takes a hashed receive out of its table or the excess. */
static void core_match_unhash(struct core_match *m, struct core_match_recv *recv)
{
	struct core_match_shape *shape;

	if (recv->shape == CORE_MATCH_EXCESS) {
		core_match_unlink(&recv->bucket);
	} else {
		shape = &m->recv_shapes[recv->shape];
		core_match_table_remove(&shape->table, recv->tag & ~recv->ignore, recv->src,
					&recv->bucket);
		if (!--shape->cnt)
			m->live &= (uint8_t) ~(1u << recv->shape);
	}
	if (!--m->hashed_cnt)
		core_match_tables_trim(m);
}

void core_match_cancel_cold(struct core_match *m, struct core_match_recv *recv)
{
	core_match_unlink(&recv->order);
	core_match_unhash(m, recv);
}

static bool core_match_is_older(const struct core_match_recv *a, const struct core_match_recv *b)
{
	return !b || (int64_t)(a->seq - b->seq) < 0;
}

static struct core_match_recv *core_match_find_fresh(struct core_match *m, uint64_t tag,
						     uint64_t src)
{
	for (struct util_list *it = core_match_fresh(m); it != &m->posted; it = it->next) {
		struct core_match_recv *recv = UTIL_CONTAINER_OF(it, struct core_match_recv, order);

		if (core_match_accepts(recv, tag, src))
			return recv;
	}
	return NULL;
}

/* Returns the oldest receive among `best` and the matching ones in excess. */
static struct core_match_recv *core_match_find_in_excess(struct core_match *m, uint64_t tag,
							 uint64_t src, struct core_match_recv *best)
{
	for (struct util_list *it = m->excess.next; it != &m->excess; it = it->next) {
		struct core_match_recv *recv =
			UTIL_CONTAINER_OF(it, struct core_match_recv, bucket);

		if (!core_match_is_older(recv, best))
			break;
		if (core_match_accepts(recv, tag, src))
			return recv;
	}
	return best;
}

static struct core_match_recv *core_match_find_hashed(struct core_match *m, uint64_t tag,
						      uint64_t src)
{
	struct core_match_recv *best = NULL;

	for (unsigned live = m->live; live; live &= live - 1) {
		const struct core_match_shape *shape = &m->recv_shapes[__builtin_ctz(live)];
		struct util_list *first = core_match_table_first(
			&shape->table, tag & ~shape->ignore, core_match_key_src(shape, src));
		struct core_match_recv *recv;

		if (!first)
			continue;
		recv = UTIL_CONTAINER_OF(first, struct core_match_recv, bucket);
		if (core_match_is_older(recv, best))
			best = recv;
	}
	return core_match_find_in_excess(m, tag, src, best);
}

struct core_match_recv *core_match_find_cold(struct core_match *m, uint64_t tag, uint64_t src)
{
	struct core_match_recv *found = NULL;

	if (core_match_fresh_cnt(m) > CORE_MATCH_LAZY)
		core_match_hash_all(m);
	if (m->hashed_cnt)
		found = core_match_find_hashed(m, tag, src);
	return found ? found : core_match_find_fresh(m, tag, src);
}

/* --- unexpected messages -------------------------------------------------------------------- */

static bool core_match_msg_index(struct core_match_shape *shape, int s, struct core_match_msg *msg)
{
	return core_match_table_push(&shape->table, msg->tag & ~shape->ignore,
				     core_match_key_src(shape, msg->src), &msg->bucket[s]);
}

static void core_match_msg_unindex(struct core_match_shape *shape, int s,
				   struct core_match_msg *msg)
{
	core_match_table_remove(&shape->table, msg->tag & ~shape->ignore,
				core_match_key_src(shape, msg->src), &msg->bucket[s]);
}

static void core_match_index_drop(struct core_match *m, int s)
{
	m->indexed &= (uint8_t) ~(1u << s);
	core_match_table_free(&m->msg_shapes[s].table);
}

void core_match_keep_cold(struct core_match *m, struct core_match_msg *msg)
{
	for (unsigned set = m->indexed; set; set &= set - 1) {
		int s = __builtin_ctz(set);

		if (!core_match_msg_index(&m->msg_shapes[s], s, msg))
			core_match_index_drop(m, s);
	}
}

void core_match_take_cold(struct core_match *m, struct core_match_msg *msg)
{
	for (unsigned set = m->indexed; set; set &= set - 1) {
		int s = __builtin_ctz(set);

		core_match_msg_unindex(&m->msg_shapes[s], s, msg);
		if (!m->unexpected_cnt)
			core_match_table_trim(&m->msg_shapes[s].table);
	}
	if (!m->unexpected_cnt)
		m->indexed = 0;
}

/* All receives become fresh: equal keys are hashed in the order of age. */
static void core_match_rename_recvs(struct core_match *m, uint64_t from, uint64_t to)
{
	for (struct util_list *it = m->posted.next; it != &m->posted; it = it->next) {
		struct core_match_recv *recv = UTIL_CONTAINER_OF(it, struct core_match_recv, order);

		if (recv->shape != CORE_MATCH_UNHASHED) {
			core_match_unhash(m, recv);
			recv->shape = CORE_MATCH_UNHASHED;
			m->past_cnt--;
		}
		if (recv->src == from)
			recv->src = to;
	}
}

void core_match_rename(struct core_match *m, uint64_t from, uint64_t to)
{
	bool is_hashed = m->hashed_cnt;

	core_match_rename_recvs(m, from, to);
	if (is_hashed)
		core_match_hash_all(m); /* receives in a device's list must be */
	for (int s = 0; s < CORE_MATCH_SHAPES; s++)
		core_match_index_drop(m, s);
	for (struct util_list *it = m->unexpected.next; it != &m->unexpected; it = it->next) {
		struct core_match_msg *msg = UTIL_CONTAINER_OF(it, struct core_match_msg, order);

		if (msg->src == from)
			msg->src = to;
	}
}

/* Returns the number of a free index, of one that is no longer in use (dropped), or -1. */
static int core_match_index_reserve(struct core_match *m)
{
	int oldest = core_match_shape_free(m->indexed);

	if (oldest >= 0)
		return oldest;
	oldest = 0;
	for (int s = 1; s < CORE_MATCH_SHAPES; s++) {
		if (m->msg_shapes[s].used < m->msg_shapes[oldest].used)
			oldest = s;
	}
	if (m->search_cnt - m->msg_shapes[oldest].used < m->unexpected_cnt)
		return -1;
	core_match_index_drop(m, oldest);
	return oldest;
}

/* Indexes every unexpected message for a shape. Returns the index's number, or -1. */
static int core_match_index_build(struct core_match *m, uint64_t ignore, bool any)
{
	int s = core_match_index_reserve(m);
	struct core_match_shape *shape = &m->msg_shapes[s < 0 ? 0 : s];
	struct util_list *it;

	if (s < 0)
		return -1;
	shape->ignore = ignore;
	shape->any = any;
	for (it = m->unexpected.next; it != &m->unexpected; it = it->next) {
		if (!core_match_msg_index(shape, s,
					  UTIL_CONTAINER_OF(it, struct core_match_msg, order))) {
			core_match_index_drop(m, s);
			return -1;
		}
	}
	m->indexed |= (uint8_t)(1u << s);
	return s;
}

/* Checks up to `limit` messages from *it on. Leaves *it at the next one, or at the head. */
static struct core_match_msg *core_match_scan(struct core_match *m, struct util_list **it,
					      size_t limit, const struct core_match_recv *recv)
{
	for (; *it != &m->unexpected && limit; *it = (*it)->next, limit--) {
		struct core_match_msg *msg = UTIL_CONTAINER_OF(*it, struct core_match_msg, order);

		if (core_match_accepts(recv, msg->tag, msg->src))
			return msg;
	}
	return NULL;
}

static struct core_match_msg *core_match_index_first(struct core_match *m, int s,
						     const struct core_match_recv *recv)
{
	struct core_match_shape *shape = &m->msg_shapes[s];
	struct util_list *first =
		core_match_table_first(&shape->table, recv->tag & ~recv->ignore, recv->src);

	shape->used = m->search_cnt;
	if (!first)
		return NULL;
	return UTIL_CONTAINER_OF(first, struct core_match_msg, bucket[s]);
}

/*
 * Returns the oldest message that `recv` accepts. Tries in turn the first message, the index of
 * its shape, the first CORE_MATCH_SCAN messages, a new index, and (no index is free) all messages.
 */
static struct core_match_msg *core_match_search(struct core_match *m,
						const struct core_match_recv *recv)
{
	bool any = recv->src == CORE_MATCH_ANY;
	struct util_list *it = m->unexpected.next;
	struct core_match_msg *msg = core_match_scan(m, &it, 1, recv);
	int s;

	if (msg || it == &m->unexpected)
		return msg;
	m->search_cnt++;
	s = core_match_shape_find(m->msg_shapes, m->indexed, recv->ignore, any);
	if (s >= 0)
		return core_match_index_first(m, s, recv);
	msg = core_match_scan(m, &it, CORE_MATCH_SCAN - 1, recv);
	if (msg || it == &m->unexpected)
		return msg;
	s = core_match_index_build(m, recv->ignore, any);
	if (s >= 0)
		return core_match_index_first(m, s, recv);
	return core_match_scan(m, &it, SIZE_MAX, recv);
}

struct core_match_msg *core_match_peek(struct core_match *m, uint64_t tag, uint64_t ignore,
				       uint64_t src)
{
	struct core_match_recv recv = { .tag = tag, .ignore = ignore, .src = src };

	return core_match_search(m, &recv);
}

struct core_match_msg *core_match_post_cold(struct core_match *m, struct core_match_recv *recv)
{
	struct core_match_msg *msg = core_match_search(m, recv);

	if (msg)
		core_match_take(m, msg);
	else
		core_match_queue(m, recv);
	return msg;
}
