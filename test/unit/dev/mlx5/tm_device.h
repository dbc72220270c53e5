/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching with one peer on queues in memory, and the device's side of them: completions, by
 * hand. The layouts are those of rdma-core (test_m5_layout.c).
 *
 * Everything is static: each including file has its own copy.
 */
#ifndef UNIT_MLX5_TM_DEVICE_H
#define UNIT_MLX5_TM_DEVICE_H

#include <criterion/criterion.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "cq_device.h"
#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_tm.h"
#include "sq_device.h"

#define CNT     4u /* entries: one more than receives */
#define WQES    8u
#define BLOCKS  16u
#define COMMAND 0x123456u /* number that sq_device has */
#define TX      0x111111u
#define RX      0x222222u

static struct m5_dev dev;
static struct m5_tm *tm;
static struct m5_tm_peer *peer;
static struct cq_device cq;
static struct sq_device command, tx;
static uint8_t *srq_buf, bufs[WQES * M5_TM_BUF], user_buf[256];
static uint32_t srq_record;
static struct m5_tags_entry entry[CNT];
static uint64_t words[BLOCKS];
static struct ibv_qp qps[2];
static struct m5_tm_event ev;
static struct m5_tm_recv recv;
static struct m5_tm_send send;
static const uint8_t success[16] = { 0x80 }; /* of a REMOVE */

/** Makes the queues, empty, and the peer. */
static inline void setup(void)
{
	strcpy(dev.ib.name, "fake_0:1");
	cq_device_init(&cq, 32, 64, 0);
	sq_device_init(&command, BLOCKS, 256, 0);
	sq_device_init(&tx, BLOCKS, 256, 0);
	srq_buf = guard_alloc(WQES * 32);
	tm = calloc(1, sizeof(*tm));
	tm->dev = &dev;
	tm->cq = cq.cq;
	m5_srq_init(&tm->srq, srq_buf, WQES, 32, &srq_record, 0);
	m5_srq_post(&tm->srq);
	m5_tags_init(&tm->tags, entry, CNT);
	tm->sq = command.sq;
	tm->sq.uar = &command.uar;
	tm->mem.addr = bufs;
	util_list_init(&tm->failed);
	util_list_init(&tm->closing);
	util_idmap_init(&tm->sends);
	peer = calloc(1, sizeof(*peer));
	peer->tm = tm;
	peer->sq = tx.sq;
	peer->sq.uar = &tx.uar;
	peer->sq.qpn = TX;
	m5_sparse_init(&peer->users, words, BLOCKS);
	util_list_init(&peer->in_tm);
	util_list_init(&peer->sends);
	qps[0].qp_num = TX;
	qps[1].qp_num = RX;
	peer->tx = &qps[0];
	peer->rx = &qps[1];
	cr_assert_eq(ib_qpns_set(&tm->peers, TX, peer), 0);
	cr_assert_eq(ib_qpns_set(&tm->peers, RX, peer), 0);
}

/** Frees what setup has made. */
static inline void teardown(void)
{
	util_idmap_fini(&tm->sends);
	ib_qpns_fini(&tm->peers);
	free(peer);
	free(tm);
	guard_free(srq_buf, WQES * 32);
	sq_device_fini(&tx);
	sq_device_fini(&command);
	cq_device_fini(&cq);
}

/** Returns block `counter` of the command queue: an operation on the list. */
static inline const uint8_t *op_at(unsigned counter)
{
	return command.buf + (size_t)(counter % BLOCKS) * 64;
}

/** Completes something of the list: 0 to 15 of the CQE from `head`, if there is one. */
static inline void complete(uint8_t opcode, uint32_t qpn, uint16_t counter, uint8_t app_op,
			    uint16_t index, uint32_t len, const void *head)
{
	uint8_t *cqe = cq_device_at(&cq, cq.pi);

	cq_device_write(&cq, (uint8_t)(opcode << 4), qpn, counter, 0);
	cqe[40] = 1;
	cqe[41] = app_op;
	cqe[42] = (uint8_t)(index >> 8);
	cqe[43] = (uint8_t)index;
	len = htobe32(len);
	memcpy(cqe + 44, &len, 4);
	if (head)
		memcpy(cqe, head, 16);
}

/** Takes the next event into `ev`. Returns false if there is none. */
static inline bool poll_one(void)
{
	return m5_tm_poll(tm, &ev);
}

/** Lists `recv`: 200 bytes of user_buf, and a tag of which the mask takes the lower half. */
static inline void append_recv(void)
{
	cr_assert_eq(m5_tm_append(tm, &recv, 0x0102030405060708, 0x00000000ffffffff, user_buf, 200,
				  0x00c0ffee, false),
		     0);
}

/** Writes the headers of a request, or of its FIN. */
static inline void fill_head(uint8_t *at, uint8_t op, uint32_t id, uint32_t len)
{
	const struct m5_tmh tmh = { .op = op, .ctx = htobe32(id), .tag = htobe64(0x55) };
	const struct m5_rvh rvh = { htobe64(0x7f0000001000), htobe32(0xabcd), htobe32(len) };

	memcpy(at, &tmh, 16);
	memcpy(at + 16, &rvh, 16);
}

/** Simulates an arrival: the next message takes receive WQE `idx`. */
static inline void arrive(uint8_t app_op, uint32_t qpn, uint16_t idx, uint8_t op, uint32_t id,
			  uint32_t len)
{
	fill_head(bufs + (size_t)idx * 64, op, id, len);
	complete(M5_CQE_RESP_SEND, qpn, idx, app_op, 0, 32, NULL);
}

#endif
