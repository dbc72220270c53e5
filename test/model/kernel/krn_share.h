/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pages of the program that are stored in the segment.
 *
 * Sharing a range moves its contents into the arena and maps them back in place. Pages with
 * doorbell records serve many objects, so each page counts its users. When the last user goes, the
 * page becomes private memory with the same contents, before the program frees it.
 */
#ifndef KRN_SHARE_H
#define KRN_SHARE_H

#include <stdint.h>

/*
 * Shares [address, address + length) and sets the seg offset of its first byte; the range is
 * contiguous there. Returns 0, -ENOMEM, or -EINVAL if its pages are already shared in another
 * order.
 */
int krn_share(uint64_t address, uint64_t length, uint64_t *offset);
void krn_unshare(uint64_t address, uint64_t length);
/* Returns the seg offset of a byte of this process, 0 if its page is not shared. */
uint64_t krn_share_find(uint64_t address);

#endif /* KRN_SHARE_H */
