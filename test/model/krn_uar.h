/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UAR pages as the program mapped them: where they are, and that stores to them are noticed.
 *
 * In trap mode each is made read-only as soon as it is seen, and a handler of SIGSEGV carries out
 * the stores. Mappings are found in /proc/self/maps, not by replacing mmap(): UCX and others go
 * past the C library there.
 */
#ifndef KRN_UAR_H
#define KRN_UAR_H

#include <stdbool.h>
#include <stdint.h>

#define KRN_UAR_FILE_BYTES (0x900u * 4096) /* commands 0 to 8, 256 indices each */
#define KRN_UAR_BF         0x800           /* first doorbell register of a page */
#define KRN_UAR_BF_STRIDE  0x200
#define KRN_UAR_ARM        0x20

/* Looks for mappings of the context that are new; called with each command until all are found. */
void krn_uar_find(uint32_t ctx);
/* The context is closed, or its pages were unmapped. */
void krn_uar_unmapped(uint32_t ctx);
/* After fork(), in the child. */
void krn_uar_forget(void);

/* Whether the address lies in a UAR page; then which, and where. */
bool krn_uar_lookup(uintptr_t address, uint32_t *ctx, uint32_t *page, uint32_t *off);

/* Installs the handler, or puts it back where a library replaced it. Trap mode. */
void krn_trap_arm(void);

#endif /* KRN_UAR_H */
