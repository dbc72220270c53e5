/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ring transport over shared memory: this device's copy of the loop, and the progress of engines in
 * which this transport is first: its loop, and the cold path only when needed.
 *
 * The peer's consumer word is one load away, so the flush policy (ring_flush.h) reads whether the
 * peer is busy.
 */
#include "dev/shm/shm.h"
#include "ring/ring_over.h"
#include "ring/ring_transports.h"
#include "wire/wire_cm.h"

static const struct ring_flush_cfg ring_shm_flush_cfg = { .best_len = 544,
							  .reads_consumer = true,
							  .head_bits = 32 };

RING_OVER(shm, WIRE_CM_PATH_SHM, shm_dev_ops, shm_dev_ops_inline, shm_link_ops_inline,
	  ring_shm_flush_cfg);

void ring_shm_progress(struct core_engine *engine)
{
	ring_loop_progress(&shm_dev_ops_inline, &shm_link_ops_inline, engine);
}
