/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sleep of a server: crl_server_wait, crl_server_arm, crl_server_fd. */
#include "local/crl_wait.h"

#include "local/crl_server.h"

static bool crl_server_ready(void *object)
{
	return crl_take_ready(object);
}

int crl_server_fd(const struct crl_server *server)
{
	return server->epoll;
}

int crl_server_arm(struct crl_server *server)
{
	crl_sleep_arm(&server->sleep);
	if (!crl_take_ready(server) && !crl_take_any(server)) {
		server->counters.sleeps++;
		return 0;
	}
	crl_sleep_disarm(&server->sleep);
	server->sweep = server->kind == CRL_DELEGATION && !crl_take_ready(server);
	return -EAGAIN;
}

int crl_server_wait(struct crl_server *server, int timeout_ms)
{
	struct crl_wait wait = crl_wait_begin(timeout_ms, server->options.spin_us);
	int ret = 0;

	if (crl_wait_spin(&wait, crl_server_ready, server))
		return 0;
	while (!ret && !crl_server_arm(server)) {
		ret = crl_wait_sleep(&wait, server->epoll);
		crl_sleep_disarm(&server->sleep);
		crl_accept_events(server);
	}
	return ret;
}
