/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared-memory segments. Called by shm_link.c, shm_dev.c and shm_desc.c.
 *
 * A segment is a sealed memfd: anonymous (the kernel frees it however its owners die), all pages
 * allocated, its size fixed. The receiver of a descriptor checks that before it maps: a file that
 * its owner can truncate is a SIGBUS at the next access.
 *
 * A link's segment is a control page and the ring behind it, made by the ring's reader. The inbox
 * (shm_inbox.h) is one page per device. Shared words are 128 bytes apart, because processors fetch
 * lines in pairs:
 *
 *   0            128           256           4096                4096 + rx_len
 *   |            | consumer    | notify      | ring ...          |
 *                  reader ->     reader ->     writer -> reader
 */
#ifndef DEV_SHM_SHM_SEG_H
#define DEV_SHM_SHM_SEG_H

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/shm/shm_offer.h"
#include "util/bits.h"

#define SHM_PAGE     4096u /* fixed by the layout, whatever the machine's page size */
#define SHM_RING_MIN 1024u
#define SHM_RING_MAX (1ull << 30)

/**
 * Words that the two ends share beside the ring. Written by the ring's reader, and some of the
 * offer by its writer.
 */
struct shm_ctrl {
	uint8_t unused[128];
	alignas(128) uint64_t consumer; /* how far the reader has released the ring */
	alignas(128) uint32_t notify;   /* epoch: the writer posts once after each change */
	struct shm_offer offer;         /* gets that both ends may copy */
};

static_assert(offsetof(struct shm_ctrl, consumer) == 128, "layout");
static_assert(offsetof(struct shm_ctrl, notify) == 256, "layout");
static_assert(sizeof(struct shm_ctrl) <= SHM_PAGE, "one page");

struct dev_about;

/** Returns the bytes of a link's segment with a ring of `rx_len` bytes. */
static inline size_t shm_seg_len(uint64_t rx_len)
{
	return SHM_PAGE + util_align_up(rx_len, SHM_PAGE);
}

/**
 * Returns 0, or -FI_ENOSYS if this system permits no sealed memory (dev_ops.probe). Sets nothing in
 * `about`.
 */
int shm_seg_probe(struct dev_about *about);

/**
 * Makes a segment of zeros. Returns 0, -FI_ENOSPC (a limit), -FI_ENOMEM, -FI_EMFILE or -FI_ENOSYS;
 * logs errors.
 */
int shm_seg_create(const char *name, size_t len, int *fd);

/** Checks that `fd` has exactly `len` bytes and cannot shrink or fault. Returns 0 or -FI_EINVAL. */
int shm_seg_check(int fd, size_t len);

/** Maps a segment for reading and writing, pages populated. Returns 0 or -FI_ENOMEM. */
int shm_seg_map(int fd, size_t len, void **addr);

/** Unmaps a segment, or does nothing for NULL. */
void shm_seg_unmap(void *addr, size_t len);

#endif
