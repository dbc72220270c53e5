/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which signals does a thread of ours leave to the application?
 *
 * All that come from outside. Not those that an instruction of the thread itself raises: blocked, they
 * end the process without a word, and tools that handle them (sanitizers, a device model that
 * traps stores) never see them.
 *
 * Shown by test/unit/util/test_sig.c.
 */
#ifndef UTIL_SIG_H
#define UTIL_SIG_H

#include <signal.h>

/** The set to block in a new thread. */
static inline void util_sig_others(sigset_t *set)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };

	sigfillset(set);
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(set, own[i]);
}

#endif
