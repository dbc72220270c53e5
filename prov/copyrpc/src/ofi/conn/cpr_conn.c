/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connected endpoints: fi_cm(3) and its events. See cpr_conn.h. */
#include "ofi/conn/cpr_conn.h"

#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/msg/cm_msg.h"
#include "core/core_conn.h"
#include "core/core_peer.h"
#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_refuse.h"
#include "ofi/conn/cpr_connreq.h"
#include "ofi/conn/cpr_pep.h"
#include "ofi/queue/cpr_eq.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

#define CPR_CONN_ZOMBIES_MAX 64u

static_assert(CORE_CONN_DATA_MAX == CM_MSG_DATA_MAX,
	      "a connection stores all data of a connection request");

static void cpr_conn_no_memory(int ret)
{
	if (ret)
		UTIL_WARN(EP_CTRL, "out of memory: a connection event is lost\n");
}

static void cpr_conn_connected(void *ctx, const void *data, size_t len)
{
	struct cpr_ep *ep = ctx;

	cpr_conn_no_memory(cpr_eq_post_cm(ep->eq_user.eq, FI_CONNECTED, &ep->fid.fid, data, len));
}

static void cpr_conn_failed(void *ctx, int err, const void *data, size_t len)
{
	struct cpr_ep *ep = ctx;

	cpr_conn_no_memory(cpr_eq_post_cm_err(ep->eq_user.eq, &ep->fid.fid, err, data, len));
}

static void cpr_conn_ended(void *ctx)
{
	struct cpr_ep *ep = ctx;

	cpr_conn_no_memory(cpr_eq_post_cm(ep->eq_user.eq, FI_SHUTDOWN, &ep->fid.fid, NULL, 0));
}

static void cpr_conn_event(void *ctx)
{
	struct cpr_ep *ep = ctx;

	cpr_eq_notify(ep->eq_user.eq);
}

static const struct core_conn_ops cpr_conn_core_ops = {
	.connected = cpr_conn_connected,
	.failed = cpr_conn_failed,
	.ended = cpr_conn_ended,
	.event = cpr_conn_event,
};

/*
 * Sets the local address of an accepting endpoint: its name is the listener's address, but its
 * handshake uses a port of its own.
 */
static void cpr_conn_set_local(struct cpr_ep *ep, const struct sockaddr_storage *local)
{
	ep->listener_addr = *local;
	ep->src = *local;
	if (ep->src.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&ep->src)->sin6_port = 0;
	else
		((struct sockaddr_in *)&ep->src)->sin_port = 0;
}

int cpr_conn_init(struct cpr_ep *ep, const struct fi_info *info)
{
	struct cpr_fabric *fabric = ep->domain->fabric;

	ep->conn.ops = &cpr_conn_core_ops;
	ep->conn.ctx = ep;
	ep->core_ep.conn = &ep->conn;
	if (!info->handle)
		return 0;
	if (info->handle->fclass == FI_CLASS_PEP)
		return cpr_pep_take_addr(fabric, info->handle, &ep->src);
	ep->request = cpr_connreq_take(fabric, info->handle);
	if (!ep->request)
		return -FI_EINVAL;
	if (cpr_addr_format(ep->request->local.ss_family) != ep->domain->addr_format)
		return -FI_EINVAL;
	cpr_conn_set_local(ep, &ep->request->local);
	return 0;
}

void cpr_conn_fini(struct cpr_ep *ep)
{
	if (ep->request)
		cpr_connreq_reject(ep->request, NULL, 0);
	if (ep->eq_user.eq)
		cpr_eq_forget(ep->eq_user.eq, &ep->fid.fid);
}

/** Frees the endpoint that was deferred first. Returns false if there is none. */
static bool cpr_conn_free_oldest(struct cpr_domain *domain)
{
	struct util_list *first = util_list_pop(&domain->closed_conns);

	if (!first)
		return false;
	domain->closed_conn_cnt--;
	free(UTIL_CONTAINER_OF(first, struct cpr_ep, av_link));
	return true;
}

void cpr_conn_defer_free(struct cpr_ep *ep)
{
	struct cpr_domain *domain = ep->domain;

	cpr_refuse_all(ep);
	cpr_domain_lock(domain);
	util_list_push_back(&domain->closed_conns, &ep->av_link);
	if (++domain->closed_conn_cnt > CPR_CONN_ZOMBIES_MAX)
		cpr_conn_free_oldest(domain);
	cpr_domain_unlock(domain);
}

void cpr_conn_free_deferred(struct cpr_domain *domain)
{
	while (cpr_conn_free_oldest(domain))
		;
}

static int cpr_conn_enabled(struct cpr_ep *ep)
{
	return ep->is_enabled ? 0 : cpr_ep_enable(ep);
}

int cpr_conn_connect(struct fid_ep *fid, const void *addr, const void *param, size_t len)
{
	struct cpr_ep *ep = cpr_ep_of(fid)->owner;
	const struct sockaddr *sa = addr;
	int ret;

	if (!ep->core_ep.conn)
		return -FI_ENOSYS;
	if (len > CM_MSG_DATA_MAX || !sa || ep->request ||
	    cpr_addr_format(sa->sa_family) != ep->domain->addr_format)
		return -FI_EINVAL;
	ret = cpr_conn_enabled(ep);
	if (ret)
		return ret;
	cpr_domain_lock(ep->domain);
	ret = core_conn_connect(&ep->conn, sa, param, param ? len : 0);
	cpr_domain_unlock(ep->domain);
	return ret;
}

int cpr_conn_accept(struct fid_ep *fid, const void *param, size_t len)
{
	struct cpr_ep *ep = cpr_ep_of(fid)->owner;
	int ret;

	if (!ep->core_ep.conn)
		return -FI_ENOSYS;
	if (!ep->request || len > CM_MSG_DATA_MAX)
		return -FI_EINVAL;
	ret = cpr_conn_enabled(ep);
	if (ret)
		return ret;
	cpr_domain_lock(ep->domain);
	ret = core_conn_accept(&ep->conn, ep->request->connreq, param, param ? len : 0);
	cpr_domain_unlock(ep->domain);
	if (ret)
		return ret;
	cpr_connreq_free(ep->request);
	ep->request = NULL;
	return 0;
}

/*
 * Makes progress until accepted sends, also those that wait for room, have reached the peer, for
 * peer_timeout_ms at most.
 */
static void cpr_conn_drain(struct cpr_ep *ep)
{
	uint64_t deadline =
		util_clock_ns() + (uint64_t)util_params.peer_timeout_ms * UTIL_NS_PER_MS;
	unsigned looks = 0;
	bool busy;

	do {
		cpr_domain_lock(ep->domain);
		core_dom_progress(&ep->domain->main.core);
		busy = core_conn_is_busy(&ep->conn);
		cpr_domain_unlock(ep->domain);
		if (busy && ++looks > 1000)
			poll(NULL, 0, 1);
	} while (busy && util_clock_ns() < deadline);
}

int cpr_conn_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct cpr_ep *ep = cpr_ep_of(fid)->owner;
	int ret;

	if (!ep->core_ep.conn)
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	if (!ep->is_enabled)
		return -FI_ENOTCONN;
	cpr_conn_drain(ep);
	cpr_domain_lock(ep->domain);
	ret = core_conn_shutdown(&ep->conn);
	cpr_domain_unlock(ep->domain);
	return ret;
}

int cpr_conn_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct cpr_ep *ep = cpr_ep_of(fid)->owner;
	struct sockaddr_storage ss;
	bool known;

	if (!ep->core_ep.conn)
		return -FI_ENOSYS;
	cpr_domain_lock(ep->domain);
	known = ep->conn.state >= CORE_CONN_UP && ep->conn.addr.ss_family;
	ss = ep->conn.addr;
	cpr_domain_unlock(ep->domain);
	return known ? cpr_addr_copy_out(&ss, addr, addrlen) : -FI_ENOTCONN;
}

int cpr_conn_getopt(int level, int optname, void *optval, size_t *optlen)
{
	size_t room = *optlen;

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	*optlen = sizeof(size_t);
	if (room < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)optval = CM_MSG_DATA_MAX;
	return 0;
}
