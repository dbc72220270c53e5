/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registration for membarrier(2), early if that is cheap.
 *
 * A process registers once for each kind that it uses: private for biased locks (bias.h), global
 * for sleepers on shared memory. With one thread that takes a microsecond. With several the kernel
 * waits for each processor: 10 ms, and seconds on a loaded machine.
 *
 * Any thread. Tested by test/unit/util/test_membarrier.c.
 */
#ifndef UTIL_MEMBARRIER_H
#define UTIL_MEMBARRIER_H

#include <stdbool.h>

/** Registers for the private kind. Returns false with errno set if the kernel refuses. */
bool util_membarrier_register_private(void);
/** Registers for the global kind. Returns false with errno set if the kernel refuses. */
bool util_membarrier_register_global(void);

/**
 * Registers a process that has one thread for both kinds. Does nothing where there are several, or
 * the kernel refuses: locks and devices register themselves when they are first used.
 */
void util_membarrier_prepare(void);

#endif
