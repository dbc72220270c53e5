/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Link of the mlx5 device that goes over DC: no queue pair of its own, but the device's initiators
 * and target. Called by the functions of m5_link.h, m5_bulk.c and m5_poll.c, which find in a link's
 * own send queue no room, and in the device's map no link by a queue pair's number. So a link that
 * has a queue pair executes next to nothing for this (docs/cost.md).
 *
 * A write has an address vector of the peer (48 bytes; 16 on InfiniBand where the device supports
 * the short form) and otherwise the form of m5_link.h. The immediate names the link (m5_imm.h).
 *
 * A link over DC moves bytes by write_imm and get. It has no puts and no simple accesses.
 *
 * Tests: test/unit/dev/mlx5/test_m5_dlink.c; on the device model test/integ/dev/dev_link with "dc".
 */
#ifndef DEV_MLX5_M5_DLINK_H
#define DEV_MLX5_M5_DLINK_H

#include <stdbool.h>

#include "dev/ib/ib_desc.h"
#include "dev/mlx5/m5_link.h"

/** Number of a link over DC in m5_dev.qpns. */
static inline uint32_t m5_dlink_number(uint32_t id)
{
	return IB_QPNS_OWN | id;
}

/** Fills the DC part of a description. */
void m5_dlink_describe(struct m5_link *link, struct ib_desc *d);
/** Returns true if a link between these two ends goes over DC. The same at both. */
bool m5_dlink_is_chosen(const struct m5_link *link, const struct ib_desc *peer);
/** Returns true if a link between these two ends may move between DC and RC. The same at both. */
bool m5_dlink_may_move(const struct m5_link *link, const struct ib_desc *peer);
/** Keeps the peer's address, so that writes may go over DC. Returns 0 or an error, logged. */
int m5_dlink_aim(struct m5_link *link, const struct ib_desc *peer);
/** Connects over DC. Returns 0 or an error, logged. */
int m5_dlink_connect(struct m5_link *link, const struct ib_desc *peer);
/**
 * Retires the id of a link that does not go over DC, or whose memory is deregistered. What arrived
 * by it is dropped.
 */
void m5_dlink_retire(struct m5_link *link);

/** Posts a byte of a message (m5_move.h). Returns false if there is no room now. */
bool m5_dlink_post_byte(struct m5_link *link, uint8_t byte);

/** Adds the link to the pool. Returns 0 or -FI_ENOMEM. */
int m5_dlink_enter(struct m5_link *link);
/** Removes it: nothing that it posted is executed any more. Any number of times. */
void m5_dlink_leave(struct m5_link *link);

/** Returns the attached link of an immediate, or NULL. */
struct m5_link *m5_dlink_find(struct m5_dev *dev, uint32_t imm);
/** Returns a link that is not attached. Called under the lock. */
struct m5_link *m5_dlink_find_early(struct m5_dev *dev, uint32_t imm);
/**
 * Takes the brief form of the next arrival. Returns true with *imm set to the engine's immediate,
 * or false: it was of a message between the links.
 */
bool m5_dlink_take(struct m5_link *link, uint32_t brief, uint32_t *imm);
/** Works like m5_dlink_take, for the unpacked form of an arrival that has waited for attach. */
bool m5_dlink_take_kept(struct m5_link *link, uint32_t kept, uint32_t *imm);

#endif
