/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Health of a transport's device: see erpc_outage.h. */
#include "erpc/transport/erpc_outage.h"

#include <rdma/fi_errno.h>

#include "engine/eng_engine.h"
#include "erpc/transport/erpc_transport.h"
#include "util/clock.h"
#include "util/param.h"

/** Ends the sessions of a port that is down, once their time is over. */
static void erpc_outage_on_down(struct erpc_transport *transport)
{
	bool has_other = transport->transport.engine->transport_cnt > 1;
	uint64_t patience_ns = (uint64_t)util_params.peer_timeout_ms * UTIL_NS_PER_MS;
	uint64_t now_ns = util_clock_ns();
	struct util_list *it, *tmp;

	if (!transport->down_until_ns)
		transport->down_until_ns = now_ns + (has_other ? 0 : patience_ns);
	if (now_ns < transport->down_until_ns)
		return;
	transport->down_until_ns = now_ns + patience_ns;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->eps)
		erpc_ep_fail_sessions(erpc_transport_ep(it), -FI_ENETDOWN);
}

/** Returns true if a queue pair has failed, perhaps without the device. */
static bool erpc_outage_has_failed(struct erpc_transport *transport)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->eps)
		if (erpc_transport_ep(it)->err)
			return true;
	return false;
}

/** Ends all sessions, so that the device can be closed. */
static void erpc_outage_fail_all(struct erpc_transport *transport)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->eps)
		erpc_ep_fail(erpc_transport_ep(it), -FI_EIO);
}

int erpc_outage_health(struct eng_transport *eng)
{
	struct erpc_transport *transport = erpc_transport_of(eng);
	int ret;

	if (!transport->dev)
		return -FI_ENODEV;
	ret = transport->cfg->dev->health(transport->dev);
	if (ret == -FI_ENETDOWN)
		erpc_outage_on_down(transport);
	else
		transport->down_until_ns = 0;
	if (ret != -FI_EIO && !erpc_outage_has_failed(transport))
		return ret;
	erpc_outage_fail_all(transport);
	return -FI_EIO;
}

int erpc_outage_reopen(struct eng_transport *eng)
{
	erpc_transport_close(eng);
	return erpc_transport_open(eng, erpc_transport_of(eng)->cfg);
}
