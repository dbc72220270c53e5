/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Expands compressed CQEs one at a time. m5_cqe_zip.h has the layout. */
#include "dev/mlx5/m5_cqe_zip.h"

#include <endian.h>
#include <string.h>

bool m5_zip_begin(struct m5_zip *zip, const struct m5_cqe *title, const void *minis,
		  uint32_t cq_size)
{
	uint32_t cnt = be32toh(title->len);

	if (!cnt || cnt > cq_size)
		return false;
	zip->left = cnt;
	zip->idx = 0;
	zip->counter = be16toh(title->wqe_counter);
	zip->cqe = *title;
	zip->cqe.op_own &= (uint8_t)~M5_CQE_ZIPPED;
	memcpy(zip->mini, minis, sizeof(zip->mini));
	return true;
}

struct m5_cqe *m5_zip_next(struct m5_zip *zip, const struct m5_cqe *place)
{
	const struct m5_mini_cqe *mini = &zip->mini[zip->idx % M5_ZIP_MINIS];
	struct m5_cqe *cqe = &zip->cqe;

	if (zip->idx && zip->idx % M5_ZIP_MINIS == 0)
		memcpy(zip->mini, place, sizeof(zip->mini));
	cqe->len = mini->len;
	if (cqe->op_own >> 4 == M5_CQE_REQ) {
		cqe->wqe_counter = mini->wqe_counter;
		cqe->sop_qpn = (cqe->sop_qpn & htobe32(M5_QPN_MASK)) |
			       htobe32((uint32_t)mini->opcode << 24);
	} else {
		cqe->wqe_counter = htobe16((uint16_t)(zip->counter + zip->idx));
	}
	zip->idx++;
	zip->left--;
	return cqe;
}
