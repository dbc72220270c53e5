/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of rings: two processes that write and read their rings at once.
 *
 * Two threads play the processes: a shared-memory device each, connections over rings of the
 * smallest sizes, messages and calls both ways. Some messages are retained and released out of
 * order, calls are replied to out of order, every byte is checked, and idle threads sleep. Only
 * flow control keeps a writer from bytes that the reader still uses: where it fails,
 * ThreadSanitizer reports the race.
 *
 * In the first round each writer uses the reader's own mapping, since ThreadSanitizer identifies
 * memory by its address; in the second round each has its own mapping.
 */
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dev/shm/shm.h"
#include "ring/ring_rx.h"
#include "ring/ring_call.h"
#include "support/check.h"
#include "support/rng.h"
#include "util/clock.h"

#define CONNS    6u
#define ITEMS    20000u /* messages and calls per connection and direction */
#define OPEN_MAX 64u
#define HOLD_MAX 8u
#define LIMIT_NS (600 * UTIL_NS_PER_S)

static const uint64_t ring_lens[CONNS] = { 1024, 1024, 2048, 4096, 4096, 16384 };

/** Call of the peer that waits for its response; `item` is its number. */
struct open_call {
	struct core_call_ref ref;
	uint32_t item;
};

struct held {
	core_retain_t retain;
	const uint8_t *data;
	uint32_t len;
	uint32_t item;
};

struct end {
	struct ring_conn conn; /* First member */
	struct player *player;
	uint32_t sent, got;
	uint32_t calls[OPEN_MAX]; /* contexts: item + 1 of the open calls of this end */
	uint32_t call_cnt;
	struct open_call open[OPEN_MAX];
	uint32_t open_cnt;
	struct held held[HOLD_MAX];
	uint32_t held_cnt;
	/* this end's own mapping, restored before close unmaps it */
	struct shm_inbox *own_inbox_map;
};

struct player {
	struct core_engine engine;
	struct core_engine_ep eep; /* With a look queued, so that none is */
	struct end ends[CONNS];
	struct rng rng;
	uint32_t sleeps, again;
	pthread_t thread;
};

static struct player players[2];

static struct ring_transport *transport_of(struct player *p)
{
	return ring_transport_of(eng_transport_at(&p->engine, 0));
}
static const struct ring_flush_cfg flush_cfg = { .best_len = 512,
						 .reads_consumer = true,
						 .head_bits = 32 };

/* ---- content ---- */

static uint32_t mix(uint32_t item)
{
	item *= 2654435761u;
	return item ^ item >> 15;
}

static bool item_is_call(uint32_t item)
{
	return mix(item) % 4 == 0;
}

static uint32_t item_len(const struct end *end, uint32_t item)
{
	return mix(item + 77) % 8 ? mix(item) % 64
				  : mix(item) % (uint32_t)end->conn.eng.chan.eager_max;
}

static uint32_t item_resp_max(uint32_t item)
{
	return mix(item + 5) % 21;
}

static void fill(uint8_t *dst, uint32_t item, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		dst[i] = (uint8_t)(item * 31 + i * 7 + 1);
}

static void check_bytes(const uint8_t *data, uint32_t item, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		CHECK(data[i] == (uint8_t)(item * 31 + i * 7 + 1));
}

/* ---- up-calls ---- */

static struct end *end_of(struct core_chan *chan)
{
	return (struct end *)chan;
}

static enum core_rx_verdict keep_some(struct end *end, const uint8_t *data, uint32_t len,
				      uint32_t item, core_retain_t retain)
{
	if (end->held_cnt == HOLD_MAX || rng_chance(&end->player->rng, 3, 4))
		return CORE_RX_DONE;
	end->held[end->held_cnt++] = (struct held){ retain, data, len, item };
	return CORE_RX_RETAIN;
}

static enum core_rx_verdict on_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	struct end *end = end_of(chan);
	uint32_t item = end->got++;

	CHECK(!item_is_call(item) && op == (item & 0x7FFFFFFF));
	check_bytes(data, item, len);
	return keep_some(end, data, len, item, retain);
}

static enum core_rx_verdict on_call(struct core_chan *chan, struct core_call_ref ref,
				    const uint8_t *data, uint32_t len, core_retain_t retain)
{
	struct end *end = end_of(chan);
	uint32_t item = end->got++;

	CHECK(item_is_call(item) && ref.resp_max >= item_resp_max(item) && len >= 4);
	check_bytes(data + 4, item, len - 4);
	CHECK(end->open_cnt < OPEN_MAX);
	end->open[end->open_cnt++] = (struct open_call){ ref, item };
	return keep_some(end, data + 4, len - 4, item, retain);
}

static void on_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		     uint32_t len)
{
	struct end *end = end_of(chan);
	uint32_t *call = context;

	CHECK(!status && *call && len <= item_resp_max(*call - 1));
	check_bytes(data, *call - 1, len);
	*call = 0;
	end->call_cnt--;
}

static void on_down(struct core_chan *chan, int err)
{
	fprintf(stderr, "a connection went down: %s\n", fi_strerror(-err));
	abort();
}

static const struct core_upcalls upcalls = {
	.on_msg = on_msg,
	.on_call = on_call,
	.on_reply = on_reply,
	.on_down = on_down,
};

/* ---- actions ---- */

static int send_call(struct end *end, const struct core_frame *frame, uint32_t item)
{
	uint32_t i = 0;
	int ret;

	while (i < OPEN_MAX && end->calls[i])
		i++;
	if (i == OPEN_MAX)
		return -FI_EAGAIN;
	end->calls[i] = item + 1;
	ret = ring_call_frame(&shm_link_ops_inline, &flush_cfg, &end->conn, frame,
			      item_resp_max(item), &end->calls[i], 0);
	if (ret)
		end->calls[i] = 0;
	else
		end->call_cnt++;
	return ret;
}

static bool try_send(struct end *end)
{
	uint8_t bytes[16384];
	uint32_t item = end->sent;
	struct iovec iov = { .iov_base = bytes, .iov_len = item_len(end, item) };
	struct core_frame frame = { .op = item, .iov = &iov, .iov_cnt = 1, .len = iov.iov_len };
	int ret;

	if (item == ITEMS)
		return false;
	fill(bytes, item, (uint32_t)frame.len);
	ret = item_is_call(item)
		      ? send_call(end, &frame, item)
		      : ring_send_frame(&shm_link_ops_inline, &flush_cfg, &end->conn, &frame,
					rng_chance(&end->player->rng, 1, 4) ? CORE_SEND_MORE : 0);
	CHECK(!ret || ret == -FI_EAGAIN);
	end->sent += !ret;
	end->player->again += !!ret;
	return !ret;
}

static void respond(struct end *end)
{
	uint32_t i = (uint32_t)rng_below(&end->player->rng, end->open_cnt);
	struct open_call open = end->open[i];
	uint32_t len = mix(open.item) % (item_resp_max(open.item) + 1);
	uint8_t bytes[64];
	struct iovec iov = { .iov_base = bytes, .iov_len = len };

	end->open[i] = end->open[--end->open_cnt];
	fill(bytes, open.item, len);
	CHECK(!ring_reply(&shm_link_ops_inline, &flush_cfg, &end->conn, open.ref, &iov, 1, len, 0));
}

static void release(struct end *end)
{
	uint32_t i = (uint32_t)rng_below(&end->player->rng, end->held_cnt);
	struct held held = end->held[i];

	end->held[i] = end->held[--end->held_cnt];
	check_bytes(held.data, held.item, held.len);
	if (ring_retained_release(&end->conn.rx.retained, held.retain))
		ring_rx_release(&end->conn);
}

static void progress(struct player *p)
{
	ring_rx_progress(&shm_dev_ops_inline, &shm_link_ops_inline, &p->engine);
}

static bool end_is_quiet(const struct end *end)
{
	return end->sent == ITEMS && !end->call_cnt && !end->open_cnt && !end->held_cnt &&
	       !end->conn.tx.open && !end->conn.tx.post_cnt;
}

static bool is_done(const struct player *p)
{
	uint32_t i;

	for (i = 0; i < CONNS; i++)
		if (!end_is_quiet(&p->ends[i]) || p->ends[i].got != ITEMS)
			return false;
	return true;
}

/** Sleeps if all is sent and replied to, since only a message of the peer can then cause work. */
static void sleep_if_idle(struct player *p)
{
	struct pollfd pfd = { .fd = shm_dev_wait_fd(transport_of(p)->dev), .events = POLLIN };
	uint32_t i;

	for (i = 0; i < CONNS; i++)
		if (p->ends[i].sent != ITEMS || p->ends[i].open_cnt || p->ends[i].held_cnt)
			return;
	if (is_done(p) || !util_list_is_empty(&transport_of(p)->dirty) ||
	    shm_dev_arm(transport_of(p)->dev))
		return;
	CHECK(poll(&pfd, 1, 20000) == 1);
	shm_dev_disarm(transport_of(p)->dev);
	p->sleeps++;
}

static void *play(void *arg)
{
	struct player *p = arg;
	uint64_t start = util_clock_ns(), rounds = 0;
	uint32_t i;

	while (!is_done(p)) {
		struct end *end = &p->ends[rng_below(&p->rng, CONNS)];
		bool busy = false;

		for (i = (uint32_t)rng_below(&p->rng, 6); i; i--)
			busy |= try_send(end);
		if (end->open_cnt && rng_chance(&p->rng, 1, 2))
			respond(end);
		if (end->held_cnt && rng_chance(&p->rng, 1, 2))
			release(end);
		progress(p);
		if (!busy)
			sleep_if_idle(p);
		if (!busy && rng_chance(&p->rng, 1, 4))
			sched_yield();
		if (!(++rounds & 0xFFF))
			CHECK(util_clock_ns() - start < LIMIT_NS);
	}
	return NULL;
}

/* ---- both ends in one process ---- */

static void player_open(struct player *p, uint64_t seed)
{
	struct ring_transport *transport = transport_of(p);

	memset(p, 0, sizeof(*p));
	p->rng.state = seed;
	CHECK(!shm_dev_open(&transport->dev));
	p->engine.up = &upcalls;
	util_list_init(&transport->dirty);
	util_list_init(&p->engine.failed);
	util_list_init(&p->engine.events);
	pthread_mutex_init(&p->engine.lock, NULL);
	p->eep.engine = &p->engine;
	p->eep.look_queued = true;
}

/** Maps the ring that `from` writes at the address of its reader. */
static void share_mapping(struct end *from, const struct dev_link *to)
{
	struct shm_link *link = (struct shm_link *)from->conn.link;
	const struct shm_link *peer = (const struct shm_link *)to;

	from->own_inbox_map = link->peer_inbox;
	link->base.tx_base = peer->base.rx_base;
	link->peer_notify = &peer->ctrl->notify;
	link->peer_consumer = &peer->ctrl->consumer;
	link->peer_inbox = peer->dev->inbox;
}

static void end_init(struct player *p, struct end *end)
{
	struct ring_conn *conn = &end->conn;
	struct dev_link *link = conn->link;

	end->player = p;
	conn->eng.engine = &p->engine;
	conn->eng.eep = &p->eep;
	conn->eng.transport = eng_transport_at(&p->engine, 0);
	conn->eng.up = &upcalls;
	util_list_init(&conn->eng.fail_link);
	util_list_init(&conn->dirty_link);
	util_list_init(&conn->balance_link);
	ring_conn_init(conn, link, link->tx_len / 8, link->rx_len / 8);
	CHECK(!shm_link_attach(link));
}

static void connect_ends(uint32_t n, bool shared)
{
	struct dev_desc desc[2] = { { 0 }, { 0 } };
	struct end *end[2] = { &players[0].ends[n], &players[1].ends[n] };
	uint32_t i, k;

	for (i = 0; i < 2; i++) {
		CHECK(!shm_link_create(transport_of(&players[i])->dev, ring_lens[(n + i) % CONNS],
				       &end[i]->conn.link));
		CHECK(!shm_link_describe(end[i]->conn.link, &desc[i]));
	}
	for (i = 0; i < 2; i++)
		CHECK(!shm_link_connect(end[i]->conn.link, &desc[!i]));
	for (i = 0; i < 2; i++)
		for (k = 0; k < desc[i].fd_cnt; k++)
			close(desc[i].fds[k]);
	for (i = 0; i < 2 && shared; i++)
		share_mapping(end[i], end[!i]->conn.link);
	for (i = 0; i < 2; i++)
		end_init(&players[i], end[i]);
}

static void end_close(struct end *end)
{
	struct dev_link *link = end->conn.link;

	shm_link_detach(link);
	if (end->own_inbox_map)
		((struct shm_link *)link)->peer_inbox = end->own_inbox_map;
	shm_link_close(link);
	ring_conn_fini(&end->conn);
}

static void run_round(const char *name, bool shared, uint64_t seed)
{
	uint32_t i, n;

	for (i = 0; i < 2; i++)
		player_open(&players[i], seed + i);
	for (n = 0; n < CONNS; n++)
		connect_ends(n, shared);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&players[i].thread, NULL, play, &players[i]));
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(players[i].thread, NULL));
	printf("%s: %u messages and calls each way, refused for a while %u + %u, sleeps %u + %u\n",
	       name, CONNS * ITEMS, players[0].again, players[1].again, players[0].sleeps,
	       players[1].sleeps);
	for (n = 0; n < CONNS; n++)
		for (i = 0; i < 2; i++)
			end_close(&players[i].ends[n]);
	for (i = 0; i < 2; i++)
		shm_dev_close(transport_of(&players[i])->dev);
}

int main(void)
{
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 1);

	run_round("one mapping", true, seed);
	run_round("two mappings", false, seed + 2);
	return 0;
}
