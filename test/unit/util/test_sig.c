/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Signals blocked in provider threads: util/sig.h. */
#include "util/sig.h"

#include <criterion/criterion.h>
#include <pthread.h>

static volatile sig_atomic_t faults;

static void on_fault(int sig)
{
	faults++;
}

static void *fault(void *arg)
{
	raise(SIGSEGV);
	return NULL;
}

Test(sig, signals_from_outside_are_blocked_and_faults_of_the_thread_are_not)
{
	static const int outside[] = { SIGTERM, SIGINT, SIGALRM, SIGCHLD, SIGUSR1, SIGIO, SIGPIPE };
	struct sigaction act = { .sa_handler = on_fault };
	sigset_t set, old;
	pthread_t thread;

	util_sig_others(&set);
	for (unsigned i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		cr_expect(sigismember(&set, outside[i]), "signal %d", outside[i]);
	cr_assert(!sigaction(SIGSEGV, &act, NULL));
	pthread_sigmask(SIG_SETMASK, &set, &old);
	cr_assert(!pthread_create(&thread, NULL, fault, NULL));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	cr_assert(!pthread_join(thread, NULL));
	cr_expect_eq(faults, 1);
}
