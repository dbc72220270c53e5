/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which number does a session have, and how many packets may its peer send?
 *
 * Numbers go round: one that was given back is not given again before all others were. Receive buffers are
 * promised: to each session for requests of the peer and as many answers. The first ones get all
 * they could use and nothing can overflow; later ones share what is left, down to a minimum that is
 * always given. From there on a burst of all at once may find no buffer, and comes again.
 * Shown by test/unit/erpc/test_erpc_many.c.
 */
#include <rdma/fi_errno.h>
#include <sys/random.h>

#include "erpc/erpc_ep.h"
#include "util/log.h"

#define ERPC_SHARE 8u /* one session gets at most this part of what is left */

/** Who has one token must not know the next: they come from the system, and only those of tests from a seed. */
static int erpc_ep_token(struct erpc_ep *ep, uint64_t *token)
{
	uint64_t z;

	if (!ep->seeded)
		return getrandom(token, sizeof(*token), 0) == sizeof(*token) ? 0 : -FI_EIO;
	z = ep->random += 0x9E3779B97F4A7C15ull;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	*token = z ^ (z >> 31);
	return 0;
}

static uint32_t erpc_ep_share(const struct erpc_ep *ep)
{
	uint32_t left = ep->dg->rx_cnt > ep->promised ? ep->dg->rx_cnt - ep->promised : 0;
	uint32_t share = left / ERPC_SHARE;

	if (share < ERPC_CREDITS_MIN)
		return ERPC_CREDITS_MIN;
	return share < ERPC_CREDITS_MAX ? share : ERPC_CREDITS_MAX;
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
		UTIL_WARN_SELDOM(
			EP_CTRL,
			"an endpoint has %u peers over datagrams and cannot have more: the next one "
			"waits until one is gone; reach some through others, or use more endpoints\n",
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
