/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory in processes that fork. Called before a device is opened.
 *
 * Kernels before 5.12 do not copy registered pages at fork: a child's write moves the parent's
 * page. libibverbs protects them with madvise if that was requested before the first registration.
 * libibverbs asks the kernel by netlink whether it is needed. Where the kernel does not reply, as
 * in some containers, its version decides.
 */
#ifndef DEV_IB_IB_FORK_H
#define DEV_IB_IB_FORK_H

#include <stdbool.h>

/** Switches the protection on where the kernel needs it; warns once if it is too late. */
void ib_fork_protect(void);

/**
 * Returns whether a kernel of this version (uname's release) copies registered pages at fork. Older
 * ones may have the change from their distribution.
 */
bool ib_fork_is_copied(const char *release);

#endif
