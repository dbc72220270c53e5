/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How a rule ends a test: see fake_fail.h. */
#include "support/fake_fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void fake_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("fake device: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}
