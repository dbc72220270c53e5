/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Session numbers, tokens and shares of the receive buffers. Called by erpc_session_open and
 * erpc_session_close.
 *
 * Numbers are allocated round robin, so a freed number is reused last. Each session reserves
 * receive buffers for the peer's requests and for as many responses. The first sessions reserve all
 * they can use, and no buffer can run out. Later ones share the rest, down to ERPC_CREDITS_MIN,
 * which is always granted. From there on simultaneous bursts of all peers may find no buffer and
 * are retransmitted.
 *
 * Tested in test/unit/erpc/test_erpc_many.c.
 */
#include <rdma/fi_errno.h>
#include <sys/random.h>

#include "erpc/base/erpc_ep.h"
#include "util/log.h"

#define ERPC_SHARE 8u         /* divisor: a session gets at most 1/8 of the free buffers */
#define ERPC_MANY  (1u << 12) /* fewer receive buffers than that are few */

/**
 * Draws a token from the system, so that a peer cannot guess the next; in tests from a seed. All
 * tokens of an endpoint have the same low byte, so that a device can recognize the packets.
 */
static int erpc_ep_token(struct erpc_ep *ep, uint64_t *token)
{
	uint64_t z;

	if (!ep->seeded) {
		if (getrandom(token, sizeof(*token), 0) != sizeof(*token))
			return -FI_EIO;
		*token = (*token & ~0xFFull) | ep->mark;
		return 0;
	}
	z = ep->random += 0x9E3779B97F4A7C15ull;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	*token = z ^ (z >> 31);
	return 0;
}

/** Returns the most packets of a session in flight: more than ERPC_CREDITS_FEW if there is room. */
static uint32_t erpc_ep_credits_max(const struct dev_dgram *dg)
{
	uint32_t room = dg->rx_room / (dg->mtu + DEV_DGRAM_ROOM);

	if (dg->rx_cnt < ERPC_MANY || (dg->rx_room && room < ERPC_CREDITS_FEW))
		return ERPC_CREDITS_FEW;
	return dg->rx_room && room < ERPC_CREDITS_MAX ? room : ERPC_CREDITS_MAX;
}

static uint32_t erpc_ep_share(const struct erpc_ep *ep)
{
	uint32_t left = ep->dg->rx_cnt > ep->promised ? ep->dg->rx_cnt - ep->promised : 0;
	uint32_t max = erpc_ep_credits_max(ep->dg);
	uint32_t share = left / ERPC_SHARE;

	if (share < ERPC_CREDITS_MIN)
		return ERPC_CREDITS_MIN;
	return share < max ? share : max;
}

static bool erpc_ep_is_used(const struct erpc_ep *ep, uint32_t num)
{
	return ep->used[num / 8] >> num % 8 & 1;
}

int erpc_ep_alloc_num(struct erpc_ep *ep, uint16_t *num, uint32_t *credits, uint64_t *token)
{
	int ret = -FI_EAGAIN;

	pthread_mutex_lock(&ep->lock);
	if (ep->session_cnt == ERPC_SESSIONS_MAX) {
		UTIL_WARN_SELDOM(EP_CTRL,
				 "an endpoint has %u peers over datagrams, the maximum: the next "
				 "one waits until one is gone; use more endpoints\n",
				 ERPC_SESSIONS_MAX);
		goto out_unlock;
	}
	ret = erpc_ep_token(ep, token);
	if (ret)
		goto out_unlock;
	while (erpc_ep_is_used(ep, ep->next_num % ERPC_SESSIONS_MAX))
		ep->next_num++;
	*num = (uint16_t)(ep->next_num++ % ERPC_SESSIONS_MAX);
	ep->used[*num / 8] |= (uint8_t)(1u << *num % 8);
	ep->session_cnt++;
	*credits = erpc_ep_share(ep);
	ep->promised += 2 * *credits;
out_unlock:
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

void erpc_ep_free_num(struct erpc_ep *ep, uint16_t num, uint32_t credits)
{
	pthread_mutex_lock(&ep->lock);
	ep->used[num / 8] &= (uint8_t) ~(1u << num % 8);
	ep->session_cnt--;
	ep->promised -= 2 * credits;
	pthread_mutex_unlock(&ep->lock);
}
