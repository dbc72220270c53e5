/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rings over shared memory: this device's copy of the loop, and the engine of domains that have
 * no other, whose progress is that loop and nothing else.
 *
 * A batch leaves as ring_flush.h says: the peer's consumer word is one load away, so the policy
 * knows whether the peer is busy.
 */
#include "dev/shm/shm.h"
#include "ring/ring_over.h"
#include "wire/wire_cm.h"

static const struct ring_flush_cfg ring_shm_flush_cfg = { .best_len = 544, .looks = true };

RING_OVER(shm, WIRE_CM_PATH_SHM, shm_dev_ops, shm_dev_ops_inline, shm_link_ops_inline,
	  ring_shm_flush_cfg);

static int ring_shm_open(const struct core_upcalls *up, struct core_engine **engine)
{
	return ring_engine_open(&ring_paths_shm, up, engine);
}

static void ring_shm_progress(struct core_engine *engine)
{
	ring_loop_progress(&shm_dev_ops_inline, &shm_link_ops_inline, engine);
}

const struct core_engine_ops ring_engine_shm_ops = {
	.name = "ring/shm",
	.open = ring_shm_open,
	.close = ring_engine_close,
	.ep_open = ring_engine_ep_open,
	.ep_addr = ring_engine_ep_addr,
	.ep_close = ring_engine_ep_close,
	.connect = ring_engine_connect,
	.connect_cancel = ring_engine_connect_cancel,
	.dial = ring_engine_dial,
	.answer = ring_engine_answer,
	.progress = ring_shm_progress,
	.wait_fd = ring_engine_wait_fd,
	.arm = ring_engine_arm,
	.disarm = ring_engine_disarm,
};
