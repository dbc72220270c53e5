/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Vector registers of a stopped program: 32 of 64 bytes, in an XSAVE area in its standard form, as
 * in the kernel's signal frames.
 */
#ifndef KRN_VECTOR_H
#define KRN_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the low LEN bytes of a register. */
void krn_vector_get(const void *area, uint32_t reg, void *to, uint32_t len);
/*
 * Sets the low LEN bytes; with zero_upper clears all above, as a VEX or EVEX load does. Lengths
 * below 16 set 16 bytes.
 */
void krn_vector_set(void *area, uint32_t reg, const void *from, uint32_t len, bool zero_upper);

#endif /* KRN_VECTOR_H */
