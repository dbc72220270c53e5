/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Creation of memfds that can be sealed, and the limit on their length. Used for shared segments
 * and the statistics page.
 *
 * Any thread. Tested by test/unit/util/test_memfd.c.
 */
#ifndef UTIL_MEMFD_H
#define UTIL_MEMFD_H

#include <stdint.h>

/**
 * Creates an empty memfd, close-on-exec, that can be sealed and not executed where the kernel knows
 * that. Returns the descriptor, or -1 with errno set.
 */
int util_memfd(const char *name);

/**
 * Returns the length that a file may have (RLIMIT_FSIZE), a memfd, too. Exceeding it is a SIGXFSZ,
 * which ends the process.
 */
uint64_t util_file_max(void);

#endif
