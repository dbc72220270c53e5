/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Valid packets with invalid content (docs/datagram-protocol.md, section 7) fail their session, and
 * no other.
 */
#include "erpc/rx/erpc_deliver.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/pool_used.h"
#include "support/up_count.h"
#include "unit/erpc/rx/forged.h"

static const struct core_upcalls upcalls = {
	.on_msg = up_count_msg,
	.on_call = up_count_call,
	.on_reply = up_count_reply,
	.on_acked = up_count_acked,
};

static void join(void)
{
	up_count.verdict = CORE_RX_BAD;
	forged_victim_open(&upcalls);
}

/** Asserts that the packet fails the victim, which keeps nothing of it, and no other session. */
static void ends(struct packet pkt, const char *why)
{
	struct copyrpc_stats_packets before = *forged_pair.end[0].ep->stats;

	pkt.h.msg_size = pkt.len;
	forged_deliver(&pkt);
	cr_expect_eq(forged_victim->err, -FI_EIO, "%s", why);
	cr_expect_eq(forged_pair.end[0].ep->stats->rx_bad, before.rx_bad + 1, "%s", why);
	forged_deliver(&pkt);
	cr_expect_eq(forged_pair.end[0].ep->stats->rx_bad_state, before.rx_bad_state + 1, "%s",
		     why);
	erpc_session_stop(forged_victim);
	cr_expect_eq(forged_pair.end[0].ep->dg->rx_retained, 0, "%s", why);
	cr_expect_eq(pool_used(&forged_pair.end[0].ep->bodies), 0, "%s", why);
	forged_victim_close();
	join();
}

TestSuite(erpc_deliver, .init = forged_setup, .fini = forged_teardown);

Test(erpc_deliver, invalid_content_fails_only_its_session)
{
	static const uint32_t out_of_turn[] = { ERPC_SLOTS, UINT32_MAX, 1u << 31 };
	struct packet pkt;
	unsigned i;

	join();
	for (pkt = forged_victim_packet(0, WIRE_ERPC_REQ), i = 0; i < BATCH_HEAD; i++) {
		pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
		pkt.len = i;
		ends(pkt, "a batch without a header");
		pkt = forged_victim_packet(ERPC_REPLY_SLOT, WIRE_ERPC_REQ);
		pkt.len = i;
		ends(pkt, "replies without a header");
	}
	for (i = 0; i < 3; i++) {
		pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
		memcpy(pkt.data, &out_of_turn[i], sizeof(out_of_turn[i]));
		ends(pkt, "a batch out of sequence");
	}
	for (i = 1; i < 256; i++) {
		if (i >= WIRE_ERPC_FRAME_MSG && i <= WIRE_ERPC_FRAME_REPLY)
			continue;
		pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
		forged_add(&pkt, i, 0, 0, 0, 16);
		ends(pkt, "a frame of an unknown kind");
	}
	for (i = 1; i < 24; i++) {
		pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
		forged_add(&pkt, WIRE_ERPC_FRAME_MSG, 0, 0, 16, i);
		ends(pkt, "a frame beyond the end");
		pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
		forged_add(&pkt, WIRE_ERPC_FRAME_CALL, 0, 0, 12, i);
		ends(pkt, "a call beyond the end");
	}
	pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
	forged_add(&pkt, WIRE_ERPC_FRAME_MSG, 0, 0, 0xFFFFFF, 24);
	ends(pkt, "a frame of 16 MiB");
	for (i = 0; i < 4; i++) {
		pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
		forged_add(&pkt, WIRE_ERPC_FRAME_CALL, 0, 0, i, 16);
		ends(pkt, "a call without its operation");
	}
	pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
	forged_add(&pkt, WIRE_ERPC_FRAME_MSG, 0, 0, 8, 16);
	ends(pkt, "a message that core refuses");
	pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
	forged_add(&pkt, WIRE_ERPC_FRAME_CALL, 0, 0, 8, 24);
	ends(pkt, "a call that core refuses");
	for (i = 0; i < 2; i++) {
		struct wire_erpc_batch head = { .seq = i, .ack = 1 };

		pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
		memcpy(pkt.data, &head, sizeof(head));
		ends(pkt, "an ack of an unsent batch, in an early batch as well");
	}
	forged_victim_close();
	forged_check_traffic();
}

Test(erpc_deliver, content_beyond_the_grant_fails_only_its_session)
{
	struct packet pkt;

	join();
	pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
	forged_add(&pkt, WIRE_ERPC_FRAME_CALL, 0, 2 * ERPC_GRANT, 4, 16);
	ends(pkt, "a maximum response size beyond the grant");
	pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
	forged_add(&pkt, WIRE_ERPC_FRAME_CALL, 0, UINT32_MAX, 4, 16);
	ends(pkt, "the largest maximum response size");
	pkt = forged_victim_packet(0, WIRE_ERPC_REQ);
	forged_add(&pkt, WIRE_ERPC_FRAME_REPLY, 0, 0, 0, 8);
	ends(pkt, "a reply without a call, in a batch");
	pkt = forged_victim_packet(ERPC_REPLY_SLOT, WIRE_ERPC_REQ);
	forged_add(&pkt, WIRE_ERPC_FRAME_REPLY, UINT32_MAX, 0, 0, 8);
	ends(pkt, "a reply without a call");
	pkt = forged_victim_packet(ERPC_REPLY_SLOT, WIRE_ERPC_REQ);
	forged_add(&pkt, WIRE_ERPC_FRAME_MSG, 0, 0, 0, 8);
	ends(pkt, "a message among replies");
	cr_expect_eq(up_count.reply_cnt, 0);
	forged_victim_close();
	forged_check_traffic();
}

/**
 * Calls from the victim and returns a response with a reply of `len` bytes to call `word`, `times`
 * times.
 */
static struct packet reply_packet(uint32_t resp_max, uint32_t word, uint32_t len, unsigned times)
{
	struct packet pkt;

	cr_assert_eq(forged_victim->conn.chan.ops->call_buf(&forged_victim->conn.chan, 0x800,
							    "what?", 5, resp_max, forged_victim, 0),
		     0);
	erpc_ep_progress(forged_pair.end[0].ep, forged_pair.net.now_ns);
	for (pkt = forged_victim_packet(0, WIRE_ERPC_RESP); times; times--)
		forged_add(&pkt, WIRE_ERPC_FRAME_REPLY, word, 0, len,
			   wire_erpc_frame_span(WIRE_ERPC_FRAME_REPLY, len));
	return pkt;
}

Test(erpc_deliver, invalid_replies_fail_only_their_session)
{
	uint32_t word;

	join();
	forged_record();
	/* Finds the id of the first call: a valid reply to it is delivered. */
	for (word = 0; !up_count.reply_cnt; word++) {
		struct packet pkt = reply_packet(8, word, 8, 1);

		cr_assert_lt(word, 1000);
		pkt.h.msg_size = pkt.len;
		forged_deliver(&pkt);
		forged_victim_close();
		join();
	}
	word--;
	ends(reply_packet(8, word, 9, 1), "a reply beyond its maximum size");
	ends(reply_packet(8, word + 1, 8, 1), "a reply to another call");
	cr_expect_eq(up_count.reply_cnt, 1);
	ends(reply_packet(8, word, 8, 2), "a reply that comes twice");
	cr_expect_eq(up_count.reply_cnt, 2);
	forged_victim_close();
	forged_check_traffic();
}

/* ---- valid content ---- */

static uint32_t received[8];
static unsigned received_cnt;

/** Records the operation; 0xBAD fails the session. */
static enum core_rx_verdict record(struct core_chan *chan, uint32_t op, const uint8_t *data,
				   uint32_t len, core_retain_t retain)
{
	cr_assert_lt(received_cnt, 8);
	received[received_cnt++] = op;
	if (op == 0xBAD)
		erpc_session_fail(erpc_session_of(chan), -FI_ECONNABORTED, "enough");
	return CORE_RX_DONE;
}

static const struct core_upcalls recording = { .on_msg = record, .on_acked = up_count_acked };

/** Returns batch `seq` with one message of operation `op`. */
static struct packet batch_of(uint32_t slot, uint32_t seq, uint32_t op)
{
	struct wire_erpc_batch head = { .seq = seq };
	struct packet pkt = forged_victim_packet(slot, WIRE_ERPC_REQ);

	memcpy(pkt.data, &head, sizeof(head));
	forged_add(&pkt, WIRE_ERPC_FRAME_MSG, op, 0, 0, WIRE_ERPC_FRAME_LEN);
	pkt.h.msg_size = pkt.len;
	return pkt;
}

Test(erpc_deliver, early_batches_wait_and_report_the_missing_one)
{
	struct packet pkt;
	uint32_t slot;

	forged_victim_open(&recording);
	forged_record();
	for (slot = 3; slot > 0; slot--) {
		pkt = batch_of(slot, slot, 100 + slot);
		forged_deliver(&pkt);
		cr_expect_eq(received_cnt, 0);
		cr_assert_eq(forged_sent.cnt, 4 - slot);
		cr_expect_eq(forged_sent.h[3 - slot].kind, WIRE_ERPC_CR);
		cr_expect_eq(forged_sent.h[3 - slot].req_type, WIRE_ERPC_KEPT);
		cr_expect_eq(forged_sent.h[3 - slot].req_num, pkt.h.req_num);
		cr_expect_eq(forged_sent.h[3 - slot].msg_size, 0, "the first batch");
	}
	pkt = batch_of(0, 0, 100);
	forged_deliver(&pkt);
	cr_assert_eq(received_cnt, 4);
	for (slot = 0; slot < 4; slot++)
		cr_expect_eq(received[slot], 100 + slot);
	cr_expect_eq(pool_used(&forged_pair.end[0].ep->bodies), 0);
	forged_victim_close();
	forged_check_traffic();
}

Test(erpc_deliver, nothing_is_delivered_after_a_failure)
{
	struct packet pkt;

	forged_victim_open(&recording);
	pkt = batch_of(1, 1, 3);
	forged_deliver(&pkt);
	pkt = batch_of(0, 0, 1);
	forged_add(&pkt, WIRE_ERPC_FRAME_MSG, 0xBAD, 0, 0, WIRE_ERPC_FRAME_LEN);
	forged_add(&pkt, WIRE_ERPC_FRAME_MSG, 2, 0, 0, WIRE_ERPC_FRAME_LEN);
	pkt.h.msg_size = pkt.len;
	forged_deliver(&pkt);
	cr_assert_eq(received_cnt, 2, "%u", received_cnt);
	cr_expect_eq(received[0], 1);
	cr_expect_eq(received[1], 0xBAD);
	cr_expect_eq(forged_victim->err, -FI_ECONNABORTED);
	forged_victim_close();
	forged_check_traffic();
}
