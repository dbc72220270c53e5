/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends that are injected by default and write no completion: see cpr_silent.h. */
#include "ofi/xfer/cpr_silent.h"

#include "ofi/xfer/cpr_xfer.h"

CPR_XFER_CALL(cpr_silent_send, cpr_silent_send_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
	       void *context),
	      cpr_xfer_send_silent(cpr_ep_of(fid), buf, len, dest_addr, 0, context, false, guarded))

CPR_XFER_CALL(cpr_silent_tsend, cpr_silent_tsend_guarded,
	      (struct fid_ep * fid, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
	       uint64_t tag, void *context),
	      cpr_xfer_send_silent(cpr_ep_of(fid), buf, len, dest_addr, tag, context, true,
				   guarded))

/* FI_TRANSMIT_COMPLETE is the level of all messages without a flag. */
static bool cpr_silent_applies(const struct cpr_ep *ep)
{
	return (ep->tx_flags & ~FI_TRANSMIT_COMPLETE) == FI_INJECT && !ep->core->conn &&
	       !core_ep_has_tx_comp(ep->core, ep->tx_flags, false);
}

void cpr_silent_pick(struct cpr_ep *ep)
{
	if (!cpr_silent_applies(ep))
		return;
	if (ep->caps & FI_MSG)
		ep->msg_ops.send = ep->dom->locked ? cpr_silent_send_guarded : cpr_silent_send;
	if (ep->caps & FI_TAGGED)
		ep->tagged_ops.send = ep->dom->locked ? cpr_silent_tsend_guarded : cpr_silent_tsend;
}
