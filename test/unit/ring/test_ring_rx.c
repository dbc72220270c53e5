/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Is every batch that does not add up refused, and every other one taken? (ring_rx.h)
 *
 * One end, whose receive ring the test writes like a peer that may lie. The ring stands between two
 * pages that cannot be touched. A refusal fails the connection with -FI_EIO and takes in nothing
 * of what comes behind the fault.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ring/ring_rx.h"
#include "support/ring_pair.h"
#include "support/rng.h"
#include "wire/wire_ring.h"

#define C 4096u

static struct ring_pair pair;
static struct ring_conn *conn; /* end 0 */
static uint8_t *ring;          /* what it reads */

/* What the up-calls saw, and what the next ones say. */
static unsigned msg_cnt, call_cnt, reply_cnt;
static uint32_t seen_op, seen_len;
static const uint8_t *seen_data;
static core_hold_t seen_hold;
static struct core_call_ref seen_ref;
static enum core_rx_verdict verdict;
static void (*in_upcall)(void);

static enum core_rx_verdict see(const uint8_t *data, uint32_t len, core_hold_t hold)
{
	uint32_t i, sum = 0;

	for (i = 0; i < len; i++)
		sum += data[i];
	cr_assert(sum < UINT32_MAX, "every byte can be read");
	seen_data = data;
	seen_len = len;
	seen_hold = hold;
	if (in_upcall)
		in_upcall();
	return verdict;
}

static enum core_rx_verdict see_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				    uint32_t len, core_hold_t hold)
{
	(void)chan;
	msg_cnt++;
	seen_op = op;
	return see(data, len, hold);
}

static enum core_rx_verdict see_call(struct core_chan *chan, struct core_call_ref ref,
				     const uint8_t *data, uint32_t len, core_hold_t hold)
{
	(void)chan;
	call_cnt++;
	seen_ref = ref;
	return see(data, len, hold);
}

static void see_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		      uint32_t len)
{
	(void)chan;
	cr_assert_eq(status, 0);
	reply_cnt++;
	*(unsigned *)context += 1;
	see(data, len, 0);
}

static const struct core_upcalls see_upcalls = {
	.on_msg = see_msg,
	.on_call = see_call,
	.on_reply = see_reply,
};

static void start_at(uint64_t pos)
{
	const struct ring_pair_cfg cfg = {
		.direct = true, .rx_len = { C, C }, .start = { pos, 0 }, .seed = 1
	};

	ring_pair_init(&pair, &cfg, &see_upcalls);
	conn = &pair.end[0].conn;
	ring = pair.end[0].link->rx_base;
}

static void start(void)
{
	start_at(0);
}

/** The same over a link that moves the bytes. */
static void start_late(uint64_t pos)
{
	const struct ring_pair_cfg cfg = {
		.late = true, .rx_len = { C, C }, .start = { pos, 0 }, .seed = 1
	};

	ring_pair_fini(&pair);
	ring_pair_init(&pair, &cfg, &see_upcalls);
	conn = &pair.end[0].conn;
	ring = pair.end[0].link->rx_base;
}

static void stop(void)
{
	ring_pair_fini(&pair);
}

TestSuite(ring_rx, .init = start, .fini = stop);

/** Writes metadata where the next batch begins. */
static void put_meta(uint64_t consumer, uint64_t grant, uint32_t count)
{
	struct wire_meta meta = { .consumer_pos = consumer,
				  .credit_grant = grant,
				  .message_count = count };

	memcpy(ring + ring_off(conn->rx.producer, C), &meta, sizeof(meta));
}

/** Writes a message header `at` bytes behind the start of the next batch. */
static void put_hdr(uint32_t at, uint32_t id, uint32_t piggyback, uint32_t len)
{
	struct wire_hdr hdr = { .call_id = id, .piggyback = piggyback, .len = len };

	memcpy(ring + ring_off(conn->rx.producer, C) + at, &hdr, sizeof(hdr));
}

static void accepted(uint32_t bytes)
{
	uint64_t before = conn->rx.producer;

	ring_rx_batch(conn->link->ops, conn, bytes / WIRE_ALIGN);
	cr_expect_eq(conn->eng.err, 0);
	cr_expect_eq(conn->rx.producer, before + bytes);
	cr_expect_eq(conn->rx.parsed, before + bytes);
}

static void refused_imm(uint32_t imm)
{
	ring_rx_batch(conn->link->ops, conn, imm);
	cr_expect_eq(conn->eng.err, -FI_EIO);
	cr_expect_not(util_list_is_empty(&pair.end[0].engine.failed), "core hears of it");
}

static void refused(uint32_t bytes)
{
	refused_imm(bytes / WIRE_ALIGN);
}

/* ---- good ones ---- */

Test(ring_rx, a_message_is_handed_out_with_its_operation_and_bytes)
{
	put_meta(0, 0, 1);
	put_hdr(32, 0x7FFFFFFF, 0, 20);
	accepted(64);
	cr_expect_eq(msg_cnt, 1);
	cr_expect_eq(seen_op, 0x7FFFFFFF);
	cr_expect_eq(seen_len, 20);
	cr_expect_eq(seen_data, ring + 32 + 12);
	cr_expect_eq(*conn->link->consumer_word, 64);
}

static char noted[8];

static void note_op(void)
{
	noted[msg_cnt - 1] = (char)('0' + seen_op);
}

Test(ring_rx, messages_are_handed_out_first_in_first_out)
{
	in_upcall = note_op;
	put_meta(0, 0, 3);
	put_hdr(32, 1, 0, 0);
	put_hdr(64, 2, 0, 21);
	put_hdr(128, 3, 0, 53);
	accepted(224);
	cr_expect_eq(msg_cnt, 3);
	cr_expect_str_eq(noted, "123");
}

Test(ring_rx, a_batch_that_ends_at_the_end_of_the_ring_is_read_to_its_last_byte_only)
{
	conn->rx.producer = conn->rx.parsed = conn->rx.consumer = C - 64;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 20);
	accepted(64);
	cr_expect_eq(seen_data + seen_len, ring + C, "there is nothing behind it");
}

Test(ring_rx, a_batch_without_messages_tells_consumer_and_credit)
{
	uint64_t credit = conn->tx.credit;

	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(96, 64, 0);
	accepted(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 96);
	cr_expect_eq(conn->tx.credit, credit + 64);
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx, a_marker_ends_the_lap_and_tells_consumer_and_credit)
{
	uint64_t credit = conn->tx.credit;

	conn->rx.producer = conn->rx.parsed = conn->rx.consumer = C - 96;
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(128, 32, WIRE_COUNT_WRAP);
	accepted(96);
	cr_expect_eq(conn->tx.flow.remote_consumer, 128);
	cr_expect_eq(conn->tx.credit, credit + 32);
	cr_expect_eq(ring_off(conn->rx.producer, C), 0);
	cr_expect_eq(conn->rx.consumer, C);
}

Test(ring_rx, an_old_consumer_position_is_ignored)
{
	conn->tx.flow.producer = conn->tx.flush_start = 1024;
	conn->tx.flow.remote_consumer = 512;
	put_meta(480, 0, 0);
	accepted(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 512);
}

Test(ring_rx, positions_go_on_behind_32_and_63_and_64_bits)
{
	static const uint64_t pos[] = { (1ull << 32) - 64, (1ull << 63) - 64, -64ull };
	unsigned i;

	for (i = 0; i < 3; i++) {
		stop();
		start_at(pos[i]);
		conn->tx.flow.producer = conn->tx.flush_start = 64;
		put_meta(0, 0, WIRE_COUNT_WRAP);
		accepted(64);
		put_meta(32, 0, 1);
		put_hdr(32, 9, 0, 4);
		accepted(64);
		cr_expect_eq(conn->rx.consumer, pos[i] + 128);
	}
	cr_expect_eq(msg_cnt, 3);
}

/* ---- immediates ---- */

Test(ring_rx, an_immediate_of_zero_is_refused)
{
	put_meta(0, 0, 0);
	refused_imm(0);
}

Test(ring_rx, an_immediate_across_the_end_is_refused)
{
	conn->rx.producer = conn->rx.parsed = conn->rx.consumer = C - 64;
	put_meta(0, 0, 0);
	refused(96);
}

Test(ring_rx, the_largest_immediate_is_refused)
{
	put_meta(0, 0, 0);
	refused_imm(UINT32_MAX);
}

Test(ring_rx, an_overrun_of_bytes_that_are_held_is_refused)
{
	verdict = CORE_RX_HOLD;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 20);
	accepted(64);
	put_meta(0, 0, WIRE_COUNT_WRAP);
	accepted(C - 64);
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	refused(64);
	cr_expect_eq(msg_cnt, 1);
}

/* ---- short immediates ---- */

static void accepted_short(uint32_t bytes, uint32_t news)
{
	uint64_t before = conn->rx.producer;

	ring_rx_batch(conn->link->ops, conn, wire_imm_short(bytes / WIRE_ALIGN, news / WIRE_ALIGN));
	cr_expect_eq(conn->eng.err, 0);
	cr_expect_eq(conn->rx.parsed, before + bytes);
}

Test(ring_rx, a_short_immediate_brings_messages_and_news_without_metadata)
{
	start_late(-64ull);
	put_meta(0, 0, WIRE_COUNT_WRAP);
	accepted(64);
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	memset(ring, 0xFF, WIRE_META_LEN);
	put_hdr(32, 1, 0, 20);
	put_hdr(64, 2, 0, 21);
	accepted_short(128, 96);
	cr_expect_eq(msg_cnt, 2);
	cr_expect_eq(seen_op, 2);
	cr_expect_eq(conn->tx.flow.remote_consumer, 96);
	put_hdr(32, 3, 0, 0);
	accepted_short(64, 32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 128, "news is what is new");
	put_meta(224, 0, 1);
	put_hdr(32, 4, 0, 0);
	accepted(64);
	put_hdr(32, 5, 0, 0);
	accepted_short(64, 32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 256, "also behind metadata");
	cr_expect_eq(msg_cnt, 5);
}

Test(ring_rx, news_go_on_from_what_was_told_not_from_what_was_read)
{
	start_late(0);
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	conn->tx.flow.remote_consumer = 192; /* a READ said so */
	put_hdr(32, 1, 0, 0);
	accepted_short(64, 96);
	cr_expect_eq(conn->tx.flow.remote_consumer, 192);
	put_hdr(32, 1, 0, 0);
	accepted_short(64, 160);
	cr_expect_eq(conn->tx.flow.remote_consumer, 256);
}

Test(ring_rx, a_short_immediate_without_a_message_is_refused)
{
	start_late(0);
	refused_imm(wire_imm_short(1, 0));
}

Test(ring_rx, a_short_immediate_of_zero_is_refused)
{
	start_late(0);
	refused_imm(wire_imm_short(0, 1));
}

Test(ring_rx, a_short_immediate_across_the_end_is_refused)
{
	start_late(C - 64);
	put_hdr(32, 1, 0, 0);
	refused_imm(wire_imm_short(3, 0));
}

Test(ring_rx, news_beyond_what_was_posted_are_refused)
{
	start_late(0);
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_hdr(32, 1, 0, 0);
	refused_imm(wire_imm_short(2, 9));
	cr_expect_eq(conn->tx.flow.remote_consumer, 0);
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx, a_message_longer_than_its_short_batch_is_refused)
{
	start_late(0);
	put_hdr(32, 1, 0, 21);
	refused_imm(wire_imm_short(2, 0));
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx, a_link_in_memory_knows_no_short_immediates)
{
	put_hdr(32, 1, 0, 0);
	refused_imm(wire_imm_short(2, 0));
	cr_expect_eq(msg_cnt, 0);
}

/* ---- metadata ---- */

Test(ring_rx, reserved_bits_are_refused)
{
	struct wire_meta meta = { .reserved = 1u << 31 };

	memcpy(ring, &meta, sizeof(meta));
	refused(32);
}

Test(ring_rx, a_consumer_position_beyond_what_was_posted_is_refused)
{
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(288, 0, 0);
	refused(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 0);
}

Test(ring_rx, a_consumer_position_in_the_open_batch_is_refused)
{
	conn->tx.flow.producer = 320;
	conn->tx.flush_start = 256;
	conn->tx.open = true;
	put_meta(288, 0, 0);
	refused(32);
}

/** A peer that could release what never left would have batch after batch pile up in tx.posts. */
Test(ring_rx, a_consumer_position_in_what_the_device_has_not_taken_is_refused)
{
	const struct ring_pair_cfg cfg = { .rx_len = { C, C }, .seed = 1 };
	struct core_frame frame = { .op = 1 };

	stop();
	ring_pair_init(&pair, &cfg, &see_upcalls);
	conn = &pair.end[0].conn;
	ring = pair.end[0].link->rx_base;
	pair.end[0].dev.sq_len = 1;
	conn->eng.chan.ops->send(&conn->eng.chan, &frame, 0);
	conn->eng.chan.ops->send(&conn->eng.chan, &frame, 0);
	cr_assert_eq(conn->tx.post_cnt, 1);
	cr_assert_eq(conn->tx.flush_start, 128);
	put_meta(64, 0, 0);
	accepted(32);
	put_meta(96, 0, 0);
	refused(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 64);
}

Test(ring_rx, a_consumer_position_between_blocks_is_refused)
{
	conn->tx.flow.producer = conn->tx.flush_start = 256;
	put_meta(100, 0, 0);
	refused(32);
	cr_expect_eq(conn->tx.flow.remote_consumer, 0);
}

Test(ring_rx, credit_that_is_no_whole_block_is_refused)
{
	put_meta(0, 33, 0);
	refused(32);
}

Test(ring_rx, credit_beyond_a_quarter_of_the_ring_is_refused)
{
	uint64_t left = C / 4 - conn->tx.credit;

	put_meta(0, left, 0);
	accepted(32);
	put_meta(0, 32, 0);
	refused(32);
}

Test(ring_rx, credit_that_would_overflow_is_refused)
{
	uint64_t credit = conn->tx.credit;

	put_meta(0, -32ull, 0);
	refused(32);
	cr_expect_eq(conn->tx.credit, credit);
}

Test(ring_rx, a_marker_that_does_not_end_the_lap_is_refused)
{
	put_meta(0, 0, WIRE_COUNT_WRAP);
	refused(C - 32);
}

/* ---- counts and lengths ---- */

Test(ring_rx, more_messages_than_bytes_are_refused)
{
	put_meta(0, 0, 2);
	put_hdr(32, 1, 0, 20);
	refused(64);
	cr_expect_eq(msg_cnt, 1, "the first was good");
}

Test(ring_rx, a_message_in_metadata_alone_is_refused)
{
	put_meta(0, 0, 1);
	refused(32);
}

Test(ring_rx, the_largest_count_is_refused)
{
	put_meta(0, 0, WIRE_COUNT_WRAP - 1);
	refused(C);
}

Test(ring_rx, bytes_behind_the_last_message_are_refused)
{
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	refused(96);
}

Test(ring_rx, bytes_without_messages_are_refused)
{
	put_meta(0, 0, 0);
	refused(64);
}

Test(ring_rx, a_message_one_byte_longer_than_its_batch_is_refused)
{
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 53);
	refused(96);
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx, a_message_longer_than_the_ring_is_refused)
{
	static const uint32_t lens[] = {
		UINT32_MAX, UINT32_MAX - 11, UINT32_MAX - 12, UINT32_MAX - 43, C, C - 12
	};
	unsigned i;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		put_meta(0, 0, 1);
		put_hdr(32, 1, 0, lens[i]);
		refused(96);
		stop();
		start();
	}
	cr_expect_eq(msg_cnt, 0);
}

Test(ring_rx, a_message_that_its_reader_does_not_understand_is_refused)
{
	verdict = CORE_RX_BAD;
	put_meta(0, 0, 2);
	put_hdr(32, 1, 0, 0);
	put_hdr(64, 1, 0, 0);
	refused(96);
	cr_expect_eq(msg_cnt, 1);
}

Test(ring_rx, a_failed_connection_takes_nothing_more)
{
	refused_imm(0);
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	ring_rx_batch(conn->link->ops, conn, 2);
	cr_expect_eq(msg_cnt, 0);
	cr_expect_eq(conn->rx.producer, 0);
}

/* ---- calls and answers ---- */

static unsigned answers; /* a call's context */

/** Makes a call: the id that its answer must have. */
static uint32_t make_call(void)
{
	struct iovec iov = { .iov_base = "", .iov_len = 0 };
	struct core_frame frame = ring_frame(1, &iov);
	uint64_t pos = conn->tx.flow.producer + WIRE_META_LEN;
	struct wire_hdr hdr;

	cr_assert_eq(conn->eng.chan.ops->call(&conn->eng.chan, &frame, 20, &answers), 0);
	memcpy(&hdr, conn->tx.base + ring_off(pos, C), sizeof(hdr));
	return hdr.call_id;
}

Test(ring_rx, an_answer_finds_its_call_once)
{
	uint32_t id = make_call();

	put_meta(0, 0, 1);
	put_hdr(32, id | WIRE_ID_RESPONSE, 0, 20);
	accepted(64);
	cr_expect_eq(answers, 1);
	put_meta(0, 0, 1);
	put_hdr(32, id | WIRE_ID_RESPONSE, 0, 20);
	refused(64);
	cr_expect_eq(answers, 1);
}

Test(ring_rx, answers_to_calls_that_were_never_made_are_refused)
{
	static const uint32_t ids[] = { 0, 1, 1u << 20, 0x7FFFFFFF };
	unsigned i;

	for (i = 0; i < 4; i++) {
		put_meta(0, 0, 1);
		put_hdr(32, ids[i] | WIRE_ID_RESPONSE, 0, 0);
		refused(64);
		stop();
		start();
	}
	cr_expect_eq(reply_cnt, 0);
}

Test(ring_rx, an_answer_of_an_earlier_generation_is_refused)
{
	uint32_t id = make_call();

	put_meta(0, 0, 1);
	put_hdr(32, (id ^ 1u << 20) | WIRE_ID_RESPONSE, 0, 0);
	refused(64);
	cr_expect_eq(answers, 0);
}

Test(ring_rx, an_answer_that_asks_for_an_answer_is_refused)
{
	uint32_t id = make_call();

	put_meta(0, 0, 1);
	put_hdr(32, id | WIRE_ID_RESPONSE, 1, 0);
	refused(64);
	cr_expect_eq(answers, 0);
}

Test(ring_rx, a_call_brings_its_allowance_and_claims_its_reservation)
{
	put_meta(0, 0, 1);
	put_hdr(32, 0x12345678, 2, 4);
	accepted(64);
	cr_expect_eq(call_cnt, 1);
	cr_expect_eq(seen_ref.call_id, 0x12345678);
	cr_expect_eq(seen_ref.allowance, 52);
	cr_expect_eq(conn->tx.flow.claimed, 96);
}

Test(ring_rx, calls_may_claim_all_that_was_granted_and_no_more)
{
	uint32_t blocks = (uint32_t)conn->tx.flow.granted / WIRE_ALIGN;

	put_meta(0, 0, 1);
	put_hdr(32, 1, blocks - 3, 0);
	accepted(64);
	put_meta(0, 0, 1);
	put_hdr(32, 2, 1, 0);
	accepted(64);
	cr_expect_eq(conn->tx.flow.claimed, conn->tx.flow.granted);
	put_meta(0, 0, 1);
	put_hdr(32, 3, 1, 0);
	refused(64);
	cr_expect_eq(call_cnt, 2);
	cr_expect(ring_flow_holds(&conn->tx.flow));
}

Test(ring_rx, allowances_that_overflow_are_refused)
{
	static const uint32_t blocks[] = { UINT32_MAX, 1u << 27, (1u << 27) + 1, 1u << 31, 16 };
	unsigned i;

	for (i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		put_meta(0, 0, 1);
		put_hdr(32, 1, blocks[i], 0);
		refused(64);
		stop();
		start();
	}
	cr_expect_eq(call_cnt, 0);
}

/* ---- holds ---- */

Test(ring_rx, a_held_message_keeps_its_bytes_and_those_behind_it)
{
	verdict = CORE_RX_HOLD;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	accepted(64);
	verdict = CORE_RX_DONE;
	put_meta(0, 0, 1);
	put_hdr(32, 2, 0, 0);
	accepted(64);
	cr_expect_eq(conn->rx.consumer, 32, "its metadata may go");
	conn->eng.chan.ops->release(&conn->eng.chan, 0);
	cr_expect_eq(conn->rx.consumer, 128);
	cr_expect_eq(*conn->link->consumer_word, 128);
}

Test(ring_rx, only_what_is_released_is_told)
{
	struct wire_meta meta;

	verdict = CORE_RX_HOLD;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	accepted(64);
	make_call();
	memcpy(&meta, conn->tx.base, sizeof(meta));
	cr_expect_eq(meta.consumer_pos, 32);
}

/** The second message of the batch is held; its third ends that hold and an earlier one. */
static void hold_and_release(void)
{
	verdict = seen_op == 3 ? CORE_RX_HOLD : CORE_RX_DONE;
	if (seen_op != 4)
		return;
	conn->eng.chan.ops->release(&conn->eng.chan, 0);
	cr_expect_eq(conn->rx.consumer, 128, "the second message");
	conn->eng.chan.ops->release(&conn->eng.chan, 1);
	cr_expect_eq(conn->rx.consumer, 128, "not back to the start of the batch");
	cr_expect_eq(*conn->link->consumer_word, 128);
}

Test(ring_rx, the_consumer_never_goes_back_in_the_middle_of_a_batch)
{
	verdict = CORE_RX_HOLD;
	put_meta(0, 0, 1);
	put_hdr(32, 1, 0, 0);
	accepted(64);
	in_upcall = hold_and_release;
	put_meta(0, 0, 3);
	put_hdr(32, 2, 0, 0);
	put_hdr(64, 3, 0, 0);
	put_hdr(96, 4, 0, 0);
	accepted(128);
	cr_expect_eq(conn->rx.consumer, 192);
}

/* ---- anything ---- */

/** Writes a batch that is good, but for one word now and then: its immediate. */
static uint32_t put_noise(struct rng *r)
{
	uint64_t off = ring_off(conn->rx.producer, C);
	uint32_t count = (uint32_t)rng_below(r, 5), at = 32, i, len;
	uint64_t *bad = (uint64_t *)(void *)(ring + off + 8 * rng_below(r, 6));

	for (i = 0; i < C / 8; i++)
		*(uint64_t *)(void *)(ring + 8 * i) = rng_next(r);
	put_meta(conn->tx.flow.remote_consumer, 32 * rng_below(r, 2), count);
	for (i = 0; i < count; i++) {
		len = (uint32_t)rng_below(r, 100);
		if (off + at + wire_msg_span(len) > C)
			break;
		put_hdr(at, (uint32_t)rng_next(r) >> 1, (uint32_t)rng_chance(r, 1, 8), len);
		at += wire_msg_span(len);
	}
	if (i < count) {
		put_meta(0, 0, WIRE_COUNT_WRAP);
		at = (uint32_t)(C - off);
	}
	if (rng_chance(r, 1, 4) && (uint8_t *)bad < ring + C)
		*bad ^= rng_next(r) >> rng_below(r, 64);
	if (rng_chance(r, 1, 32))
		at = (uint32_t)rng_below(r, C + 64);
	return at / WIRE_ALIGN;
}

Test(ring_rx, noise_fails_the_connection_and_reads_nothing_beside_the_ring)
{
	struct rng r = { .state = rng_env("COPYRPC_TEST_SEED", 1) };
	unsigned i, good = 0;

	for (i = 0; i < 20000; i++) {
		if (conn->eng.err) {
			stop();
			start();
		}
		verdict = rng_chance(&r, 1, 64) ? CORE_RX_HOLD : CORE_RX_DONE;
		ring_rx_batch(conn->link->ops, conn, put_noise(&r));
		cr_assert(conn->eng.err == 0 || conn->eng.err == -FI_EIO);
		cr_assert(ring_flow_holds(&conn->tx.flow));
		cr_assert(conn->rx.producer - conn->rx.consumer <= C);
		good += !conn->eng.err;
	}
	cr_expect_gt(good, 10000, "only %u of %u batches were good", good, i);
	cr_expect_lt(good, 19000, "%u of %u batches were good", good, i);
}
