/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What must hold in a program without a test framework: a fuzzer, a stress test. Where it does not,
 * the program says so and aborts, from whatever thread.
 */
#ifndef SUPPORT_CHECK_H
#define SUPPORT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
