/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MUST: an assertion for property tests with millions of checks.
 *
 * cr_assert sends an event to the runner each time that it holds, which takes longer than the
 * check. MUST is silent until it fails.
 */
#ifndef UNIT_CORE_MUST_H
#define UNIT_CORE_MUST_H

#include <criterion/criterion.h>

#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			cr_assert_fail("line %d: %s", __LINE__, #cond);                            \
	} while (0)

#endif
