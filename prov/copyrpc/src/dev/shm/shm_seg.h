/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where does shared memory come from, and may a peer's be trusted not to kill us?
 *
 * A segment is a sealed memfd: anonymous (nothing is left behind, however its owners die), all its
 * pages allocated before it is used, its size fixed for ever. The receiver of a descriptor checks
 * all that before it maps: a file that its owner could truncate would be a SIGBUS at our next
 * access.
 *
 * Two kinds: a link's segment is a control page and the ring behind it, made by the ring's reader;
 * the inbox (shm_inbox.h) is one page per device. Each shared word stands 128 bytes from the next,
 * because processors fetch lines in pairs:
 *
 *   0            128           256           4096                4096 + rx_len
 *   |            | consumer    | notify      | ring ...          |
 *                  reader ->     reader ->     writer -> reader
 *
 * Shown by test/unit/dev/shm/test_shm_seg.c.
 */
#ifndef SHM_SEG_H
#define SHM_SEG_H

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/shm/shm_share.h"
#include "util/bits.h"

#define SHM_PAGE     4096u /* of the layout; a machine with larger pages pads behind it */
#define SHM_RING_MIN 1024u
#define SHM_RING_MAX (1ull << 30)

/** The words of a link that its two ends share, beside the ring. Written by the ring's reader. */
struct shm_ctrl {
	uint8_t unused[128];
	alignas(128) uint64_t consumer; /* how far the reader has released the ring */
	alignas(128) uint32_t notify;   /* epoch: the writer posts once after each change */
	struct shm_offer offer;         /* what both ends may copy */
};

static_assert(offsetof(struct shm_ctrl, consumer) == 128, "layout");
static_assert(offsetof(struct shm_ctrl, notify) == 256, "layout");
static_assert(sizeof(struct shm_ctrl) <= SHM_PAGE, "one page");

/** Bytes of the segment of a link whose ring has `rx_len` bytes. */
static inline size_t shm_seg_len(uint64_t rx_len)
{
	return SHM_PAGE + util_align_up(rx_len, SHM_PAGE);
}

/** Makes a segment of zeros: 0, -FI_ENOSPC (a limit), -FI_ENOMEM, -FI_EMFILE or -FI_ENOSYS (logged). */
int shm_seg_create(const char *name, size_t len, int *fd);

/** Is `fd` a segment of exactly `len` bytes that can neither shrink nor fault? 0 or -FI_EINVAL. */
int shm_seg_check(int fd, size_t len);

/** Maps it for reading and writing, pages entered: 0 or -FI_ENOMEM. */
int shm_seg_map(int fd, size_t len, void **addr);

/** Unmaps; NULL is harmless. */
void shm_seg_unmap(void *addr, size_t len);

#endif
