/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Description of one end of a link, over RC or DC, exchanged by the handshake. Called by ib_qp.c
 * and the links.
 *
 * The mlx5 and the verbs device use the same bytes, so they can connect to each other. 96 bytes,
 * little endian. Decoding validates everything before any of it is used: a malformed description is
 * -FI_EINVAL and a log line.
 *
 *   0 magic u32     4 version u16   6 mtu u8       7 is_eth u8
 *   8 qpn u32      12 psn u32      16 lid u16     18 rd_atomic u8  19 0 u8    20 flags u32
 *  24 gid 16 bytes, as on the wire
 *  40 ring_addr u64  48 ring_len u64  56 word_addr u64  64 ring_rkey u32  68 word_rkey u32
 *  72 dctn u32    76 dc_id u32    80 dc_key u64    88 0, 8 bytes
 *
 * An end with a DC target sets IB_DESC_DC and the fields from 72 on. A link of two such ends with
 * the same MTU goes over DC if one of them, or both, set IB_DESC_DC_WANTED. Such an end may have no
 * queue pair. If both set IB_DESC_MOVES, the link may go over the other way later (m5_move.h). An
 * end sets it only where the handshake found that the peer knows it.
 *
 * Tests: test/unit/dev/ib/test_ib_desc.c and test/fuzz/fuzz_ib_desc.c.
 */
#ifndef DEV_IB_IB_DESC_H
#define DEV_IB_IB_DESC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"

#define IB_DESC_LEN   96u
#define IB_RING_MIN   1024ull
#define IB_RING_MAX   (1ull << 30)
#define IB_QPN_MAX    0xffffffu
#define IB_DESC_MAGIC 0x62697263u /* "crib" */
#define IB_DC_ID_MAX  0xffffu

/** Flags of a description. */
enum ib_desc_flag {
	IB_DESC_DC = 1 << 0,        /* there is a DC target */
	IB_DESC_DC_WANTED = 1 << 1, /* uses it if the peer has one, too; qpn may be 0 */
	IB_DESC_MOVES = 1 << 2,     /* there is a DC target, and the link may move */
};

struct ib_desc {
	uint32_t qpn;
	uint32_t psn;   /* first packet that this end sends */
	uint32_t flags; /* enum ib_desc_flag */
	uint16_t lid;
	uint8_t mtu;       /* enum ibv_mtu */
	uint8_t rd_atomic; /* READs that this end serves at a time, 1 or more */
	bool is_eth;
	union ibv_gid gid;
	uint64_t ring_addr; /* ring that the peer writes */
	uint64_t ring_len;
	uint64_t word_addr; /* consumer word that the peer reads */
	uint32_t ring_rkey;
	uint32_t word_rkey;
	/* IB_DESC_DC; else 0. */
	uint32_t dctn;   /* number of the target */
	uint32_t dc_id;  /* names this link in the peer's immediates: 1 to IB_DC_ID_MAX */
	uint64_t dc_key; /* access key of the target */
};

/** Encodes into desc, without descriptors. */
void ib_desc_encode(const struct ib_desc *d, struct dev_desc *desc);

/** Decodes and validates. Returns 0 or -FI_EINVAL. */
int ib_desc_decode(const struct dev_desc *desc, struct ib_desc *d);

#endif
