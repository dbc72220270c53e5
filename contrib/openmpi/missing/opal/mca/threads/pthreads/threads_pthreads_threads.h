/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads of Open MPI 5.0, which are those of POSIX; see threads_pthreads_mutex.h beside this file.
 * Limited to calls of Open MPI's inline functions on wait objects.
 */
#ifndef OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_THREADS_H
#define OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_THREADS_H

#include <pthread.h>

#include "opal/mca/threads/threads.h"

/** Function that Open MPI has selected for its threads to yield the processor. */
OPAL_DECLSPEC extern void (*opal_threads_pthreads_yield_fn)(void);

static inline void opal_thread_yield(void)
{
	opal_threads_pthreads_yield_fn();
}

#endif
