/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Limit on replies to strangers: see cm_stranger.h. */
#include "cm/ep/cm_stranger.h"

#include <assert.h>

#include "cm/base/cm_mac.h"
#include "cm/ep/cm_ep.h"
#include "cm/ep/cm_peer.h"
#include "util/clock.h"

static_assert(CM_STRANGER_HOSTS == CM_EP_HOSTS, "cm_ep_host returns indices of host_ns");

static bool cm_stranger_has_room(uint64_t used_ns, uint64_t now_ns)
{
	return used_ns <= now_ns + CM_STRANGER_BURST_NS;
}

static void cm_stranger_use(uint64_t *used_ns, uint32_t per_s, uint64_t now_ns)
{
	*used_ns = (*used_ns > now_ns ? *used_ns : now_ns) + UTIL_NS_PER_S / per_s;
}

/** Returns whether the sender has received something at its address. */
static bool cm_stranger_is_proved(struct cm_ep *cep, const union cm_addr *from,
				  const struct wire_cm_pkt *pkt, uint64_t now_ns)
{
	if (pkt->type == WIRE_CM_HELLO)
		return cm_cookie_check(&cep->jar, from, pkt->src_inc, pkt->nonce, now_ns,
				       pkt->hello.cookie);
	return pkt->type != WIRE_CM_REQ && cm_peer_find(cep, from);
}

bool cm_stranger_exceeds(struct cm_ep *cep, const union cm_addr *from,
			 const struct wire_cm_pkt *pkt, uint64_t now_ns)
{
	const struct cm_stranger *stranger = &cep->stranger;

	if (cm_stranger_has_room(stranger->all_ns, now_ns) &&
	    cm_stranger_has_room(stranger->host_ns[cm_ep_host(cep, from)], now_ns))
		return false;
	return !cm_stranger_is_proved(cep, from, pkt, now_ns);
}

bool cm_stranger_take(struct cm_ep *cep, const union cm_addr *addr, uint64_t now_ns)
{
	uint64_t *all_ns = &cep->stranger.all_ns;
	uint64_t *host_ns = &cep->stranger.host_ns[cm_ep_host(cep, addr)];

	if (!cm_stranger_has_room(*all_ns, now_ns) || !cm_stranger_has_room(*host_ns, now_ns))
		return false;
	cm_stranger_use(all_ns, CM_STRANGER_ALL_S, now_ns);
	cm_stranger_use(host_ns, CM_STRANGER_HOST_S, now_ns);
	return true;
}
