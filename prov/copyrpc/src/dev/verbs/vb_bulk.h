/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How are large amounts moved, without keeping small ones from passing?
 *
 * A get or put goes in pieces of at most chunk_len bytes, and no piece spans two local buffers. At
 * most half of the send queue is theirs, and all but one of the READs that the queue pair may have
 * in flight: one more would hold up every write behind it. A queue pair ends its WQEs in order, so
 * the piece that a completion means follows from what had ended before.
 *
 * Shown by test/unit/dev/verbs/test_vb_bulk.c, and on a kernel device by test/rxe.
 */
#ifndef VB_VB_BULK_H
#define VB_VB_BULK_H

#include "dev/verbs/vb_link.h"

#define VB_CHUNK_LEN (1u << 20)

/** A place in the local buffers. */
struct vb_cursor {
	size_t pos; /* bytes of the transfer before it */
	size_t iov_idx;
	size_t iov_off;
};

struct vb_op {
	struct util_list link; /* in vb_link.ops */
	struct dev_get *get;
	bool is_put;
	struct vb_cursor posted;
	struct vb_cursor done;
};

/** Bytes of the piece at `at`; 0 at the end. */
size_t vb_bulk_piece(const struct dev_get *get, const struct vb_cursor *at, size_t chunk_len);

/** `at` moves behind that piece. */
void vb_bulk_step(const struct dev_get *get, struct vb_cursor *at, size_t len);

/** Posts what there is room for. */
void vb_bulk_push(struct vb_link *link);

/** A piece ended: the transfer that ended with it, or NULL. */
struct dev_get *vb_bulk_done(struct vb_link *link);

/** Forgets everything. */
void vb_bulk_drop(struct vb_link *link);

#endif
