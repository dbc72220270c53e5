/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pages of the program that live in the segment.
 *
 * Sharing a range moves the contents of its pages into the arena and maps them back in place. Pages
 * with doorbell records serve many objects, so each page counts its users; when the last one goes,
 * the page becomes private memory again, with the same contents, before the program frees it.
 */
#ifndef KRN_SHARE_H
#define KRN_SHARE_H

#include <stdint.h>

/*
 * Makes [address, address + length) shared and gives the seg offset of its first byte; the range is
 * contiguous there. 0, -ENOMEM, or -EINVAL where its pages are shared already in another order.
 */
int krn_share(uint64_t address, uint64_t length, uint64_t *offset);
void krn_unshare(uint64_t address, uint64_t length);
/* The seg offset of a byte of this process, 0: its page is not shared. */
uint64_t krn_share_find(uint64_t address);

#endif /* KRN_SHARE_H */
