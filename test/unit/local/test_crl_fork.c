/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A forked child has no memory of a channel; what it closes is its own copy, and the parent goes
 * on.
 */
#include "local/crl_fork.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local_pair.h"

/* Returns the status of a child that runs `body`. */
static int run_child(int (*body)(void *), void *arg)
{
	int status = -1;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		_exit(body(arg));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static int child_ids(void *arg)
{
	uint32_t *parents = arg;
	uint32_t id = crl_fork_id();

	if (id != crl_fork_id() || id == parents[0] || id == parents[1])
		return 1;
	if (parents[1])
		return 0;
	return run_child(child_ids, (uint32_t[]){ parents[0], id }) ? 2 : 0;
}

Test(crl_fork, parent_child_and_grandchild_differ)
{
	uint32_t parents[2] = { crl_fork_id(), 0 };

	cr_assert_eq(crl_fork_id(), parents[0]);
	cr_assert_eq(run_child(child_ids, parents), 0);
	cr_assert_eq(crl_fork_id(), parents[0]);
}

struct pair {
	struct crl_server *server;
	struct crl_client *client;
};

static int child_calls(void *arg)
{
	struct pair *pair = arg;

	return crl_client_call(pair->client, "", 0, NULL, 0) == -EAGAIN;
}

static int child_serves(void *arg)
{
	struct pair *pair = arg;
	struct crl_request request;

	return crl_server_take(pair->server, &request, 1) == -EAGAIN;
}

static int child_closes(void *arg)
{
	struct pair *pair = arg;

	crl_client_close(pair->client);
	crl_server_close(pair->server);
	return 0;
}

static void check_trip(struct pair *pair)
{
	struct crl_request request;
	struct crl_response response;

	cr_assert_eq(crl_client_call(pair->client, "x", 1, NULL, 0), 0);
	local_pair_take(pair->server, &request, 1);
	cr_assert_eq(crl_server_reply(pair->server, request.handle, "y", 1), 0);
	local_pair_poll(pair->client, &response, 1);
	cr_assert_eq(response.status, 0);
}

static void check_children(enum crl_kind kind, const char *name)
{
	struct pair pair = { .server = local_pair_server(kind, name, NULL) };
	struct crl_client *late;

	pair.client = local_pair_client(pair.server, name);
	cr_assert_neq(run_child(child_calls, &pair), 0, "the child reaches the client's memory");
	cr_assert_neq(run_child(child_serves, &pair), 0, "the child reaches the server's memory");
	check_trip(&pair);
	cr_assert_eq(run_child(child_closes, &pair), 0);
	check_trip(&pair);
	late = local_pair_client(pair.server, name);
	crl_client_close(late);
	check_trip(&pair);
	crl_client_close(pair.client);
	crl_server_close(pair.server);
}

Test(crl_fork, children_close_their_copies_and_no_more)
{
	char path[64];

	check_children(CRL_DELEGATION, local_pair_name("fork"));
	snprintf(path, sizeof(path), "/tmp/test-crl-fork.%d", (int)getpid());
	check_children(CRL_IPC, path);
	cr_assert_eq(access(path, F_OK), -1);
}

static int child_lingers(void *arg)
{
	(void)arg;
	pause();
	return 0;
}

/* A child that has all descriptors does not hide that the other side was closed. */
Test(crl_fork, the_end_of_a_connection_is_noticed_though_a_child_lives)
{
	const char *name = local_pair_name("linger");
	struct pair pair = { .server = local_pair_server(CRL_IPC, name, NULL) };
	struct crl_client *other;
	struct crl_counters counters;
	struct crl_response response;
	pid_t pid;

	pair.client = local_pair_client(pair.server, name);
	other = local_pair_client(pair.server, name);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(child_lingers(NULL));
	crl_client_close(other);
	do {
		crl_server_wait(pair.server, 1);
		crl_server_counters(pair.server, &counters);
	} while (counters.clients != 1);
	crl_server_close(pair.server);
	cr_assert_eq(crl_client_wait(pair.client, 60000), 0);
	cr_assert_eq(crl_client_poll(pair.client, &response, 1), -EPIPE);
	crl_client_close(pair.client);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
