/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does it hold, a million times?
 *
 * cr_assert sends an event to the runner for each time that it holds, which takes longer than what
 * the property tests check. MUST is silent until it fails.
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
