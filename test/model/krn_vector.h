/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The vector registers of a program that is held up: 32 of 64 bytes, in an XSAVE area in its
 * standard form, as the kernel's signal frames have it.
 */
#ifndef KRN_VECTOR_H
#define KRN_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

/* The low LEN bytes of a register. */
void krn_vector_get(const void *area, uint32_t reg, void *to, uint32_t len);
/*
 * Sets them; with zero_upper, all above becomes 0, as after a VEX or EVEX load. Below 16, 16 are
 * set.
 */
void krn_vector_set(void *area, uint32_t reg, const void *from, uint32_t len, bool zero_upper);

#endif /* KRN_VECTOR_H */
