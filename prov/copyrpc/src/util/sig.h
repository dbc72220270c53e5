/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Signals that the provider's own threads leave to the application.
 *
 * A provider thread blocks all signals sent from outside, so that the application's threads handle
 * them. Signals raised by the thread's own instructions stay unblocked: blocked, they would end the
 * process without a message and bypass sanitizers and device models.
 */
#ifndef UTIL_SIG_H
#define UTIL_SIG_H

#include <signal.h>

/** Fills `set` with the signals to block in a new thread. */
static inline void util_sig_others(sigset_t *set)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };

	sigfillset(set);
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(set, own[i]);
}

#endif
