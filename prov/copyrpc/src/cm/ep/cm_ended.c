/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Accepted attempts that have ended: see cm_ended.h. */
#include "cm/ep/cm_ended.h"

#include <stdlib.h>
#include <string.h>

#include "cm/ep/cm_ep.h"

/** Makes every cookie invalid, and forgets the attempts that had one. */
static void cm_ended_renew_cookies(struct cm_ep *cep)
{
	cm_cookie_renew(&cep->jar);
	cep->stats->cookies_renewed++;
	if (cep->ended.ring)
		memset(cep->ended.ring, 0, CM_ENDED_MAX * sizeof(cep->ended.ring[0]));
}

void cm_ended_add(struct cm_ep *cep, const union cm_addr *addr, uint64_t inc, uint64_t nonce,
		  uint64_t accepted_ns, uint64_t now_ns)
{
	struct cm_ended *ended = &cep->ended;
	struct cm_ended_entry *entry;
	uint64_t until_ns = accepted_ns + CM_COOKIE_LIFE_NS;

	if (now_ns >= until_ns)
		return;
	if (!ended->ring)
		ended->ring = calloc(CM_ENDED_MAX, sizeof(ended->ring[0]));
	if (!ended->ring || now_ns < ended->ring[ended->next].until_ns) {
		cm_ended_renew_cookies(cep);
		return;
	}
	entry = &ended->ring[ended->next];
	entry->hash = cm_mac_attempt_hash(&cep->jar, addr, inc, nonce);
	entry->until_ns = until_ns;
	ended->next = (ended->next + 1) % CM_ENDED_MAX;
}

bool cm_ended_has(const struct cm_ep *cep, const union cm_addr *addr, uint64_t inc, uint64_t nonce,
		  uint64_t now_ns)
{
	const struct cm_ended_entry *ring = cep->ended.ring;
	uint64_t hash = ring ? cm_mac_attempt_hash(&cep->jar, addr, inc, nonce) : 0;

	for (uint32_t i = 0; ring && i < CM_ENDED_MAX; i++)
		if (ring[i].hash == hash && now_ns < ring[i].until_ns)
			return true;
	return false;
}

void cm_ended_fini(struct cm_ended *ended)
{
	free(ended->ring);
	ended->ring = NULL;
}
