/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Forked children and the nodes of their parent: cm/node/cm_fork.c. */
#include "cm/node/cm_fork.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "unit/cm/cm_fixture.h"

static struct cm_node *node_a, *node_b;
static struct cm_end a, b;

static void connect_both(void)
{
	node_a = cm_test_node(NULL, 0);
	node_b = cm_test_node(NULL, 0);
	cm_end_open(&a, node_a, "127.0.0.1", 0);
	cm_end_open(&b, node_b, "127.0.0.1", 0);
	cm_ends_connect(&a, &b, 1);
}

static void close_both(void)
{
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node_a);
	cm_node_close(node_b);
}

Test(cm_fork, a_child_can_close_everything_without_affecting_the_parent)
{
	int status;
	pid_t pid;

	connect_both();
	pid = fork();
	if (!pid) {
		cm_end_put_live(&a);
		close_both();
		_exit(0);
	}
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "%x", status);
	cr_assert(!cm_end_wait(&b, &b.down, 1, 50));
	cr_assert(cm_end_live(&a) == 1 && cm_end_live(&b) == 1);
	/* The parent's conns work as before. */
	cr_assert(cm_end_put_live(&a));
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
	cm_end_reap(&b);
	cr_assert(!cm_end_connect(&b, &a));
	cr_assert(cm_end_wait(&b, &b.requested, 1, CM_TEST_WAIT_MS));
	close_both();
}

Test(cm_fork, a_child_holds_no_copy_of_any_descriptor)
{
	unsigned before = cm_test_fd_count();
	int status;
	pid_t pid;

	connect_both();
	pid = fork();
	if (!pid)
		_exit(cm_test_fd_count() == before ? 0 : 1);
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "%x", status);
	close_both();
}

/* The copy of a node has no epoll set, so no descriptor can be watched there. */
static void listen_in_child(void)
{
	struct cm_listener *listener = NULL;
	unsigned before = cm_test_fd_count();
	union cm_addr addr;

	cm_test_addr("127.0.0.1", 0, &addr);
	CM_CHECK(cm_listener_open(node_a, &addr.sa, 8, NULL, NULL, &listener) < 0);
	CM_CHECK(!listener);
	_exit(cm_test_fd_count() == before ? 0 : 1);
}

Test(cm_fork, a_listener_that_cannot_be_watched_leaves_no_descriptor)
{
	int status;
	pid_t pid;

	node_a = cm_test_node(NULL, 0);
	pid = fork();
	if (!pid)
		listen_in_child();
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "%x", status);
	cm_node_close(node_a);
}

/* Connects from a process of its own, which forks once more and is killed. */
static void be_killed(int go, int tell)
{
	struct sockaddr_storage to;
	pid_t child;

	if (read(go, &to, sizeof(to)) != sizeof(to))
		_exit(1);
	node_b = cm_test_node(NULL, 0);
	cm_end_open(&b, node_b, "127.0.0.1", 0);
	cm_connect(b.cep, (struct sockaddr *)&to, false);
	if (!cm_end_wait(&b, &b.requested, 1, CM_TEST_WAIT_MS))
		_exit(2);
	child = fork();
	if (child && write(tell, &child, sizeof(child)) != sizeof(child))
		_exit(3);
	for (;;)
		pause();
}

Test(cm_fork, a_child_does_not_hide_its_parents_death)
{
	int go[2], tell[2];
	pid_t pid, child;

	cr_assert(!pipe(go) && !pipe(tell));
	pid = fork();
	if (!pid)
		be_killed(go[0], tell[1]);
	node_a = cm_test_node(NULL, 0);
	cm_end_open(&a, node_a, "127.0.0.1", 0);
	cr_assert(write(go[1], &a.addr, sizeof(a.addr)) == sizeof(a.addr));
	cr_assert(read(tell[0], &child, sizeof(child)) == sizeof(child));
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	cr_assert(!kill(pid, SIGKILL));
	cr_assert(waitpid(pid, NULL, 0) == pid);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(a.down_err, -FI_ECONNRESET);
	cr_assert(!kill(child, SIGKILL));
	cm_end_close(&a);
	cm_node_close(node_a);
}

static bool fork_done;

static void *fork_often(void *arg)
{
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		CM_CHECK(waitpid(pid, arg, 0) == pid);
	}
	__atomic_store_n(&fork_done, true, __ATOMIC_RELEASE);
	return NULL;
}

Test(cm_fork, forking_during_handshakes_does_not_disturb_them)
{
	pthread_t thread;
	unsigned i;
	int status;

	connect_both();
	cr_assert(!pthread_create(&thread, NULL, fork_often, &status));
	for (i = 1; !__atomic_load_n(&fork_done, __ATOMIC_ACQUIRE); i++) {
		cr_assert(cm_end_put_live(&a));
		cr_assert(cm_end_wait(&b, &b.down, i, CM_TEST_WAIT_MS));
		cm_end_reap(&b);
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.up, i + 1, CM_TEST_WAIT_MS));
		cr_assert(cm_end_wait(&b, &b.up, i + 1, CM_TEST_WAIT_MS));
	}
	cr_assert(!pthread_join(thread, NULL));
	close_both();
}
