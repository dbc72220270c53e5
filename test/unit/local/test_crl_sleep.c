/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A sleeper is woken once for each sleep; without membarrier(2), from the start or later, both
 * sides execute fences. A seccomp filter stands for a system that has no membarrier(2).
 */
#include "local/crl_sleep.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "local_pair.h"

#define TRIPS 2000

/* Makes membarrier(2) fail with EPERM in this process from now on. */
static void forbid_membarrier(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program),
		0);
	cr_assert_eq(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0), -1);
}

Test(crl_sleep, a_sleeper_is_woken_once_for_each_sleep)
{
	_Atomic uint32_t word;
	struct crl_sleep sleep;
	struct crl_waker waker = { .word = &word };

	crl_sleep_init(&sleep, &word);
	cr_assert_not(crl_sleep_due(&waker));
	for (int i = 0; i < 3; i++) {
		crl_sleep_arm(&sleep);
		cr_assert(crl_sleep_is_armed(&sleep));
		cr_assert(crl_sleep_due(&waker));
		cr_assert_not(crl_sleep_due(&waker));
		crl_sleep_disarm(&sleep);
		cr_assert_not(crl_sleep_is_armed(&sleep));
		cr_assert_not(crl_sleep_due(&waker));
	}
}

Test(crl_sleep, the_word_may_overflow)
{
	_Atomic uint32_t word;
	struct crl_sleep sleep;
	struct crl_waker waker = { .word = &word };

	crl_sleep_init(&sleep, &word);
	sleep.value |= UINT32_MAX - 7;
	for (int i = 0; i < 4; i++) {
		crl_sleep_arm(&sleep);
		cr_assert(crl_sleep_due(&waker));
		crl_sleep_disarm(&sleep);
		cr_assert_not(crl_sleep_is_armed(&sleep));
	}
}

Test(crl_sleep, a_process_without_membarrier_asks_for_fences)
{
	_Atomic uint32_t word;
	struct crl_sleep sleep;
	struct crl_waker waker = { .word = &word };

	forbid_membarrier();
	cr_assert_not(crl_sleep_register());
	crl_sleep_init(&sleep, &word);
	cr_assert_not(crl_sleep_due(&waker));
	cr_assert(waker.fence);
	crl_sleep_arm(&sleep);
	cr_assert(crl_sleep_due(&waker));
	cr_assert_not(crl_sleep_due(&waker));
}

Test(crl_sleep, a_membarrier_that_fails_later_is_replaced_by_fences)
{
	_Atomic uint32_t word;
	struct crl_sleep sleep;
	struct crl_waker waker = { .word = &word };

	if (!crl_sleep_register())
		cr_skip("no membarrier(2)");
	crl_sleep_init(&sleep, &word);
	crl_sleep_arm(&sleep);
	crl_sleep_disarm(&sleep);
	cr_assert_not(crl_sleep_due(&waker));
	cr_assert_not(waker.fence);
	forbid_membarrier();
	crl_sleep_arm(&sleep);
	cr_assert(crl_sleep_due(&waker));
	cr_assert(waker.fence);
	crl_sleep_disarm(&sleep);
	cr_assert_not(crl_sleep_due(&waker));
}

static void *serve(void *arg)
{
	struct crl_server *server = arg;
	struct crl_request request;

	for (int served = 0; served < TRIPS;) {
		int n = crl_server_take(server, &request, 1);

		if (n)
			crl_server_reply(server, request.handle, "", 0);
		else
			crl_server_wait(server, -1);
		served += n;
	}
	return NULL;
}

/* Each side sleeps for each call; a wakeup that is lost stops the test. */
static void check_trips(enum crl_kind kind, bool from_the_start)
{
	static const struct crl_options sleepy = { .spin_us = -1 };
	const char *name = local_pair_name("fence");
	struct crl_response response;
	struct crl_server *server;
	struct crl_client *client;
	pthread_t thread;

	if (from_the_start)
		forbid_membarrier();
	server = local_pair_server(kind, name, &sleepy);
	client = local_pair_client(server, name);
	cr_assert_eq(pthread_create(&thread, NULL, serve, server), 0);
	for (int i = 0; i < TRIPS; i++) {
		if (i == TRIPS / 2 && !from_the_start)
			forbid_membarrier();
		cr_assert_eq(crl_client_call(client, "", 0, NULL, 0), 0);
		cr_assert_eq(crl_client_wait(client, -1), 0);
		cr_assert_eq(crl_client_poll(client, &response, 1), 1, "a wait is over too early");
	}
	pthread_join(thread, NULL);
	crl_client_close(client);
	crl_server_close(server);
}

Test(crl_sleep, no_wakeup_is_lost_without_membarrier, .timeout = 300)
{
	check_trips(CRL_IPC, true);
}

Test(crl_sleep, no_wakeup_is_lost_when_membarrier_begins_to_fail, .timeout = 300)
{
	check_trips(CRL_DELEGATION, false);
}
