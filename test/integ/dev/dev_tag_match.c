/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random matching of dev_tag: the software half of matching, as m5_tm.h describes it, and a judge.
 *
 * Each side sends `msgs` messages with tags of three bits, and posts receives for one tag, for a
 * group of four, or for any; some are kept out of the device's list, some are removed again. Local
 * messages stand for what another path brings. Some messages without a receive are refused: their
 * senders end all the same. Now and then a side sleeps until the device wakes it.
 *
 * The judge knows the tag of each message of the peer by its number. A receive must take the oldest
 * unmatched message that it accepts, and no older open receive may accept the same message.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#include "dev_tag.h"
#include "util/clock.h"

#define MSGS_MAX 100000u
#define LEN_MIN  M5_TM_REQUEST

enum recv_state {
	R_FREE,
	R_LISTED, /* in the device's list */
	R_SOFT,   /* posted, and not in it */
	R_REMOVING,
	R_FILLING, /* matched */
};

static struct {
	enum recv_state state;
	uint32_t seq; /* R_FILLING: of the message */
	uint64_t order;
} how[TAGS];

static struct m5_tm_request unexpected[SENDS];
static uint32_t unexpected_cnt;
static bool is_matched[MSGS_MAX];
static uint32_t total, first, matched_cnt, ended_cnt, sent, done;
static uint64_t orders;
static uint32_t by_device, by_software, locals, removed, too_long, late, refused, kept_cnt, woken,
	woken_by_match;

static uint64_t tag_of(int from, uint32_t seq)
{
	return tag_mix(seq * 2ull + (unsigned)from + 1) % 8;
}

static uint32_t len_of(int from, uint32_t seq)
{
	return LEN_MIN +
	       (uint32_t)(tag_mix(seq * 2ull + (unsigned)from + 77) % (LEN_MAX - LEN_MIN));
}

static bool accepts(const struct recv *recv, uint64_t tag)
{
	return (tag & recv->mask) == recv->tag;
}

static bool is_posted(unsigned i)
{
	return how[i].state == R_LISTED || how[i].state == R_SOFT;
}

/* Returns the oldest posted receive that accepts the tag, or -1. */
static int oldest_recv(uint64_t tag)
{
	int found = -1;

	for (unsigned i = 0; i < TAGS; i++)
		if (is_posted(i) && accepts(&recvs[i], tag) &&
		    (found < 0 || how[i].order < how[found].order))
			found = (int)i;
	return found;
}

/* ---- the judge ---- */

/* Records a match of the message. */
static void count_match(uint32_t seq)
{
	is_matched[seq] = true;
	matched_cnt++;
}

/* Receive i takes a message with this tag. Returns the number of the message. */
static uint32_t judge(unsigned i, uint64_t tag)
{
	uint32_t seq;

	how[i].state = R_FILLING;
	while (first < total && is_matched[first])
		first++;
	for (seq = first; seq < total; seq++) {
		if (is_matched[seq])
			continue;
		if (tag_of(!side, seq) == tag)
			break;
		CHECK(!accepts(&recvs[i], tag_of(!side, seq)));
	}
	CHECK(seq < total);
	for (unsigned k = 0; k < TAGS; k++)
		CHECK(!is_posted(k) || how[k].order > how[i].order || !accepts(&recvs[k], tag));
	count_match(seq);
	how[i].seq = seq;
	return seq;
}

static void end_recv(unsigned i, uint32_t len)
{
	uint32_t expected = len_of(!side, how[i].seq);

	CHECK(how[i].state == R_FILLING);
	CHECK(len == (expected < recvs[i].len ? expected : recvs[i].len));
	tag_check(recvs[i].buf, how[i].seq, len);
	how[i].state = R_FREE;
	ended_cnt++;
}

/* ---- software's half of matching ---- */

static void fetch(unsigned i, const struct m5_tm_request *request)
{
	uint32_t len = request->len < recvs[i].len ? request->len : recvs[i].len;
	struct m5_tm_event ev;
	int ret;

	while ((ret = m5_tm_fetch(request, &recvs[i].tm, recvs[i].buf, len, lkey)) == -FI_EAGAIN)
		CHECK(!m5_tm_poll(tm, &ev)); /* the send queue has room for all requests */
	CHECK(!ret);
}

static void judge_request(unsigned i, const struct m5_tm_request *request)
{
	uint32_t seq = judge(i, request->tag);

	CHECK(len_of(!side, seq) == request->len);
	tag_check_data(seq, request->has_data, request->data);
	CHECK(request->peer == peer);
}

/* Keeps a request, and mostly notifies its sender. */
static void keep(const struct m5_tm_request *request)
{
	int ret = pair_rand() % 4 ? m5_tm_keep(request) : 0;

	CHECK(!ret || ret == -FI_EAGAIN);
	CHECK(unexpected_cnt < SENDS);
	unexpected[unexpected_cnt++] = *request;
}

/* Gives a request to the oldest receive, or keeps it. */
static void take_unexpected(const struct m5_tm_request *request)
{
	int i = oldest_recv(request->tag);

	if (i < 0) {
		keep(request);
		return;
	}
	if (how[i].state == R_LISTED) {
		CHECK(!m5_tm_remove(tm, &recvs[i].tm, true));
		late++;
	}
	judge_request((unsigned)i, request);
	by_software++;
	fetch((unsigned)i, request);
}

static void drop_kept(uint32_t k)
{
	memmove(&unexpected[k], &unexpected[k + 1], (--unexpected_cnt - k) * sizeof(unexpected[k]));
}

/* Refuses the oldest request that was kept. No message with its tag came before it. */
static void refuse_kept(void)
{
	uint32_t seq = 0;
	int ret;

	if (!unexpected_cnt)
		return;
	ret = m5_tm_finish(&unexpected[0]);
	CHECK(!ret || ret == -FI_EAGAIN);
	if (ret)
		return;
	while (is_matched[seq] || tag_of(!side, seq) != unexpected[0].tag)
		seq++;
	CHECK(seq < total && len_of(!side, seq) == unexpected[0].len);
	count_match(seq);
	ended_cnt++;
	refused++;
	drop_kept(0);
}

static bool take_kept(unsigned i)
{
	struct m5_tm_request request;

	for (uint32_t k = 0; k < unexpected_cnt; k++) {
		if (!accepts(&recvs[i], unexpected[k].tag))
			continue;
		request = unexpected[k];
		drop_kept(k);
		judge_request(i, &request);
		by_software++;
		fetch(i, &request);
		return true;
	}
	return false;
}

static bool overlaps(const struct recv *a, const struct recv *b)
{
	return !((a->tag ^ b->tag) & a->mask & b->mask);
}

/* Returns true if no older receive outside of the list could take a message of this one. */
static bool may_list(unsigned i)
{
	for (unsigned k = 0; k < TAGS; k++)
		if (how[k].state == R_SOFT && how[k].order < how[i].order &&
		    overlaps(&recvs[k], &recvs[i]))
			return false;
	return true;
}

static void try_list(unsigned i)
{
	int ret;

	if (!may_list(i))
		return;
	ret = m5_tm_append(tm, &recvs[i].tm, recvs[i].tag, recvs[i].mask, recvs[i].buf,
			   recvs[i].len, lkey, pair_rand() % 2);
	CHECK(!ret || ret == -FI_EAGAIN);
	if (!ret)
		how[i].state = R_LISTED;
}

static void post(unsigned i, uint64_t mask)
{
	recvs[i].mask = mask;
	recvs[i].tag = pair_rand() % 8 & mask;
	recvs[i].len = LEN_MIN + (uint32_t)(pair_rand() % (LEN_MAX - LEN_MIN));
	how[i].order = orders++;
	memset(recvs[i].buf, 0, recvs[i].len);
	if (take_kept(i))
		return;
	how[i].state = R_SOFT;
	if (pair_rand() % 4)
		try_list(i);
}

/* ---- events ---- */

/* Checks what the event of a match tells of the message. */
static void judge_match(unsigned i, const struct m5_tm_event *ev)
{
	tag_check_data(judge(i, ev->recv->tag), ev->has_data, ev->data);
	CHECK(ev->peer == peer);
}

static void note_kept(struct send *send)
{
	CHECK(send->is_open && !send->is_kept);
	send->is_kept = true;
	kept_cnt++;
}

static void handle(const struct m5_tm_event *ev)
{
	unsigned i =
		ev->recv ? (unsigned)(UTIL_CONTAINER_OF(ev->recv, struct recv, tm) - recvs) : 0;

	switch (ev->kind) {
	case M5_TM_MATCHED:
		CHECK(how[i].state == R_LISTED || how[i].state == R_REMOVING);
		judge_match(i, ev);
		by_device++;
		break;
	case M5_TM_RECEIVED:
		CHECK(!ev->status);
		end_recv(i, ev->len);
		break;
	case M5_TM_TOO_LONG:
		judge_match(i, ev);
		CHECK(ev->request.has_data == ev->has_data && ev->request.data == ev->data);
		too_long++;
		fetch(i, &ev->request);
		break;
	case M5_TM_REMOVED:
		CHECK(how[i].state == R_REMOVING);
		how[i].state = R_FREE;
		break;
	case M5_TM_UNEXPECTED: take_unexpected(&ev->request); break;
	case M5_TM_SENT:
		CHECK(!m5_tm_find(peer, ev->send->id));
		UTIL_CONTAINER_OF(ev->send, struct send, tm)->is_open = false;
		done++;
		break;
	case M5_TM_KEPT:
		CHECK(m5_tm_find(peer, ev->send->id) == ev->send);
		note_kept(UTIL_CONTAINER_OF(ev->send, struct send, tm));
		break;
	case M5_TM_DOWN: CHECK(!"the peer is down"); break;
	}
}

static void poll_some(void)
{
	struct m5_tm_event ev;

	while (m5_tm_poll(tm, &ev))
		handle(&ev);
}

static void sleep_once(void)
{
	uint32_t before = woken;
	struct m5_tm_event ev;

	if (!tag_sleep(&ev, &woken))
		return;
	woken_by_match += woken > before && ev.kind == M5_TM_MATCHED;
	handle(&ev);
}

/* Takes a posted receive out of the list. Returns false if a message was faster. */
static bool take_out(unsigned i)
{
	uint64_t begin = util_clock_ns();
	struct m5_tm_event ev;
	uint32_t before = matched_cnt;

	if (how[i].state == R_SOFT) {
		how[i].state = R_FREE;
		return true;
	}
	if (m5_tm_remove(tm, &recvs[i].tm, false))
		return false;
	how[i].state = R_REMOVING;
	while (how[i].state == R_REMOVING) {
		CHECK(util_clock_ns() - begin < STUCK_NS);
		if (m5_tm_poll(tm, &ev))
			handle(&ev);
	}
	CHECK(how[i].state == R_FREE || matched_cnt > before);
	return how[i].state == R_FREE;
}

/* A message of another path goes to the oldest receive that accepts it, or is forgotten. */
static void local_message(void)
{
	uint64_t tag = pair_rand() % 8;
	int i;

	while ((i = oldest_recv(tag)) >= 0)
		if (take_out((unsigned)i)) {
			locals++;
			return;
		}
}

/* ---- the play ---- */

static void step(void)
{
	static const uint64_t masks[] = { ~0ull, ~0ull, ~3ull, 0 };
	unsigned i = (unsigned)(pair_rand() % TAGS);
	bool is_last = sent == total && unexpected_cnt;

	switch (pair_rand() % 64) {
	case 0:
		if (is_posted(i))
			removed += take_out(i);
		break;
	case 1: local_message(); break;
	case 2 ... 3: refuse_kept(); break;
	case 4 ... 5: sleep_once(); break;
	default: poll_some(); break;
	case 11 ... 30:
		if (how[i].state == R_FREE)
			post(i, is_last ? 0 : masks[pair_rand() % 4]);
		else if (how[i].state == R_SOFT)
			try_list(i);
		break;
	case 31 ... 40:
		if (sent < total)
			sent += tag_send(sent, tag_of(side, sent), len_of(side, sent));
		break;
	}
}

void match_play(uint32_t msgs)
{
	uint64_t begin = util_clock_ns();

	CHECK(msgs <= MSGS_MAX);
	total = msgs;
	while (done < total || ended_cnt < total) {
		step();
		CHECK(util_clock_ns() - begin < STUCK_NS + msgs * 20 * UTIL_NS_PER_MS);
	}
	for (unsigned i = 0; i < TAGS; i++)
		CHECK(!is_posted(i) || take_out(i));
	printf("side %d: %u messages: %u matched by the device, %u too long, %u by software\n",
	       side, total, by_device, too_long, by_software);
	printf("side %d: %u receives late, %u removed, %u taken by others\n", side, late, removed,
	       locals);
	printf("side %d: %u sends kept by the other side, %u of its messages refused\n", side,
	       kept_cnt, refused);
	printf("side %d: woken %u times, by a match %u\n", side, woken, woken_by_match);
	CHECK(by_device > total / 50 && by_software && too_long && removed && locals);
	CHECK(total < 1000 || (refused && kept_cnt && woken_by_match));
}
