/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UAR pages mapped by the program: their addresses, and detection of stores to them.
 *
 * In trap mode each page is made read-only when it is found, and a handler of SIGSEGV executes the
 * stores. Mappings are found in /proc/self/maps, not by replacing mmap(), because UCX and others
 * bypass the C library there.
 */
#ifndef KRN_UAR_H
#define KRN_UAR_H

#include <stdbool.h>
#include <stdint.h>

#define KRN_UAR_FILE_BYTES (0x900u * 4096) /* commands 0 to 8, 256 indices each */
#define KRN_UAR_BF         0x800           /* first doorbell register of a page */
#define KRN_UAR_BF_STRIDE  0x200
#define KRN_UAR_ARM        0x20

/* Looks for new mappings of the context. Called with each command until all are found. */
void krn_uar_find(uint32_t ctx);
/* Drops the pages of a context that is closed or whose pages were unmapped. */
void krn_uar_unmapped(uint32_t ctx);
/* Resets the registry in a child of fork(). */
void krn_uar_forget(void);

/* Returns true if the address is in a UAR page, and sets the context, page and offset. */
bool krn_uar_lookup(uintptr_t address, uint32_t *ctx, uint32_t *page, uint32_t *off);

/* Installs the handler of trap mode, or restores it after a library replaced it. */
void krn_trap_arm(void);

#endif /* KRN_UAR_H */
