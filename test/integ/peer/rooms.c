/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rings that follow use: one endpoint has more peers than it has memory for large rings, and the
 * last of them, whose ring is small, begins to send much. Its ring grows, no message is lost or
 * overtaken, and the rings of the others stay.
 *
 * The room of a peer is measured: messages of 64 bytes are injected until there is no room, while
 * the endpoint makes no progress. All are endpoints of this process, each with a domain of its own.
 *
 * usage: rooms                FI_COPYRPC_MEM has to be small: 24m
 *        rooms quiet          with a pause of more than a minute, in which large rings shrink
 */
#include <stdint.h>
#include <unistd.h>

#include "integ/fab.h"

#define PEERS    30u
#define PATIENCE 120.0 /* seconds */
#define LEN      64u
#define RECEIVES 64u
#define QUIET    70.0 /* seconds: longer than RING_ROOM_QUIET_NS */

static struct fab hub, peers[PEERS];
static fi_addr_t to_hub[PEERS];
static uint64_t sent[PEERS], taken[PEERS];
static uint8_t in[RECEIVES][LEN];

/** Number and sender in the first bytes, and what follows from both. */
static void fill(uint8_t *bytes, unsigned peer, uint64_t number)
{
	memcpy(bytes, &number, sizeof(number));
	for (unsigned i = sizeof(number); i < LEN; i++)
		bytes[i] = (uint8_t)(number * 31 + peer * 7 + i);
}

static void post(uint8_t *bytes)
{
	FAB_CHECK(fi_trecv(hub.ep, bytes, LEN, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, bytes));
}

/** Takes one message, if there is one, and checks that it is the next one of its sender. */
static bool take(void)
{
	struct fi_cq_tagged_entry entry;
	uint8_t expected[LEN];
	int err;

	if (!fab_poll(&hub, &entry, &err))
		return false;
	FAB_TRUE(!err && entry.tag < PEERS && entry.len == LEN);
	fill(expected, (unsigned)entry.tag, taken[entry.tag]);
	FAB_TRUE(!memcmp(entry.op_context, expected, LEN));
	taken[entry.tag]++;
	post(entry.op_context);
	return true;
}

static bool inject(unsigned peer)
{
	uint8_t bytes[LEN];
	ssize_t ret;

	fill(bytes, peer, sent[peer]);
	ret = fi_tinject(peers[peer].ep, bytes, LEN, to_hub[peer], peer);
	FAB_TRUE(!ret || ret == -FI_EAGAIN);
	sent[peer] += !ret;
	return !ret;
}

static void progress(unsigned peer)
{
	struct fi_cq_tagged_entry entry;
	int err;

	FAB_TRUE(!fab_poll(&peers[peer], &entry, &err));
}

/** Lets the hub take everything that a peer has sent. */
static void settle(unsigned peer)
{
	double begin = fab_seconds();

	while (taken[peer] != sent[peer]) {
		progress(peer);
		take();
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	}
}

static void send_one(unsigned peer)
{
	double begin = fab_seconds();

	while (!inject(peer)) {
		progress(peer);
		take();
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	}
	settle(peer);
}

/** Returns the messages that a peer may send before the hub has taken one. */
static unsigned room(unsigned peer)
{
	unsigned cnt = 0;

	send_one(peer);
	while (inject(peer))
		cnt++;
	settle(peer);
	return cnt;
}

/** The end of a ring may be skipped, so the same ring has not always the same room. */
static bool is_like(unsigned one, unsigned other)
{
	return 8 * one > 7 * other && 7 * one < 8 * other;
}

static void open_peer(unsigned peer)
{
	struct sockaddr_in any = fab_addr("127.0.0.1", 0);

	fab_open(&peers[peer], &any, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	to_hub[peer] = fab_insert(&peers[peer], &hub.addr);
	send_one(peer);
}

/** Sends until the ring is at least twice as large. */
static void grow(unsigned peer, unsigned before)
{
	double begin = fab_seconds();
	unsigned after = before;

	while (after < 2 * before) {
		after = room(peer);
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	}
	printf("rooms: after %lu messages and %.1f s there is room for %u instead of %u\n",
	       (unsigned long)sent[peer], fab_seconds() - begin, after, before);
}

/** Makes progress for a while, without a message. */
static void be_quiet(void)
{
	double begin = fab_seconds();

	while (fab_seconds() - begin < QUIET) {
		for (unsigned peer = 0; peer < PEERS; peer++)
			progress(peer);
		FAB_TRUE(!take());
		usleep(10000);
	}
}

/** Expects that the ring of a quiet peer is small now, since others have come after it. */
static void shrink(unsigned peer, unsigned before)
{
	unsigned after;

	be_quiet();
	after = room(peer);
	printf("rooms: quiet for %.0f s, a peer has room for %u instead of %u\n", QUIET, after,
	       before);
	FAB_TRUE(after < before / 2);
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = fab_addr("127.0.0.1", 0);
	bool is_quiet = argc > 1 && !strcmp(argv[1], "quiet");
	unsigned last = PEERS - 1, first, small;

	fab_open(&hub, &any, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	for (unsigned i = 0; i < RECEIVES; i++)
		post(in[i]);
	for (unsigned i = 0; i < PEERS; i++)
		open_peer(i);
	first = room(0);
	small = room(last);
	printf("rooms: the first peer has room for %u messages, the last one for %u\n", first,
	       small);
	FAB_TRUE(small < first);
	grow(last, small);
	FAB_TRUE(is_like(room(0), first));
	FAB_TRUE(is_like(room(last - 1), small));
	if (is_quiet)
		shrink(0, first);
	for (unsigned i = 0; i < PEERS; i++) {
		send_one(i);
		fab_close(&peers[i]);
	}
	fab_close(&hub);
	printf("rooms: ok\n");
	return 0;
}
