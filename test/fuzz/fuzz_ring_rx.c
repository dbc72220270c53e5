/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of the ring's receive side: a peer that writes any bytes can only fail its own
 * connection.
 *
 * The input is a script: put bytes (or a plausible batch) into the receive ring, announce any
 * immediate, complete reads of the consumer word with any value. In between the user sends, calls,
 * replies, retains and releases. Up-calls read every byte that they are given and return the
 * verdict of the script. The ring lies between two inaccessible pages.
 *
 * Checks besides the sanitizers: flow control stays in a legal state, positions stay in the ring, a
 * response finds an open call only, and a failed connection makes no more up-calls.
 */
#include <rdma/fi_errno.h>

#include "ring/ring_rx.h"
#include "script.h"
#include "support/ring_pair.h"
#include "wire/wire_ring.h"

#define CALLS 16u
#define OPEN  64u
#define HOLDS 64u

static struct script script;
static struct ring_pair pair;
static struct ring_conn *conn;
static uint8_t *ring;
static bool calls[CALLS]; /* the context of a call is the address of its entry */
static struct core_call_ref open_calls[OPEN];
static unsigned open_cnt;
static core_retain_t holds[HOLDS];
static unsigned hold_cnt, down_cnt;

static uint64_t take(unsigned bytes)
{
	return script_take(&script, bytes);
}

static void read_all(const uint8_t *data, uint32_t len)
{
	static volatile uint8_t sink;
	uint8_t sum = 0;

	CHECK(data >= ring && data + len <= ring + conn->rx.len);
	while (len--)
		sum ^= *data++;
	sink = sum;
	(void)sink;
}

static void act(void);

static enum core_rx_verdict decide(core_retain_t retain)
{
	uint8_t what = (uint8_t)take(1);

	if (what & 0x80)
		act();
	switch (what & 7) {
	case 0: return CORE_RX_BAD;
	case 1: return (enum core_rx_verdict)what;
	case 2:
		if (hold_cnt == HOLDS)
			return CORE_RX_DONE;
		holds[hold_cnt++] = retain;
		return CORE_RX_RETAIN;
	default: return CORE_RX_DONE;
	}
}

static enum core_rx_verdict fuzz_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				     uint32_t len, core_retain_t retain)
{
	CHECK(!(op & WIRE_ID_RESPONSE));
	read_all(data, len);
	return decide(retain);
}

static enum core_rx_verdict fuzz_call(struct core_chan *chan, struct core_call_ref ref,
				      const uint8_t *data, uint32_t len, core_retain_t retain)
{
	read_all(data, len);
	CHECK(ref.resp_max < conn->tx.flow.grant_max);
	if (open_cnt < OPEN)
		open_calls[open_cnt++] = ref;
	return decide(retain);
}

static void fuzz_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		       uint32_t len)
{
	bool *call = context;

	CHECK(!status && call >= calls && call < calls + CALLS && *call);
	*call = false;
	read_all(data, len);
	if (take(1) & 1)
		act();
}

static void fuzz_down(struct core_chan *chan, int err)
{
	CHECK(err < 0);
	down_cnt++;
}

static void fuzz_arrived(struct core_chan *chan, uint64_t pos)
{
	CHECK((int64_t)(pos - conn->tx.flow.producer) <= 0);
}

static const struct core_upcalls upcalls = {
	.on_msg = fuzz_msg,
	.on_acked = fuzz_arrived,
	.on_call = fuzz_call,
	.on_reply = fuzz_reply,
	.on_down = fuzz_down,
};

/* ---- actions of the user ---- */

static void act_send(void)
{
	static uint8_t zeros[4096];
	struct iovec iov = { .iov_base = zeros, .iov_len = take(1) };
	struct core_frame frame = ring_frame(1, &iov);

	conn->eng.chan.ops->send(&conn->eng.chan, &frame, take(1) & 3);
}

static void act_call(void)
{
	struct core_frame frame = { .op = 2 };
	unsigned slot = 0;

	while (slot < CALLS && calls[slot])
		slot++;
	if (slot < CALLS &&
	    !conn->eng.chan.ops->call(&conn->eng.chan, &frame, (uint32_t)take(1), &calls[slot], 0))
		calls[slot] = true;
}

static void act_respond(void)
{
	static const uint8_t zeros[256];
	size_t len = take(1);
	int ret;

	if (!open_cnt)
		return;
	ret = core_chan_reply(&conn->eng.chan, open_calls[open_cnt - 1], zeros, len);
	CHECK(ret == 0 || (ret == -FI_EMSGSIZE && len > open_calls[open_cnt - 1].resp_max));
	open_cnt -= !ret;
}

static void act_release(void)
{
	unsigned i;

	if (!hold_cnt)
		return;
	i = (unsigned)take(1) % hold_cnt;
	conn->eng.chan.ops->release(&conn->eng.chan, holds[i]);
	holds[i] = holds[--hold_cnt];
}

static void act(void)
{
	switch (take(1) % 6) {
	case 0: act_send(); break;
	case 1: act_call(); break;
	case 2: act_respond(); break;
	case 3: act_release(); break;
	case 4: conn->eng.chan.ops->flush(&conn->eng.chan); break;
	case 5: pair.end[0].dev.sq_len ^= 1; break; /* toggles whether the device refuses writes */
	}
}

/* ---- actions of the peer ---- */

static void put(uint64_t at, const void *src, size_t len)
{
	uint64_t off = ring_off(conn->rx.producer + at, conn->rx.len);

	memcpy(ring + off, src, len < conn->rx.len - off ? len : conn->rx.len - off);
}

static void peer_bytes(void)
{
	uint64_t at = take(2);
	size_t len = take(1);
	size_t left = (size_t)(script.end - script.at);

	len = len < left ? len : left;
	put(at, script.at, len);
	script.at += len;
}

/**
 * Returns a message id from two bytes: of a response to one of the first calls, of a call, or of a
 * one-way message.
 */
static uint32_t peer_id(void)
{
	uint8_t kind = (uint8_t)take(1);

	return (kind & 1 ? WIRE_ID_RESPONSE : 0) | (kind & 2 ? (uint32_t)take(4) >> 1 : kind >> 4);
}

/** Writes a consistent batch from a few bytes, sometimes with a wrong count or immediate. */
static void peer_batch(void)
{
	uint8_t shape = (uint8_t)take(1);
	struct wire_meta meta = { .consumer_pos = conn->tx.flow.remote_consumer + 32 * (shape & 1),
				  .credit_grant = shape & 2 ? 32 * take(1) : 0,
				  .message_count = shape >> 4 };
	struct wire_hdr hdr;
	uint64_t at = WIRE_META_LEN;
	uint32_t i;

	for (i = 0; i < meta.message_count; i++) {
		hdr.call_id = peer_id();
		hdr.piggyback = (uint32_t)take(1) & (hdr.call_id & WIRE_ID_RESPONSE ? 1 : 7);
		hdr.len = (uint8_t)take(1);
		put(at, &hdr, sizeof(hdr));
		at += wire_msg_span(hdr.len);
	}
	if (shape & 8) {
		meta.message_count += (uint32_t)take(1) & 1;
		at += WIRE_ALIGN * (take(1) % 3) - WIRE_ALIGN;
	}
	if (shape & 4) {
		meta.message_count = WIRE_COUNT_WRAP;
		at = conn->rx.len - ring_off(conn->rx.producer, conn->rx.len);
	}
	/* short form: a link in memory decodes the immediate as a very long distance */
	if (take(1) & 1) {
		ring_rx_batch(conn->link->ops, conn,
			      wire_imm_short((uint32_t)(at / WIRE_ALIGN), shape & 1));
		return;
	}
	put(0, &meta, sizeof(meta));
	ring_rx_batch(conn->link->ops, conn, (uint32_t)(at / WIRE_ALIGN));
}

static void peer_read(void)
{
	fake_link_of(conn->link)->read_value = conn->tx.flow.remote_consumer + take(2);
	if (conn->read == RING_READ_POSTED)
		fake_link_of(conn->link)->read_busy = true;
	ring_end_progress(&pair.end[0]);
}

static void check(void)
{
	const struct ring_rx *rx = &conn->rx;

	CHECK(conn->eng.err <= 0);
	CHECK(ring_flow_holds(&conn->tx.flow));
	CHECK(conn->tx.credit <= rx->len / 4);
	CHECK(rx->producer - rx->consumer <= rx->len);
	CHECK(conn->eng.err || rx->parsed == rx->producer);
	CHECK(*conn->link->consumer_word == rx->consumer);
	CHECK(down_cnt <= 1);
}

static void step(void)
{
	switch (take(1) % 8) {
	case 0:
	case 1: peer_bytes(); break;
	case 2: ring_rx_batch(conn->link->ops, conn, (uint32_t)take(1)); break;
	case 3: ring_rx_batch(conn->link->ops, conn, (uint32_t)take(4)); break;
	case 4:
	case 5: peer_batch(); break;
	case 6: peer_read(); break;
	case 7: act(); break;
	}
	check();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t starts[] = { 0, (1ull << 32) - 96, (1ull << 63) - 96, -96ull };
	struct ring_pair_cfg cfg = { .seed = 1 };
	uint8_t shape;

	script = (struct script){ data, data + size };
	shape = (uint8_t)take(1);
	cfg.direct = shape & 1;
	cfg.rx_len[0] = shape & 2 ? 1024 : 4096;
	cfg.rx_len[1] = shape & 4 ? 1024 : 4096;
	cfg.start[0] = starts[shape >> 3 & 3];
	cfg.start[1] = starts[shape >> 5 & 3];
	cfg.ack = !cfg.direct && (take(1) & 1);
	ring_pair_flush = (struct ring_flush_cfg){ .best_len = 512, .cheap_signal = shape & 0x80 };
	ring_pair_init(&pair, &cfg, &upcalls);
	pair.end[0].dev.sink = true;
	pair.end[0].dev.sq_len = 1;
	conn = &pair.end[0].conn;
	ring = pair.end[0].link->rx_base;
	memset(calls, 0, sizeof(calls));
	open_cnt = hold_cnt = down_cnt = 0;
	while (!script_is_over(&script))
		step();
	ring_pair_fini(&pair);
	return 0;
}
