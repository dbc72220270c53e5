/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options, addresses and cancellation of endpoints: struct fi_ops_ep and struct fi_ops_cm. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "dgram/dgram_over.h"
#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_fid.h"
#include "ofi/conn/cpr_conn.h"
#include "ofi/dgram/cpr_dgram.h"
#include "ofi/xfer/cpr_coll.h"
#include "ofi/xfer/cpr_trigger.h"
#include "util/bits.h"

/* Cancels an operation that waits for a counter, a receive or a call. Returns 0 or -FI_ENOENT. */
static ssize_t cpr_ep_opt_cancel(fid_t fid, void *context)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);
	int ret;

	if (!ep->owner->is_enabled)
		return -FI_EOPBADSTATE;
	core_dom_lock(ep->dom);
	ret = cpr_trigger_cancel(ep, context);
	if (ret == -FI_ENOENT)
		ret = ep->kind->cancel(ep, context);
	core_dom_unlock(ep->dom);
	return ret;
}

/* Returns -FI_EOPNOTSUPP for options that need device memory, -FI_ENOPROTOOPT for the others. */
static int cpr_ep_opt_refusal(int level, int optname)
{
	if (level == FI_OPT_ENDPOINT &&
	    (optname == FI_OPT_FI_HMEM_P2P || optname == FI_OPT_XPU_TRIGGER))
		return -FI_EOPNOTSUPP;
	return -FI_ENOPROTOOPT;
}

static int cpr_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);
	size_t room = *optlen;

	if (level == FI_OPT_ENDPOINT && optname == FI_OPT_CM_DATA_SIZE && ep->core->conn)
		return cpr_conn_getopt(level, optname, optval, optlen);
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return cpr_ep_opt_refusal(level, optname);
	*optlen = sizeof(size_t);
	if (room < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)optval = ep->core->min_multi_recv;
	return 0;
}

static int cpr_ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return cpr_ep_opt_refusal(level, optname);
	if (optlen != sizeof(size_t))
		return -FI_EINVAL;
	core_dom_lock(ep->dom);
	ep->core->min_multi_recv = *(const size_t *)optval;
	core_dom_unlock(ep->dom);
	return 0;
}

struct fi_ops_ep cpr_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = cpr_ep_opt_cancel,
	.getopt = cpr_ep_getopt,
	.setopt = cpr_ep_setopt,
	.tx_ctx = cpr_no_tx_ctx,
	.rx_ctx = cpr_no_rx_ctx,
	.rx_size_left = cpr_no_size_left,
	.tx_size_left = cpr_no_size_left,
};

int cpr_ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);
	const struct sockaddr *sa = addr;
	size_t len = cpr_addr_len(ep->domain->addr_format);

	if (ep->fid.fid.fclass == FI_CLASS_SRX_CTX)
		return -FI_ENOSYS;
	if (ep->owner->is_enabled)
		return -FI_EOPBADSTATE;
	if (ep->domain->dgram && !ep->domain->dgram->is_ip)
		return -FI_ENOSYS; /* the device sets it */
	if (addrlen < len || cpr_addr_format(sa->sa_family) != ep->domain->addr_format)
		return -FI_EINVAL;
	if (!cpr_addr_is_local(sa))
		return -FI_EADDRNOTAVAIL;
	memset(&ep->src, 0, sizeof(ep->src));
	memcpy(&ep->src, addr, len);
	return 0;
}

/* Returns the address; before fi_enable the requested one, or -FI_EOPBADSTATE without one. */
int cpr_ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct cpr_ep *ep = UTIL_CONTAINER_OF(fid, struct cpr_ep, fid.fid);
	struct sockaddr_storage ss = ep->owner->src;

	if (ep->fid.fid.fclass == FI_CLASS_SRX_CTX)
		return -FI_ENOSYS;
	if (ep->domain->dgram)
		return cpr_dgram_getname(ep, addr, addrlen);
	if (ep->owner->listener_addr.ss_family)
		ss = ep->owner->listener_addr;
	else if (ep->owner->is_enabled)
		core_ep_addr(ep->core, &ss);
	else if (!ss.ss_family)
		return -FI_EOPBADSTATE;
	return cpr_addr_copy_out(&ss, addr, addrlen);
}

struct fi_ops_cm cpr_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cpr_ep_setname,
	.getname = cpr_ep_getname,
	.getpeer = cpr_conn_getpeer,
	.connect = cpr_conn_connect,
	.listen = cpr_no_listen,
	.accept = cpr_conn_accept,
	.reject = cpr_no_reject,
	.shutdown = cpr_conn_shutdown,
	.join = cpr_coll_join,
};
