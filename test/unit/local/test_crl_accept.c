/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Clients come and go: ids return, handles do not, and none that obeys the rules is expelled. */
#include <copyrpc/local.h>
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "local/crl_server.h"
#include "local/crl_sock.h"
#include "local_pair.h"

static const struct crl_options alone = { .max_clients = 1, .depth = 2, .spin_us = -1 };

static void await_no_clients(struct crl_server *server)
{
	struct crl_counters counters;

	do {
		crl_server_wait(server, 1);
		crl_server_take(server, NULL, 0);
		crl_server_counters(server, &counters);
	} while (counters.clients);
}

ParameterizedTestParameters(crl_accept, no_handle_of_a_client_is_one_of_the_next_with_its_id)
{
	static enum crl_kind kinds[] = { CRL_DELEGATION, CRL_IPC };

	return cr_make_param_array(enum crl_kind, kinds, 2);
}

ParameterizedTest(enum crl_kind *kind, crl_accept,
		  no_handle_of_a_client_is_one_of_the_next_with_its_id)
{
	const char *name = local_pair_name("handles");
	struct crl_server *server = local_pair_server(*kind, name, &alone);
	struct crl_request requests[4];

	for (int i = 0; i < 4; i++) {
		struct crl_client *client = local_pair_client(server, name);

		cr_assert_eq(crl_client_call(client, "", 0, NULL, 0), 0);
		local_pair_take(server, &requests[i], 1);
		cr_assert_eq(requests[i].client, 0);
		for (int before = 0; before < i; before++)
			cr_expect_eq(crl_server_reply(server, requests[before].handle, "", 0),
				     -EINVAL);
		cr_expect_eq(crl_server_reply(server, requests[i].handle, "", 0), 0);
		crl_client_close(client);
		await_no_clients(server);
	}
	crl_server_close(server);
}

ParameterizedTestParameters(crl_accept, a_wakeup_for_each_sleep_is_not_too_many)
{
	static enum crl_kind kinds[] = { CRL_DELEGATION, CRL_IPC };

	return cr_make_param_array(enum crl_kind, kinds, 2);
}

/* Each side arms and finds work before it sleeps, so the bytes of wakeups stay in the socket. */
ParameterizedTest(enum crl_kind *kind, crl_accept, a_wakeup_for_each_sleep_is_not_too_many)
{
	const char *name = local_pair_name("wakes");
	struct crl_server *server = local_pair_server(*kind, name, &alone);
	struct crl_client *client = local_pair_client(server, name);
	struct crl_counters counters;
	struct crl_response response;
	struct crl_request request, more;

	for (unsigned i = 0; i < 8 * CRL_SOCK_WAKES; i++) {
		cr_assert_eq(crl_server_arm(server), 0, "round %u", i);
		cr_assert_eq(crl_client_call(client, "", 0, NULL, 0), 0);
		cr_assert_eq(crl_server_arm(server), -EAGAIN);
		cr_assert_eq(crl_server_take(server, &request, 1), 1);
		cr_assert_eq(crl_server_take(server, &more, 1), 0);
		cr_assert_eq(crl_client_arm(client), 0, "round %u", i);
		cr_assert_eq(crl_server_reply(server, request.handle, "", 0), 0);
		cr_assert_eq(crl_client_arm(client), -EAGAIN);
		cr_assert_eq(crl_client_poll(client, &response, 1), 1);
		cr_assert_eq(response.status, 0, "round %u", i);
	}
	crl_server_wait(server, 1);
	for (int i = 0; i < 100; i++)
		cr_assert_eq(crl_client_poll(client, &response, 1), 0);
	cr_assert_eq(crl_client_wait(client, 1), -ETIMEDOUT);
	cr_assert_eq(crl_client_call(client, "", 0, NULL, 0), 0);
	local_pair_take(server, &request, 1);
	crl_server_counters(server, &counters);
	cr_expect_eq(counters.expelled, 0);
	cr_expect_eq(counters.clients, 1);
	crl_client_close(client);
	crl_server_close(server);
}

/* Sets the limit on descriptors. Returns the former one. */
static rlim_t limit_descriptors(rlim_t to)
{
	struct rlimit limit;
	rlim_t before;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = to;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return before;
}

static int lowest_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* A server has all descriptors that it needs to refuse clients, or is none. */
Test(crl_accept, a_server_without_a_descriptor_to_spare_does_not_open)
{
	const char *name = local_pair_name("needs");
	struct crl_server *server = NULL;
	int first = lowest_free(), ret = -EMFILE;

	for (int more = 0; ret; more++) {
		rlim_t before = limit_descriptors((rlim_t)(first + more));

		ret = crl_server_open(&server, CRL_IPC, name, NULL);
		limit_descriptors(before);
		cr_assert(!ret || ret == -EMFILE, "%d more: %d", more, ret);
		if (ret)
			cr_expect_eq(lowest_free(), first, "%d more: one is left open", more);
	}
	cr_assert_geq(server->spare, 0);
	crl_server_close(server);
	cr_expect_eq(lowest_free(), first);
}

/* Another thread may take the number of the spare descriptor between its use and its return. */
Test(crl_accept, a_spare_descriptor_that_was_lost_is_replaced)
{
	const char *name = local_pair_name("spare");
	struct crl_server *server = local_pair_server(CRL_IPC, name, NULL);

	close(server->spare);
	server->spare = -1;
	crl_client_close(local_pair_client(server, name));
	cr_expect_geq(server->spare, 0);
	crl_server_close(server);
}
