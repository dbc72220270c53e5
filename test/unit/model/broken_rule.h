/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Check that a program that breaks a rule of the device ends with the right message.
 *
 * For tests with .signal = SIGABRT: call broken_rule_expect(sentence) first. The test passes if the
 * model then ends it with a line "RULE BROKEN" that contains the sentence. It fails with another
 * line or none.
 */
#ifndef UNIT_MODEL_BROKEN_RULE_H
#define UNIT_MODEL_BROKEN_RULE_H

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *broken_rule_sentence;
static int broken_rule_said, broken_rule_stderr;

/*
 * Checks the message. After its return abort() ends the test by the signal that the test expects.
 */
static void broken_rule_aborted(int signal)
{
	static char line[2048];
	ssize_t len = pread(broken_rule_said, line, sizeof(line) - 1, 0);

	if (len > 0 && strstr(line, "RULE BROKEN: ") && strstr(line, broken_rule_sentence))
		return;
	dprintf(broken_rule_stderr, "expected \"%s\", but it said: %s\n", broken_rule_sentence,
		line);
	_exit(1);
}

static inline void broken_rule_expect(const char *sentence)
{
	struct sigaction action = { .sa_handler = broken_rule_aborted };

	broken_rule_sentence = sentence;
	broken_rule_stderr = dup(STDERR_FILENO);
	broken_rule_said = memfd_create("said", MFD_CLOEXEC);
	cr_assert(broken_rule_stderr >= 0 && broken_rule_said >= 0);
	cr_assert(dup2(broken_rule_said, STDERR_FILENO) >= 0);
	sigaction(SIGABRT, &action, NULL);
}

#endif
