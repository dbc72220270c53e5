/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The control thread: cm/node/cm_node.c. */
#include "cm/node/cm_node.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "unit/cm/cm_fixture.h"
#include "util/sig.h"
#include "util/clock.h"
#include "util/param.h"

/* Returns a line of the status of thread "copyrpc-cm", or "" if there is no such thread. */
static void thread_status(const char *field, char *value, size_t len)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;

	value[0] = '\0';
	while ((e = readdir(dir))) {
		char path[300], line[200];
		bool is_ours = false;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			line[strcspn(line, "\n")] = '\0';
			is_ours |= !strcmp(line, "Name:\tcopyrpc-cm");
			if (is_ours && !strncmp(line, field, strlen(field)))
				snprintf(value, len, "%s", line + strlen(field) + 2);
		}
		if (f)
			fclose(f);
	}
	closedir(dir);
}

static struct cm_node *open_named(void)
{
	struct cm_node *node = cm_test_node(NULL, 0);
	char name[64] = "";

	for (int i = 0; i < CM_TEST_WAIT_MS && !*name; i++) {
		cm_test_sleep_ms(1);
		thread_status("Name", name, sizeof(name));
	}
	cr_assert_str_eq(name, "copyrpc-cm");
	return node;
}

Test(cm_node, the_thread_blocks_signals_and_leaves_the_callers_mask_unchanged)
{
	sigset_t before, after, others;
	struct cm_node *node;
	char mask[64];
	uint64_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	node = open_named();
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 32; sig++)
		cr_assert_eq(sigismember(&before, sig), sigismember(&after, sig));
	thread_status("SigBlk", mask, sizeof(mask));
	blocked = strtoull(mask, NULL, 16);
	util_sig_others(&others);
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			cr_assert_eq(blocked >> (sig - 1) & 1, sigismember(&others, sig),
				     "signal %d", sig);
	cm_node_close(node);
}

Test(cm_node, close_joins_the_thread_and_leaks_nothing)
{
	unsigned before = cm_test_fd_count();

	for (int i = 0; i < 50; i++)
		cm_node_close(cm_test_node("key", 100));
	cr_assert_eq(cm_test_fd_count(), before);
}

Test(cm_node, an_idle_node_sleeps)
{
	struct cm_node *node;
	struct cm_end a;
	uint64_t passes = UINT64_MAX;

	node = cm_ends_open(0, &a, NULL);
	/* One pass for earlier work; none after it, unless the machine suspends processes. */
	for (int i = 0; i < 20 && passes > 2; i++) {
		cm_node_lock(node);
		cm_node_wait_pass(node);
		passes = node->pass_cnt;
		cm_node_unlock(node);
		cm_test_sleep_ms(300);
		passes = cm_test_passes(node) - passes;
	}
	cr_assert(passes <= 2, "%lu", passes);
	cm_ends_close(node, &a, NULL);
}

struct wakeup {
	struct cm_timer timer;
	uint64_t at_ns;
};

static void on_wakeup(struct cm_timer *timer)
{
	__atomic_store_n(&UTIL_CONTAINER_OF(timer, struct wakeup, timer)->at_ns, util_clock_ns(),
			 __ATOMIC_RELEASE);
}

Test(cm_node, a_timer_armed_by_another_thread_wakes_the_control_thread)
{
	struct cm_node *node = cm_test_node(NULL, 0);
	struct wakeup late = { .at_ns = 0 }, soon = { .at_ns = 0 };
	uint64_t due;

	cm_timer_init(&late.timer, on_wakeup);
	cm_timer_init(&soon.timer, on_wakeup);
	cm_node_lock(node);
	cm_node_arm(node, &late.timer, util_clock_ns() + 3600 * UTIL_NS_PER_S);
	cm_node_unlock(node);
	cm_test_sleep_ms(20);
	cm_node_lock(node);
	due = util_clock_ns() + 30 * UTIL_NS_PER_MS;
	cm_node_arm(node, &soon.timer, due);
	cm_node_unlock(node);
	/* Without a wakeup the thread would sleep for an hour. */
	for (int i = 0; i < CM_TEST_WAIT_MS && !__atomic_load_n(&soon.at_ns, __ATOMIC_ACQUIRE); i++)
		cm_test_sleep_ms(1);
	cr_assert(soon.at_ns >= due);
	cr_assert_eq(late.at_ns, 0);
	cm_node_lock(node);
	cm_node_disarm(node, &late.timer);
	cm_node_unlock(node);
	cm_node_close(node);
}

Test(cm_node, without_descriptors_open_fails_and_leaks_nothing)
{
	struct cm_cfg cfg = { .job_key = NULL };
	struct cm_node *node;
	unsigned before = cm_test_fd_count();

	for (int room = 0; room < 2; room++) {
		cm_test_limit_fds(room);
		cr_assert_eq(cm_node_open_cfg(&cfg, &node), -FI_EMFILE);
	}
	cm_test_limit_fds(-1);
	cr_assert_eq(cm_test_fd_count(), before);
}

Test(cm_node, parameters_configure_the_node)
{
	struct cm_node *node;

	util_params.peer_timeout_ms = 1234;
	util_params.job_key = "k";
	cr_assert(!cm_node_open(&node));
	cr_assert_eq(node->peer_timeout_ns, 1234 * UTIL_NS_PER_MS);
	cr_assert(node->key.is_set);
	cm_node_close(node);
}

Test(cm_node, everything_can_be_closed_after_the_node_was_halted)
{
	struct cm_node *node;
	struct cm_end a, b;

	node = cm_ends_open(0, &a, &b);
	cr_assert_eq(cm_end_connect(&a, &b), 0);
	cr_assert(cm_end_wait(&b, &b.up, 1, CM_TEST_WAIT_MS));
	cm_node_halt(node);
	cm_node_halt(node);
	cm_ends_close(node, &a, &b);
}
