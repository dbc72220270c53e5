/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Get and put of a link, in pieces. Called through dev_link_ops and by vb_poll.
 *
 * A piece has at most chunk_len bytes and lies in one local buffer. Transfers use at most half of
 * the send queue, and all but one of the READs that the queue pair may have in flight, so that
 * messages can pass. A queue pair ends its WQEs in order, so a completion always belongs to the
 * oldest open piece. The last piece of a put with DEV_GET_PLACED is a READ of the peer's consumer
 * word, which PCI Express executes behind the WRITEs.
 *
 * Tests: test/unit/dev/verbs/test_vb_bulk.c, on a kernel device test/rxe.
 */
#ifndef DEV_VERBS_VB_BULK_H
#define DEV_VERBS_VB_BULK_H

#include "dev/verbs/vb_link.h"

#define VB_CHUNK_LEN (1u << 20)

/** Position in the local buffers. */
struct vb_cursor {
	size_t pos; /* bytes of the transfer before this position */
	size_t iov_idx;
	size_t iov_off;
};

struct vb_op {
	struct util_list link; /* in vb_link.ops */
	struct dev_get *get;
	bool is_put;
	bool places; /* the READ behind the put is still to be posted */
	bool placed; /* the READ is still to end */
	struct vb_cursor posted;
	struct vb_cursor done;
};

/** Returns the bytes of the piece at `at`; 0 at the end. */
size_t vb_bulk_piece(const struct dev_get *get, const struct vb_cursor *at, size_t chunk_len);

/** Moves `at` behind a piece of `len` bytes. */
void vb_bulk_step(const struct dev_get *get, struct vb_cursor *at, size_t len);

/** Posts pieces while there is room. */
void vb_bulk_push(struct vb_link *link);

/** Ends the oldest piece. Returns the transfer that ended with it, or NULL. */
struct dev_get *vb_bulk_done(struct vb_link *link);

/** Drops all transfers. */
void vb_bulk_drop(struct vb_link *link);

#endif
