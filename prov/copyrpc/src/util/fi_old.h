/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of libfabric 1.x that the headers of 2.x deprecate or have removed, with their values.
 * Programs that were built for 1.x pass them to a provider under 2.x, too, so this one takes them
 * whatever it is built with. Included by the files that compare with them, and by tests.
 *
 * Functions that 2.x deprecates (poll and wait sets, fi_av_bind) may be called behind this include.
 */
#ifndef UTIL_FI_OLD_H
#define UTIL_FI_OLD_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#undef FI_MR_UNSPEC
#undef FI_MR_BASIC
#undef FI_MR_SCALABLE
#define FI_MR_UNSPEC   0
#define FI_MR_BASIC    (1 << 0)
#define FI_MR_SCALABLE (1 << 1)

#undef FI_ORDER_NONE
#undef FI_ORDER_STRICT
#undef FI_ORDER_DATA
#define FI_ORDER_NONE   0ULL
#define FI_ORDER_STRICT 0x1FFULL
#define FI_ORDER_DATA   (1ULL << 16)

#undef FI_REG_MR
#define FI_REG_MR (1ULL << 59)

#ifndef FI_PROV_SPECIFIC
#define FI_PROV_SPECIFIC (1U << 31)
#endif

/* The bit is that of FI_EXACT_DIRECTED_RECV in 2.x. */
#undef FI_VARIABLE_MSG
#define FI_VARIABLE_MSG (1ULL << 48)

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#endif
