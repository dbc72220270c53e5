/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Immediates of writes that arrive before their link is attached, kept in order. Called by the
 * links and polls of mlx5 and verbs.
 *
 * Protected by the device's lock until attach; belongs to the polling thread afterwards.
 */
#ifndef DEV_IB_IB_EARLY_H
#define DEV_IB_IB_EARLY_H

#include <stdbool.h>
#include <stdint.h>

/** Zero-filled is empty. */
struct ib_early {
	uint32_t *imm;
	uint32_t cnt;
	uint32_t cap;
	uint32_t at; /* index of the next one to take */
};

/** Keeps imm. Returns false without memory, or if a ring of ring_len bytes cannot hold so many. */
bool ib_early_put(struct ib_early *early, uint64_t ring_len, uint32_t imm);

/** Takes the next one. Returns false if none is left. */
static inline bool ib_early_take(struct ib_early *early, uint32_t *imm)
{
	if (early->at == early->cnt)
		return false;
	*imm = early->imm[early->at++];
	return true;
}

static inline bool ib_early_is_empty(const struct ib_early *early)
{
	return early->at == early->cnt;
}

/** Frees the memory, and empties it. */
void ib_early_fini(struct ib_early *early);

#endif
