/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* End of a test whose code breaks a rule of the contract that a fake device implements. */
#ifndef SUPPORT_FAKE_FAIL_H
#define SUPPORT_FAKE_FAIL_H

/** Ends the test with a message: a rule of dev.h or dgram.h was broken. */
void fake_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
