/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes of another user refuse each other: cm/conn/cm_attempt.c. */
#include "cm/conn/cm_attempt.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "unit/cm/cm_fixture.h"

static struct cm_node *node;
static struct cm_end a;

static void set_up(void)
{
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
}

static void tear_down(void)
{
	cm_end_close(&a);
	cm_node_close(node);
}

/* Runs a peer as another user: passive (asks == false) or active. */
static pid_t fork_other_user(int tell[2], bool asks)
{
	bool writes;
	pid_t pid;

	cr_assert(!pipe(tell));
	pid = fork();
	/* Leaves one writer: a reader does not wait for one that has died. */
	writes = asks == (pid > 0);
	close(tell[writes ? 0 : 1]);
	if (pid)
		return pid;
	{
		struct cm_end end;
		uint16_t port;
		union cm_addr there;
		unsigned result;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		cm_end_open(&end, cm_test_node(NULL, 0), "127.0.0.1", 0);
		if (!asks) {
			port = cm_test_port(&end);
			if (write(tell[1], &port, sizeof(port)) != sizeof(port))
				_exit(1);
			for (;;)
				pause();
		}
		if (read(tell[0], &port, sizeof(port)) != sizeof(port))
			_exit(1);
		cm_test_addr("127.0.0.1", port, &there);
		cm_connect(end.cep, &there.sa, false);
		cm_end_wait(&end, &end.failed, 1, CM_TEST_WAIT_MS);
		result = end.failed && end.failed_err == -FI_EACCES &&
			 strstr(end.why,
				"the peer belongs to user 0 and this process to user 65534");
		_exit(result ? 0 : 2);
	}
}

Test(cm_attempt_users, another_users_process_is_refused)
{
	union cm_addr there;
	int tell[2], status;
	uint16_t port;
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root");
	pid = fork_other_user(tell, false);
	cr_assert(read(tell[0], &port, sizeof(port)) == sizeof(port));
	set_up();
	cm_test_addr("127.0.0.1", port, &there);
	cr_assert(!cm_connect(a.cep, &there.sa, false));
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(a.failed_err, -FI_EACCES, "%s", a.why);
	cr_assert(strstr(a.why, "the peer belongs to user 65534 and this process to user 0"), "%s",
		  a.why);
	cr_assert(!a.up && !a.prepared);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	tear_down();
}

Test(cm_attempt_users, another_users_process_refuses_this_one)
{
	int tell[2], status;
	uint16_t port;
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root");
	pid = fork_other_user(tell, true);
	set_up();
	port = cm_test_port(&a);
	cr_assert(write(tell[1], &port, sizeof(port)) == sizeof(port));
	cr_assert(waitpid(pid, &status, 0) == pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	cr_assert(!a.prepared);
	tear_down();
}
