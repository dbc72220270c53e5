/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who is being let in, and who has to go: see cm_guest.h. */
#include "cm/conn/cm_guest.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "cm/cm_agent.h"
#include "cm/conn/cm_conn.h"
#include "util/clock.h"
#include "util/log.h"

#define CM_GUEST_HOSTS 1024u /* counters; two hosts may share one, but nobody can choose to */

/** Which counter an address' host has: keyed, so that nobody can choose to share another's. */
static uint32_t cm_guest_host(const struct cm_agent *agent, const union cm_addr *addr)
{
	union cm_addr host;

	memset(&host, 0, sizeof(host));
	host.sa.sa_family = addr->sa.sa_family;
	if (addr->sa.sa_family == AF_INET)
		host.in.sin_addr = addr->in.sin_addr;
	else
		memcpy(&host.in6.sin6_addr, &addr->in6.sin6_addr, 8);
	return (uint32_t)(cm_mac_table_hash(&agent->jar, &host) % CM_GUEST_HOSTS);
}

void cm_guest_add(struct cm_conn *conn, uint64_t now_ns)
{
	struct cm_agent *agent = conn->agent;

	conn->guest_ns = now_ns;
	conn->guest_host = cm_guest_host(agent, &conn->addr);
	util_list_push_back(&agent->guests, &conn->guest_link);
	agent->guest_cnt++;
}

void cm_guest_remove(struct cm_conn *conn)
{
	util_list_remove(&conn->guest_link);
	conn->agent->guest_cnt--;
}

void cm_guest_die(struct cm_conn *conn)
{
	conn->is_ghost = true;
	conn->agent->ghost_cnt++;
}

void cm_guest_put(struct cm_conn *conn)
{
	conn->agent->ghost_cnt -= conn->is_ghost;
	conn->is_ghost = false;
}

static struct cm_conn *cm_guest_of(struct util_list *link)
{
	return UTIL_CONTAINER_OF(link, struct cm_conn, guest_link);
}

/** The oldest one of those that share a host with most others: NULL: there is nobody. */
static struct cm_conn *cm_guest_oldest(struct cm_agent *agent, uint16_t cnt[CM_GUEST_HOSTS])
{
	struct cm_conn *oldest = NULL;
	struct util_list *it;

	memset(cnt, 0, CM_GUEST_HOSTS * sizeof(cnt[0]));
	for (it = agent->guests.next; it != &agent->guests; it = it->next)
		cnt[cm_guest_of(it)->guest_host]++;
	for (it = agent->guests.next; it != &agent->guests; it = it->next)
		if (!oldest || cnt[cm_guest_of(it)->guest_host] > cnt[oldest->guest_host])
			oldest = cm_guest_of(it);
	return oldest;
}

bool cm_guest_make_room(struct cm_agent *agent, const union cm_addr *addr, uint64_t now_ns)
{
	uint16_t cnt[CM_GUEST_HOSTS];
	struct cm_conn *oldest;
	uint64_t due_ms;

	if (agent->ghost_cnt >= CM_GHOSTS)
		return false;
	if (agent->guest_cnt < CM_GUESTS)
		return true;
	oldest = cm_guest_oldest(agent, cnt);
	due_ms = cnt[cm_guest_host(agent, addr)] + 1 < cnt[oldest->guest_host] ? CM_GUEST_MS
									       : CM_GUEST_OLD_MS;
	if (now_ns < oldest->guest_ns + due_ms * UTIL_NS_PER_MS)
		return false;
	agent->stats.guests_evicted++;
	cm_conn_end(oldest, -FI_EAGAIN, "it did not finish the handshake, and others came");
	return true;
}
