/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transmit bursts: each packet leaves once, unchanged and in order, and its bytes remain until
 * then.
 */
#include "erpc/buf/erpc_out.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/rng.h"

#define TX_CNT 8u /* minimum of dgram.h */
#define OWNERS 3u
#define PEERS  2u

/* ---- device that reads late ---- */

static struct dev_dgram_out sent[TX_CNT]; /* by number modulo TX_CNT */
static unsigned room;                     /* datagrams that it accepts in total */
static unsigned calls;
static int broken;

static int take(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt)
{
	unsigned n = 0;

	calls++;
	if (broken)
		return broken;
	while (n < cnt && room && dg->tx_posted - dg->tx_done < TX_CNT) {
		sent[dg->tx_posted++ % TX_CNT] = out[n++];
		room--;
	}
	return n ? (int)n : -FI_EAGAIN;
}

static const struct dev_dgram_ops ops = { .send = take };
static struct dev_dgram dg;
static struct dev_dgram_ah peers[PEERS];
static struct erpc_out out;
static struct erpc_out_owner owners[OWNERS];

static void setup(void)
{
	dg = (struct dev_dgram){
		.ops = &ops, .mtu = 1024, .tx_posted = UINT32_MAX - 3, .tx_done = UINT32_MAX - 3
	};
	cr_assert_eq(erpc_out_init(&out, &dg, NULL, NULL, TX_CNT), 0);
	room = UINT32_MAX;
}

static void teardown(void)
{
	erpc_out_fini(&out);
}

static uint8_t bytes[256];

/** Adds packet `number`; its owner, peer and first byte follow from the number. */
static void put(uint32_t number)
{
	struct wire_erpc_hdr h = { .req_num = number, .kind = WIRE_ERPC_RFR };

	erpc_out_put(&out, &peers[number % PEERS], &h, &bytes[number % 256], 1, NULL, NULL,
		     &owners[number % OWNERS]);
}

/** Returns the number in the header of a packet, after checking the rest. */
static uint32_t number_of(const struct dev_dgram_out *pkt)
{
	struct wire_erpc_hdr h;

	cr_assert(wire_erpc_get(&h, pkt->base[0], pkt->len[0]));
	cr_assert_eq(pkt->len[1], 1);
	cr_assert_eq(pkt->base[1], &bytes[h.req_num % 256]);
	cr_assert_eq(pkt->to, &peers[h.req_num % PEERS]);
	return (uint32_t)h.req_num;
}

/** Completes the oldest datagram of the device. */
static uint32_t leave(void)
{
	cr_assert_neq(dg.tx_done, dg.tx_posted);
	return number_of(&sent[dg.tx_done++ % TX_CNT]);
}

TestSuite(erpc_out, .init = setup);

Test(erpc_out, a_burst_is_one_call, .fini = teardown)
{
	uint32_t i;

	cr_expect_eq(erpc_out_flush(&out), 0);
	cr_expect_eq(calls, 0, "the burst is empty");
	for (i = 0; i < TX_CNT; i++) {
		cr_assert(erpc_out_room(&out));
		put(i);
		cr_expect_eq(owners[i % OWNERS].unsent, i / OWNERS + 1);
	}
	cr_expect_eq(calls, 0);
	cr_expect_eq(erpc_out_flush(&out), 0);
	cr_expect_eq(calls, 1);
	for (i = 0; i < OWNERS; i++)
		cr_expect_eq(owners[i].unsent, 0);
	for (i = 0; i < TX_CNT; i++)
		cr_expect_eq(leave(), i);
}

Test(erpc_out, a_full_burst_has_no_room_until_the_device_has, .fini = teardown)
{
	uint32_t i;

	room = 0;
	for (i = 0; i < ERPC_BURST; i++) {
		cr_assert(erpc_out_room(&out));
		put(i);
	}
	cr_expect_not(erpc_out_room(&out));
	cr_expect_eq(erpc_out_flush(&out), 0, "a full device is no error");
	room = 1;
	cr_expect(erpc_out_room(&out));
	cr_expect_eq(out.cnt, ERPC_BURST - 1);
}

Test(erpc_out, a_device_error_is_returned_and_packets_remain, .fini = teardown)
{
	put(0);
	broken = -FI_EIO;
	cr_expect_eq(erpc_out_flush(&out), -FI_EIO);
	cr_expect_eq(owners[0].unsent, 1);
	cr_expect_eq(out.cnt, 1);
}

/** Makes random steps: adds packets, lets the device accept and complete some, forgets some. */
static void play(unsigned steps, bool forget)
{
	struct rng rng = { .state = rng_env("COPYRPC_TEST_SEED", 5) };
	static bool gone[1u << 16]; /* forgotten, must not leave */
	uint32_t next = 0, read = 0, i, pick;

	for (; steps--; room = 0) {
		switch (rng_below(&rng, forget ? 8 : 6)) {
		case 0:
		case 1:
		case 2:
			if (erpc_out_room(&out))
				put(next++);
			break;
		case 3:
		case 4:
			room = (unsigned)rng_below(&rng, TX_CNT);
			cr_assert_eq(erpc_out_flush(&out), 0);
			break;
		case 5:
			/* Rarely, so that the queue is often full. */
			for (; dg.tx_done != dg.tx_posted && rng_chance(&rng, 1, 2); read++) {
				while (gone[read])
					read++;
				cr_assert_eq(leave(), read);
			}
			break;
		case 6:
			pick = (uint32_t)rng_below(&rng, OWNERS);
			for (i = 0; i < out.cnt; i++)
				gone[number_of(&out.pkt[i])] |= out.owner[i] == &owners[pick];
			erpc_out_forget(&out, &owners[pick]);
			cr_assert_eq(owners[pick].unsent, 0);
			break;
		case 7:
			pick = (uint32_t)rng_below(&rng, PEERS);
			for (i = 0; i < out.cnt; i++)
				gone[number_of(&out.pkt[i])] |= out.pkt[i].to == &peers[pick];
			erpc_out_forget_peer(&out, &peers[pick]);
			break;
		}
		cr_assert_lt(next, 1u << 16);
		cr_assert_eq(owners[0].unsent + owners[1].unsent + owners[2].unsent, out.cnt);
	}
	cr_assert_gt(read, 100);
}

Test(erpc_out, packets_leave_once_and_in_order, .fini = teardown)
{
	play(20000, false);
}

Test(erpc_out, forgotten_packets_do_not_leave_and_others_do, .fini = teardown)
{
	play(20000, true);
}

/** For example, a peer repeats requests while the device does not move. */
Test(erpc_out, headers_remain_while_later_packets_are_forgotten, .fini = teardown)
{
	uint32_t i;

	for (i = 0; i < TX_CNT; i++)
		put(i);
	erpc_out_flush(&out);
	put(0); /* owner 0 remains in the burst */
	for (i = 0; i < 1000; i++) {
		put(4); /* owner 1, like the next one */
		put(7);
		put(2);
		erpc_out_forget(&out, &owners[1]);
		cr_assert_eq(out.cnt, 2);
		erpc_out_forget(&out, &owners[2]);
	}
	for (i = 0; i < TX_CNT; i++)
		cr_expect_eq(leave(), i);
	erpc_out_flush(&out);
	cr_expect_eq(leave(), 0);
	cr_expect_eq(dg.tx_done, dg.tx_posted);
}

Test(erpc_out, headers_for_a_device_that_copies_fill_few_lines, .fini = teardown)
{
	uint32_t i, laps;

	teardown();
	dg.inline_max = dg.mtu;
	cr_assert_eq(erpc_out_init(&out, &dg, NULL, NULL, 1u << 15), 0);
	cr_expect_lt(out.hdr_mask, 2 * ERPC_BURST);
	for (laps = 0; laps < 3; laps++) {
		for (i = 0; i < ERPC_BURST; i++)
			put(i);
		for (i = 0; i < ERPC_BURST; i++) {
			if (i % TX_CNT == 0)
				cr_assert_eq(erpc_out_flush(&out), 0);
			cr_assert_eq(leave(), i);
		}
		cr_assert_eq(out.cnt, 0);
		cr_expect_eq(out.hdr_next, 0, "the next burst begins with the first one");
	}
}

/* ---- message buffers ---- */

Test(erpc_out, a_resent_buffer_requests_a_report, .fini = teardown)
{
	struct wire_erpc_hdr h = { .req_num = 77 };
	struct erpc_bufs bufs;
	struct erpc_buf *buf;
	uint32_t last_tx = 0;
	struct erpc_out_bytes memory = {
		.data = "bytes", .len = 5, .flags = DEV_DGRAM_REPORT, .last_tx = &last_tx
	};
	unsigned i;

	erpc_bufs_init(&bufs, &dg, NULL, NULL);
	buf = erpc_buf_alloc(&bufs, ERPC_BUF_TINY);
	buf->len = 100;
	for (i = 0; i < 2; i++) {
		/* The first packet is contiguous; the second has a header elsewhere. */
		erpc_out_put_first(&out, &peers[0], buf, 60, &h, NULL);
		erpc_out_put(&out, &peers[0], &h, buf->data + 60, 40, buf->mem, buf, NULL);
		cr_expect_eq(out.pkt[0].base[0], buf->hdr);
		cr_expect_eq(dev_dgram_out_len(&out.pkt[0]), WIRE_ERPC_HDR_LEN + 60);
		cr_expect_eq(dev_dgram_out_len(&out.pkt[1]), WIRE_ERPC_HDR_LEN + 40);
		cr_expect_eq(!!(out.pkt[1].flags & DEV_DGRAM_REPORT), i);
		cr_assert_eq(erpc_out_flush(&out), 0);
		cr_expect_eq(buf->last_tx, dg.tx_posted - 1);
		buf->resent = true;
	}
	erpc_out_put(&out, &peers[0], &h, NULL, 0, NULL, NULL, NULL);
	erpc_out_put_bytes(&out, &peers[0], &h, &memory, NULL);
	cr_expect_not(out.pkt[0].flags & DEV_DGRAM_REPORT);
	cr_expect(out.pkt[1].flags & DEV_DGRAM_REPORT);
	cr_assert_eq(erpc_out_flush(&out), 0);
	cr_expect_eq(last_tx, dg.tx_posted - 1);
	erpc_buf_free(&bufs, buf);
	cr_expect_eq(bufs.used_cnt, 1);
	dg.tx_done = dg.tx_posted;
	erpc_bufs_reap_cold(&bufs);
	cr_expect_eq(bufs.used_cnt, 0);
	erpc_bufs_fini(&bufs);
}

/* ---- device that registers memory ---- */

static struct dev_mem reg;
static int reg_err;
static unsigned reg_cnt;

static int reg_mem(struct dev *dev, const void *addr, size_t len, unsigned access,
		   struct dev_mem **mem)
{
	cr_assert_eq(access, DEV_MEM_LOCAL);
	cr_assert_not_null(addr);
	cr_assert_geq(len, (TX_CNT + ERPC_BURST) * WIRE_ERPC_HDR_LEN);
	if (reg_err)
		return reg_err;
	*mem = &reg;
	reg_cnt++;
	return 0;
}

static void dereg_mem(struct dev *dev, struct dev_mem *mem)
{
	cr_assert_eq(mem, &reg);
	reg_cnt--;
}

Test(erpc_out, headers_are_registered_and_deregistered)
{
	static const struct dev_ops reg_ops = { .mem_reg = reg_mem, .mem_dereg = dereg_mem };

	teardown();
	cr_assert_eq(erpc_out_init(&out, &dg, NULL, &reg_ops, TX_CNT), 0);
	put(0);
	cr_expect_eq(out.pkt[0].mem[0], &reg);
	teardown();
	cr_expect_eq(reg_cnt, 0);
	reg_err = -FI_ENOMEM;
	cr_expect_eq(erpc_out_init(&out, &dg, NULL, &reg_ops, TX_CNT), -FI_ENOMEM);
}
