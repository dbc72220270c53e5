/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Send side of datagram endpoints: see dgram_ep.h. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "dgram/dgram_ep.h"

/* Interval of reported completions: no slot waits for one that will not come. */
#define DGRAM_TX_REPORT (DGRAM_TX_CNT / 4)

static inline int dgram_tx_resolve(struct dgram_ep *ep, uint64_t number, struct dev_dgram_ah **ah)
{
	if (UTIL_LIKELY(number < ep->ah_cnt && ep->ahs[number])) {
		*ah = ep->ahs[number];
		return 0;
	}
	return dgram_ep_resolve(ep, number, ah);
}

static inline void dgram_tx_complete(const struct dgram_ep *ep, const struct dgram_send *s)
{
	const struct core_comp *tx = ep->tx;

	if (tx->cntr)
		core_cntr_add(tx->cntr, 1);
	if (tx->cq && !s->silent && (!tx->selective || (s->flags & FI_COMPLETION)))
		core_cq_write(tx->cq, s->context, FI_SEND | FI_MSG, 0, NULL, 0, 0,
			      FI_ADDR_NOTAVAIL);
}

static uint32_t dgram_tx_flags(uint32_t number)
{
	return number % DGRAM_TX_REPORT == DGRAM_TX_REPORT - 1 ? DEV_DGRAM_REPORT : 0;
}

int dgram_tx_flush(struct dgram_ep *ep)
{
	int ret;

	if (ep->err || !ep->burst_cnt)
		return ep->err;
	ret = ep->ops->send(ep->dg, ep->burst, ep->burst_cnt);
	if (ret > 0) {
		ep->burst_cnt -= (uint32_t)ret;
		memmove(ep->burst, ep->burst + ret, ep->burst_cnt * sizeof(ep->burst[0]));
	}
	if (ret < 0 && ret != -FI_EAGAIN) {
		dgram_ep_fail(ep, ret);
		return ret;
	}
	return ep->burst_cnt ? -FI_EAGAIN : 0;
}

/*
 * Returns true if the datagram is sent from the user's buffer: no burst is open and the device
 * copies it.
 */
static inline bool dgram_tx_is_direct(const struct dgram_ep *ep, const struct dgram_send *s)
{
	return !ep->burst_cnt && !(s->flags & FI_MORE) && s->len <= ep->dg->inline_max &&
	       s->iov_cnt <= DEV_DGRAM_PIECES;
}

static int dgram_tx_direct(struct dgram_ep *ep, const struct dgram_send *s,
			   const struct dev_dgram_ah *ah)
{
	struct dev_dgram_out out = { .to = ah, .flags = dgram_tx_flags(ep->dg->tx_posted) };
	int ret;

	for (size_t i = 0; i < s->iov_cnt; i++) {
		out.base[i] = s->iov[i].iov_base;
		out.len[i] = (uint32_t)s->iov[i].iov_len;
	}
	ret = ep->ops->send(ep->dg, &out, 1);
	if (UTIL_LIKELY(ret == 1))
		return 0;
	if (ret < 0 && ret != -FI_EAGAIN)
		dgram_ep_fail(ep, ret);
	return ret < 0 ? ret : -FI_EAGAIN;
}

static void dgram_tx_gather(uint8_t *to, const struct dgram_send *s)
{
	for (size_t i = 0; i < s->iov_cnt; i++) {
		if (s->iov[i].iov_len)
			memcpy(to, s->iov[i].iov_base, s->iov[i].iov_len);
		to += s->iov[i].iov_len;
	}
}

/* Returns true if the device has finished with the slot of the next datagram. */
static bool dgram_tx_has_slot(const struct dgram_ep *ep)
{
	uint32_t number = ep->dg->tx_posted + ep->burst_cnt;

	return ep->burst_cnt < DGRAM_BURST && number - ep->dg->tx_done < DGRAM_TX_CNT;
}

/*
 * Copies the datagram to a slot. Accepted once copied; progress sends what the device has no space
 * for.
 */
static int dgram_tx_by_slot(struct dgram_ep *ep, const struct dgram_send *s,
			    const struct dev_dgram_ah *ah)
{
	uint32_t number = ep->dg->tx_posted + ep->burst_cnt;
	struct dev_dgram_out *out;
	uint8_t *slot;

	if (!dgram_tx_has_slot(ep))
		return -FI_EAGAIN;
	slot = ep->slots + (size_t)(number % DGRAM_TX_CNT) * ep->slot_len;
	dgram_tx_gather(slot, s);
	out = &ep->burst[ep->burst_cnt++];
	*out = (struct dev_dgram_out){
		.to = ah,
		.base = { slot },
		.len = { (uint32_t)s->len },
		.mem = { ep->slot_mem },
		.flags = dgram_tx_flags(number),
	};
	if (!(s->flags & FI_MORE) || ep->burst_cnt == DGRAM_BURST)
		dgram_tx_flush(ep);
	return ep->err;
}

static int dgram_tx_try(struct dgram_ep *ep, const struct dgram_send *s,
			const struct dev_dgram_ah *ah)
{
	return dgram_tx_is_direct(ep, s) ? dgram_tx_direct(ep, s, ah) : dgram_tx_by_slot(ep, s, ah);
}

static int dgram_tx_message(struct dgram_ep *ep, const struct dgram_send *s)
{
	struct dev_dgram_ah *ah;
	int ret = ep->err ? ep->err : dgram_tx_resolve(ep, s->dest, &ah);

	if (UTIL_UNLIKELY(ret))
		return ret;
	if (UTIL_UNLIKELY(s->len > ah->mtu))
		return -FI_EMSGSIZE;
	ret = dgram_tx_try(ep, s, ah);
	if (UTIL_UNLIKELY(ret == -FI_EAGAIN)) {
		dgram_ep_progress(ep); /* Polling frees slots */
		ret = ep->err ? ep->err : dgram_tx_resolve(ep, s->dest, &ah); /* perhaps anew */
		ret = ret ? ret : dgram_tx_try(ep, s, ah);
	}
	if (UTIL_LIKELY(!ret))
		dgram_tx_complete(ep, s);
	return ret;
}

/* Sends without the prefix, which is not transmitted. */
static int dgram_tx_behind_prefix(struct dgram_ep *ep, const struct dgram_send *s)
{
	struct iovec iov[DGRAM_IOV_MAX];
	struct dgram_send bare = *s;

	if (!s->iov_cnt || s->iov[0].iov_len < ep->prefix)
		return -FI_EINVAL;
	memcpy(iov, s->iov, s->iov_cnt * sizeof(iov[0]));
	iov[0].iov_base = (uint8_t *)iov[0].iov_base + ep->prefix;
	iov[0].iov_len -= ep->prefix;
	bare.iov = iov;
	bare.len -= ep->prefix;
	return dgram_tx_message(ep, &bare);
}

int dgram_tx_send(struct dgram_ep *ep, const struct dgram_send *s)
{
	return UTIL_UNLIKELY(ep->prefix) ? dgram_tx_behind_prefix(ep, s) : dgram_tx_message(ep, s);
}
