/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A wait ends with something to do or with its time, and not before. */
#include "local/crl_wait.h"

#include <copyrpc/local.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local_pair.h"

static bool never(void *object)
{
	++*(int *)object;
	return false;
}

Test(crl_wait, spinning_is_bounded_by_both_limits)
{
	struct crl_wait wait = crl_wait_begin(1000, -1);
	int looks = 0;

	cr_assert_not(crl_wait_spin(&wait, never, &looks));
	cr_assert_eq(looks, 1, "negative: sleeps at once");
	wait = crl_wait_begin(0, INT32_MAX);
	cr_assert_not(crl_wait_spin(&wait, never, &looks));
}

Test(crl_wait, the_rest_of_the_time_is_rounded_up)
{
	struct crl_wait wait = crl_wait_begin(-1, 0);

	cr_assert_eq(crl_wait_left(&wait), -1);
	wait = crl_wait_begin(0, 0);
	cr_assert_eq(crl_wait_left(&wait), 0);
	wait.end = util_clock_ns() + 3600 * UTIL_NS_PER_S;
	cr_assert_gt(crl_wait_left(&wait), 3000 * 1000);
	wait.end = util_clock_ns() + 10000000 * UTIL_NS_PER_S;
	cr_assert_eq(crl_wait_left(&wait), INT32_MAX);
}

Test(crl_wait, a_sleep_ends_with_the_descriptor_or_the_time)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	struct crl_wait wait = crl_wait_begin(5, -1);
	uint64_t one = 1;

	cr_assert_eq(crl_wait_sleep(&wait, fd), -ETIMEDOUT);
	cr_assert_geq(util_clock_ns(), wait.end);
	cr_assert_eq(write(fd, &one, sizeof(one)), sizeof(one));
	wait = crl_wait_begin(-1, -1);
	cr_assert_eq(crl_wait_sleep(&wait, fd), 0);
	close(fd);
}

/* Leaves a byte of a wakeup behind: the response is found before the client sleeps. */
static void leave_wakeup(struct crl_server *server, struct crl_client *client)
{
	struct crl_request request;
	struct crl_response response;

	cr_assert_eq(crl_client_call(client, "", 0, NULL, 0), 0);
	local_pair_take(server, &request, 1);
	cr_assert_eq(crl_client_arm(client), 0);
	cr_assert_eq(crl_server_reply(server, request.handle, "", 0), 0);
	cr_assert_eq(crl_client_poll(client, &response, 1), 1);
	cr_assert_eq(crl_client_call(client, "", 0, NULL, 0), 0);
	local_pair_take(server, &request, 1);
	cr_assert_eq(crl_client_arm(client), 0);
	cr_assert_eq(crl_server_reply(server, request.handle, "", 0), 0);
	cr_assert_eq(crl_client_arm(client), -EAGAIN);
	local_pair_poll(client, &response, 1);
}

/* The wait is not over when a wakeup arrives that was meant for an earlier one. */
Test(crl_wait, a_client_waits_for_its_whole_time_if_nothing_comes)
{
	const char *name = local_pair_name("early");
	struct crl_server *server = local_pair_server(CRL_IPC, name, NULL);
	struct crl_client *client = local_pair_client(server, name);

	for (int i = 0; i < 20; i++) {
		uint64_t begin = util_clock_ns();

		leave_wakeup(server, client);
		cr_assert_eq(crl_client_wait(client, 3), -ETIMEDOUT);
		cr_assert_geq(util_clock_ns() - begin, 3 * UTIL_NS_PER_MS);
	}
	crl_client_close(client);
	crl_server_close(server);
}

Test(crl_wait, a_server_waits_for_its_whole_time_though_a_client_connects)
{
	const char *name = local_pair_name("whole");
	struct crl_server *server = local_pair_server(CRL_DELEGATION, name, NULL);
	struct crl_client *client = local_pair_client(server, name);
	uint64_t begin = util_clock_ns();

	crl_client_close(client);
	cr_assert_eq(crl_server_wait(server, 3), -ETIMEDOUT);
	cr_assert_geq(util_clock_ns() - begin, 3 * UTIL_NS_PER_MS);
	crl_server_close(server);
}

/* Lowers the limit on descriptors to those that are open. Returns the former limit. */
static rlim_t use_up_descriptors(void)
{
	struct rlimit limit;
	rlim_t before;
	int lowest = dup(0);

	close(lowest);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = (rlim_t)lowest;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return before;
}

/* Forks a client that connects as soon as `go` is readable, and exits with the error. */
static pid_t fork_client(const char *name, int go)
{
	struct crl_client *client;
	pid_t pid = fork();
	char byte;

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	_exit(read(go, &byte, 1) == 1 ? -crl_client_open(&client, name, 20000) : 1);
}

Test(crl_wait, a_server_without_descriptors_refuses_clients_and_does_not_spin, .timeout = 60)
{
	const char *name = local_pair_name("full");
	struct crl_server *server = local_pair_server(CRL_IPC, name, NULL);
	int go[2], status;
	rlim_t before;
	pid_t pid;

	cr_assert_eq(pipe(go), 0);
	pid = fork_client(name, go[0]);
	before = use_up_descriptors();
	cr_assert_eq(write(go[1], "", 1), 1);
	while (!waitpid(pid, &status, WNOHANG))
		cr_assert_eq(crl_server_wait(server, 5), -ETIMEDOUT);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == EMFILE, "status 0x%x", status);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ before, before }), 0);
	crl_client_close(local_pair_client(server, name));
	crl_server_close(server);
}
