/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CHECK for programs without a test framework: fuzzers, stress tests. A failed check prints the
 * condition and aborts, from any thread.
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
