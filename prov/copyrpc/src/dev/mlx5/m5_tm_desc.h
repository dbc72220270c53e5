/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Description of a peer's two queue pairs for tag matching (m5_tm.h), as it travels to the peer.
 * Called by ring/ring_mlx5_tags.c. Tests: test/unit/dev/mlx5/test_m5_tm_desc.c.
 */
#ifndef DEV_MLX5_M5_TM_DESC_H
#define DEV_MLX5_M5_TM_DESC_H

#include "dev/mlx5/m5_tm.h"

#define M5_TM_DESC_LEN 40u

/** Encodes both halves of m5_tm_peer_describe, of one port. */
void m5_tm_desc_encode(const struct m5_tm_peer *peer, uint8_t *bytes);

/** Decodes and validates. Returns 0, or -FI_EINVAL with a log line. */
int m5_tm_desc_decode(const uint8_t *bytes, struct ib_desc *tx, struct ib_desc *rx);

/** Connects by the peer's description. Returns 0 or an error, logged. */
int m5_tm_desc_connect(struct m5_tm_peer *peer, const uint8_t *bytes);

#endif
