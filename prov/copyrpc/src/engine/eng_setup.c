/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Up-calls of cm, in the control thread: handshake to transport, outcome to progress.
 *
 * The path in the connection parameters selects the transport. up, down and failed are queued.
 */
#include <rdma/fi_errno.h>

#include "engine/eng_conn.h"
#include "engine/eng_event.h"
#include "engine/eng_outage.h"
#include "engine/eng_room.h"
#include "util/clock.h"
#include "util/event.h"
#include "util/log.h"
#include "util/param.h"

/** Opens the transport's state for one address of the endpoint when it is first needed. */
static int eng_setup_ep_state(struct core_engine_ep *eep, struct eng_transport *transport,
			      uint32_t sock, void **ep_state)
{
	void **states = eng_ep_states(eep, transport);
	uint32_t at = transport->ops->by_address ? sock : 0;
	struct sockaddr_storage addr;
	int ret = 0;

	if (transport->ops->ep_open && !states[at]) {
		cm_ep_local_addr(eep->cep, at, &addr);
		ret = transport->ops->ep_open(transport, eep, (struct sockaddr *)&addr,
					      &states[at]);
	}
	*ep_state = states[at];
	return ret;
}

static void eng_setup_conn(struct eng_conn *conn, struct eng_transport *transport,
			   struct core_engine_ep *eep, struct cm_conn *cm)
{
	struct core_engine *engine = eep->engine;

	conn->engine = engine;
	conn->transport = transport;
	conn->up = engine->up;
	conn->ep = eep->ep;
	conn->eep = eep;
	conn->cm = cm;
	util_list_init(&conn->fail_link);
	pthread_mutex_lock(&engine->lock);
	util_list_push_back(&eep->conns, &conn->conn_link);
	pthread_mutex_unlock(&engine->lock);
}

static int eng_setup_prepare(void *ctx, struct cm_conn *cm, struct cm_params *params, void **user)
{
	struct core_engine_ep *eep = ctx;
	struct eng_transport *transport = eng_transport_find(eep->engine, params->path);
	struct sockaddr_storage peer;
	struct eng_conn *conn;
	void *ep_state;
	uint32_t sock;
	int ret;

	if (!transport)
		return -FI_EOPNOTSUPP;
	sock = cm_conn_route(cm, &peer);
	ret = eng_outage_enter(transport);
	if (ret)
		return ret;
	ret = eng_setup_ep_state(eep, transport, sock, &ep_state);
	if (!ret)
		ret = transport->ops->prepare(transport, eep, ep_state,
					      eng_room_size(eep->engine, cm_conn_incarnation(cm)),
					      params, &conn);
	ret = eng_outage_leave(eep, transport, ret);
	if (ret)
		return ret;
	eng_setup_conn(conn, transport, eep, cm);
	if (transport->ops->aim)
		transport->ops->aim(conn, (struct sockaddr *)&peer, params);
	*user = conn;
	return 0;
}

static int eng_setup_establish(void *ctx, struct cm_conn *cm, void *user,
			       const struct cm_params *peer)
{
	struct eng_conn *conn = user;

	return conn->transport->ops->establish(conn, peer);
}

static void eng_setup_up(void *ctx, struct cm_conn *cm, void *user, bool asked)
{
	struct core_engine_ep *eep = ctx;
	struct eng_event ev = { .kind = ENG_EVENT_UP, .eep = eep, .conn = user };

	eng_event_push(eep->engine, &ev);
}

static void eng_setup_down(void *ctx, struct cm_conn *cm, void *user, int err)
{
	struct core_engine_ep *eep = ctx;
	struct eng_event ev = { .kind = ENG_EVENT_DOWN, .eep = eep, .conn = user, .err = err };

	eng_event_push(eep->engine, &ev);
}

static uint64_t eng_setup_last_rx(void *ctx, struct cm_conn *cm, void *user)
{
	const struct eng_conn *conn = user;

	return conn->transport->ops->last_rx_ns ? conn->transport->ops->last_rx_ns(conn) : 0;
}

static bool eng_setup_has_ticks(struct core_engine *engine)
{
	for (uint32_t i = 0; i < engine->transport_cnt; i++)
		if (eng_transport_at(engine, i)->ops->tick)
			return true;
	return false;
}

/*
 * Returns true if `period_ms` have passed, or nearly so: cm's ticks are as frequent as the most
 * frequent user needs them, and not exact.
 */
static bool eng_setup_is_due(uint64_t *next_ns, int period_ms)
{
	uint64_t now_ns = util_clock_ns();

	if (!period_ms || now_ns < *next_ns)
		return false;
	*next_ns = now_ns + (uint64_t)period_ms * UTIL_NS_PER_MS * 3 / 4;
	return true;
}

static void eng_setup_tick(void *ctx)
{
	struct core_engine_ep *eep = ctx;

	if (eep->engine->up->on_watch && eng_setup_is_due(&eep->watch_ns, util_param_watch_ms()))
		eng_event_push_look(eep, ENG_EVENT_WATCH);
	if (eng_setup_has_ticks(eep->engine) &&
	    eng_setup_is_due(&eep->tick_ns, util_params.rc_interval_ms))
		eng_event_push_look(eep, ENG_EVENT_TICK);
	if ((eng_outage_is_possible(eep->engine) || eng_room_is_short(eep->engine)) &&
	    eng_setup_is_due(&eep->look_ns, ENG_OUTAGE_LOOK_MS))
		eng_event_push_look(eep, ENG_EVENT_LOOK);
	util_event_save_counters(UTIL_NS_PER_S);
}

static void eng_setup_failed(void *ctx, const struct sockaddr *addr, int err, const char *why)
{
	struct core_engine_ep *eep = ctx;
	struct eng_event ev = { .kind = ENG_EVENT_FAILED, .eep = eep, .err = err };

	UTIL_WARN(EP_CTRL, "%s\n", why);
	eng_event_set_addr(&ev, addr);
	eng_event_push(eep->engine, &ev);
}

static void eng_setup_alias(void *ctx, const struct sockaddr *addr, uint64_t incarnation)
{
	struct core_engine_ep *eep = ctx;
	struct eng_event ev = { .kind = ENG_EVENT_ALIAS, .eep = eep, .incarnation = incarnation };

	eng_event_set_addr(&ev, addr);
	eng_event_push(eep->engine, &ev);
}

const struct cm_ep_ops eng_cm_ops = {
	.prepare = eng_setup_prepare,
	.establish = eng_setup_establish,
	.up = eng_setup_up,
	.down = eng_setup_down,
	.last_rx_ns = eng_setup_last_rx,
	.tick = eng_setup_tick,
	.failed = eng_setup_failed,
	.alias = eng_setup_alias,
	.accepted = eng_connreq_accepted,
	.refused = eng_connreq_refused,
};
