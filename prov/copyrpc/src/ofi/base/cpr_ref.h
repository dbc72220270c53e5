/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reference count of a libfabric object, kept by all objects of ofi.
 *
 * Counts what was opened in, or bound to, the object. fi_close returns -FI_EBUSY and changes
 * nothing while the count is above zero. Control calls may come from any thread.
 */
#ifndef OFI_BASE_CPR_REF_H
#define OFI_BASE_CPR_REF_H

#include <stdbool.h>

struct cpr_ref {
	int cnt; /* atomic */
};

static inline void cpr_ref_get(struct cpr_ref *ref)
{
	__atomic_add_fetch(&ref->cnt, 1, __ATOMIC_RELAXED);
}

static inline void cpr_ref_put(struct cpr_ref *ref)
{
	__atomic_sub_fetch(&ref->cnt, 1, __ATOMIC_RELEASE);
}

static inline bool cpr_ref_is_busy(const struct cpr_ref *ref)
{
	return __atomic_load_n(&ref->cnt, __ATOMIC_ACQUIRE) != 0;
}

#endif
