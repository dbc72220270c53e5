/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions that the files of m5_tm.h share. */
#ifndef DEV_MLX5_M5_TM_POLL_H
#define DEV_MLX5_M5_TM_POLL_H

#include "dev/mlx5/m5_tm.h"

#define M5_TM_ID_MASK  ((1u << M5_TM_ID_BITS) - 1)
#define M5_TM_HAS_DATA (1u << M5_TM_ID_BITS)

static_assert(M5_TM_ID_BITS >= UTIL_IDMAP_SLOT_BITS, "an id contains its slot");

/** Note in a header: 24 bits that devices leave alone, an id and M5_TM_HAS_DATA. */
static inline uint32_t m5_tm_note(const struct m5_tmh *tmh)
{
	return (uint32_t)tmh->rsvd1[0] << 16 | (uint32_t)tmh->rsvd1[1] << 8 | tmh->rsvd1[2];
}

/** Builds a header. */
static inline struct m5_tmh m5_tm_head(enum m5_tmh_op op, uint64_t tag, uint32_t id, bool has_data,
				       uint32_t data)
{
	uint32_t note = id | (has_data ? M5_TM_HAS_DATA : 0);

	return (struct m5_tmh){
		.op = (uint8_t)op,
		.rsvd1 = { (uint8_t)(note >> 16), (uint8_t)(note >> 8), (uint8_t)note },
		.ctx = htobe32(has_data ? data : 0),
		.tag = htobe64(tag),
	};
}

/** Decodes the remote CQ data of a header. Returns true if there are any. */
static inline bool m5_tm_data(const struct m5_tmh *tmh, uint32_t *data)
{
	bool has_data = m5_tm_note(tmh) & M5_TM_HAS_DATA;

	*data = has_data ? be32toh(tmh->ctx) : 0;
	return has_data;
}

/** Tells the device how many unexpected requests were handled, if there is room. Does not ring. */
void m5_tm_sync(struct m5_tm *tm);
/** Takes a send out of the open ones. */
void m5_tm_send_end(struct m5_tm_send *send);
/** Arms the CQ. Returns false if the next poll has something to do. Called under the dev's lock. */
bool m5_tm_arm(struct m5_tm *tm);
/** Frees a closed peer, whose completions are out of the CQ. */
void m5_tm_peer_free(struct m5_tm_peer *peer);

#endif
