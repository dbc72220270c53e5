/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive WQEs.
 *
 * A receive queue is an array of strides, each full of data segments: length (4), lkey (4), address
 * (8). The list ends at the stride's end or at a segment of length 0 with lkey 0x100.
 *
 * A shared receive queue's stride starts with 16 bytes of its own: at byte 2 the index of the next
 * WQE. The device follows these links from index 0 and does not count.
 */
#ifndef NIC_RWQE_H
#define NIC_RWQE_H

#include <stdint.h>

enum {
	NIC_LKEY_END = 0x100,
	NIC_RWQE_MAX_SEGS = 32,
	NIC_SRQ_LINK_BYTES = 16,
};

struct nic_scatter {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

struct nic_rwqe {
	uint32_t seg_cnt;
	uint64_t len; /* bytes of all segments */
	struct nic_scatter seg[NIC_RWQE_MAX_SEGS];
};

/* Decodes a stride of LEN bytes of a receive queue. */
void nic_rwqe_decode(struct nic_rwqe *rwqe, const uint8_t *stride, uint32_t len);

/* Decodes a stride of a shared receive queue. Returns the index of the next one. */
uint16_t nic_rwqe_decode_shared(struct nic_rwqe *rwqe, const uint8_t *stride, uint32_t len);

#endif
