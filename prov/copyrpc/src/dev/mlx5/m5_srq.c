/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Start of a shared receive queue: writes and links all WQEs (m5_srq.h). */
#include "dev/mlx5/m5_srq.h"

#include <string.h>

static void m5_srq_write(struct m5_srq *srq, uint16_t idx)
{
	struct m5_srq_next *next = m5_srq_at(srq, idx);
	struct m5_data *data = (void *)(next + 1);

	memset(next, 0, srq->stride);
	next->next = htobe16((idx + 1) & srq->mask);
	/* A gather entry of length 0 with the key of nothing ends the list of entries. */
	data->lkey = htobe32(M5_LKEY_NONE);
}

void m5_srq_init(struct m5_srq *srq, void *buf, uint32_t places, uint32_t stride, uint32_t *record,
		 uint16_t counter)
{
	uint32_t idx;

	*srq = (struct m5_srq){
		.buf = buf,
		.record = record,
		.stride = stride,
		.mask = (uint16_t)(places - 1),
		.tail = (uint16_t)(places - 1),
		.free = places - 1,
		.refill = (places - 1 + 2) / 3,
	};
	m5_recv_init(&srq->recv, NULL, places, counter);
	for (idx = 0; idx < places; idx++)
		m5_srq_write(srq, (uint16_t)idx);
}
