/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Nodes for atomic operations: see atomic_world.h. */
#include "unit/core/rma/atomic_world.h"

#include <string.h>

#include "unit/core/must.h"

struct atomic_world world;

void world_open(uint64_t access)
{
	fake_engine_cfg.eager_max = fake_engine_cfg.eager_max ? fake_engine_cfg.eager_max : 4096;
	memset(&world, 0, sizeof(world));
	node_limits = (struct core_limits){ .eager_max = 1024, .single_copy_min = SIZE_MAX };
	nodes_open(world.nodes, NODES);
	for (unsigned i = 0; i < NODES; i++) {
		world.nodes[i].ep.remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;
		world.mrs[i] = (struct core_mr){
			.key = KEY,
			.access = access,
			.len = sizeof(world.memory[i]),
			.iov_cnt = 1,
			.iov = { { .iov_base = world.memory[i],
				   .iov_len = sizeof(world.memory[i]) } },
			.remote_read = &world.remote_read[i],
			.remote_write = &world.remote_write[i],
		};
		MUST(!core_mr_add(&world.nodes[i].dom, &world.mrs[i], false));
	}
}

void world_close(void)
{
	for (unsigned i = 0; i < NODES; i++)
		core_mr_remove(&world.nodes[i].dom, &world.mrs[i]);
	nodes_close(world.nodes, NODES);
}
