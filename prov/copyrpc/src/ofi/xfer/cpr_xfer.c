/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transfers of one buffer in domains that are locked or watched: see cpr_xfer.h. */
#include "ofi/xfer/cpr_xfer.h"

ssize_t cpr_xfer_send_guarded(struct cpr_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t tag, uint64_t data, void *context, uint64_t flags,
			      bool tagged, enum core_post_end end)
{
	ssize_t ret;

	core_dom_lock(ep->dom);
	ret = core_tx_send_buf(ep->core, buf, len, dest, tag, data, context, flags, tagged, end);
	core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}

ssize_t cpr_xfer_recv_guarded(struct cpr_ep *ep, void *buf, size_t len, fi_addr_t src, uint64_t tag,
			      uint64_t ignore, void *context, uint64_t flags, bool tagged)
{
	ssize_t ret;

	core_dom_lock(ep->dom);
	ret = core_rx_post_buf(ep->core, buf, len, src, tag, ignore, context, flags, tagged);
	core_dom_transferred(ep->dom);
	core_dom_unlock(ep->dom);
	return ret;
}
