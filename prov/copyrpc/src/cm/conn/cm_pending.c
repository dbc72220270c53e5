/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pending connections: see cm_pending.h. */
#include "cm/conn/cm_pending.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "cm/conn/cm_conn.h"
#include "cm/ep/cm_ep.h"
#include "util/clock.h"
#include "util/log.h"

void cm_pending_add(struct cm_conn *conn, uint64_t now_ns)
{
	struct cm_ep *cep = conn->cep;

	conn->pending_ns = now_ns;
	conn->pending_host = cm_ep_host(cep, &conn->via.to);
	util_list_push_back(&cep->pending, &conn->pending_link);
	cep->pending_cnt++;
}

void cm_pending_remove(struct cm_conn *conn)
{
	util_list_remove(&conn->pending_link);
	conn->cep->pending_cnt--;
}

void cm_pending_expire(struct cm_conn *conn)
{
	conn->is_zombie = true;
	conn->cep->zombie_cnt++;
}

void cm_pending_put(struct cm_conn *conn)
{
	conn->cep->zombie_cnt -= conn->is_zombie;
	conn->is_zombie = false;
}

static struct cm_conn *cm_pending_of(struct util_list *link)
{
	return UTIL_CONTAINER_OF(link, struct cm_conn, pending_link);
}

/** Returns the oldest conn of the host with the most pending ones, or NULL. */
static struct cm_conn *cm_pending_oldest(struct cm_ep *cep, uint16_t cnt[CM_EP_HOSTS])
{
	struct cm_conn *oldest = NULL;
	struct util_list *it;

	memset(cnt, 0, CM_EP_HOSTS * sizeof(cnt[0]));
	for (it = cep->pending.next; it != &cep->pending; it = it->next)
		cnt[cm_pending_of(it)->pending_host]++;
	for (it = cep->pending.next; it != &cep->pending; it = it->next)
		if (!oldest || cnt[cm_pending_of(it)->pending_host] > cnt[oldest->pending_host])
			oldest = cm_pending_of(it);
	return oldest;
}

bool cm_pending_make_room(struct cm_ep *cep, const union cm_addr *addr, uint64_t now_ns)
{
	uint16_t cnt[CM_EP_HOSTS];
	struct cm_conn *oldest;
	uint64_t due_ms;

	if (cep->zombie_cnt >= CM_ZOMBIES_MAX)
		return false;
	if (cep->pending_cnt < CM_PENDING_MAX)
		return true;
	oldest = cm_pending_oldest(cep, cnt);
	due_ms = cnt[cm_ep_host(cep, addr)] + 1 < cnt[oldest->pending_host] ? CM_PENDING_MS
									    : CM_PENDING_OLD_MS;
	if (now_ns < oldest->pending_ns + due_ms * UTIL_NS_PER_MS)
		return false;
	cep->stats->pending_evicted++;
	cm_conn_end(oldest, -FI_EAGAIN,
		    "the peer did not finish the handshake while others waited");
	return true;
}
