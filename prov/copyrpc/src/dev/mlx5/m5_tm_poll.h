/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Functions that the files of m5_tm.h share. */
#ifndef DEV_MLX5_M5_TM_POLL_H
#define DEV_MLX5_M5_TM_POLL_H

#include "dev/mlx5/m5_tm.h"

/** Tells the device how many unexpected requests were handled, if there is room. Does not ring. */
void m5_tm_sync(struct m5_tm *tm);
/** Frees a closed peer, whose completions are out of the CQ. */
void m5_tm_peer_free(struct m5_tm_peer *peer);

#endif
