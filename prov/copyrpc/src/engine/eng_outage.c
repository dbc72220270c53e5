/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Outages of devices: see eng_outage.h. */
#include "engine/eng_outage.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include "engine/eng_conn.h"
#include "engine/eng_event.h"
#include "engine/eng_room.h"
#include "engine/eng_stats.h"
#include "util/clock.h"
#include "util/log.h"

/* A handshake that began in an outage ends within this time after it. */
#define ENG_OUTAGE_RECENT_NS (2 * UTIL_NS_PER_S)
#define ENG_OUTAGE_PAUSE_NS  (500 * UTIL_NS_PER_MS) /* between attempts to open a device */

bool eng_outage_is_possible(struct core_engine *engine)
{
	for (uint32_t i = 0; i < engine->transport_cnt; i++)
		if (eng_transport_at(engine, i)->ops->health)
			return true;
	return false;
}

static uint32_t eng_outage_paths(struct core_engine *engine)
{
	uint32_t paths = 0;

	for (uint32_t i = 0; i < engine->transport_cnt; i++)
		if (eng_transport_at(engine, i)->outage)
			paths |= eng_transport_at(engine, i)->ops->path;
	return paths;
}

/** Returns the paths that are out, or were when a handshake began that has just ended. */
static uint32_t eng_outage_recent(struct core_engine *engine)
{
	uint32_t paths = eng_outage_paths(engine);
	uint64_t now_ns = util_clock_ns();

	for (uint32_t i = 0; i < engine->transport_cnt; i++) {
		const struct eng_transport *transport = eng_transport_at(engine, i);

		if (transport->back_ns && now_ns - transport->back_ns < ENG_OUTAGE_RECENT_NS)
			paths |= transport->ops->path;
	}
	return paths;
}

static void eng_outage_note(struct eng_conn *conn, uint32_t paths)
{
	conn->engine->detour_cnt += paths && !conn->out_paths;
	conn->out_paths |= (uint8_t)paths;
}

void eng_outage_on_up(struct eng_conn *conn)
{
	eng_outage_note(conn, eng_outage_recent(conn->engine) & (conn->transport->ops->path - 1));
}

void eng_outage_lacks(struct eng_conn *conn)
{
	conn->transport->lacked = true;
	eng_outage_note(conn, conn->transport->ops->path);
}

void eng_outage_tell(struct core_engine_ep *eep)
{
	cm_ep_set_down(eep->cep, eng_outage_paths(eep->engine));
}

static void eng_outage_tell_all(struct core_engine *engine)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &engine->eeps)
		eng_outage_tell(UTIL_CONTAINER_OF(it, struct core_engine_ep, link));
}

/* Stops to watch the device: a copy of its descriptor in a child keeps it in the set otherwise. */
static void eng_outage_unwatch(struct eng_transport *transport)
{
	if (!eng_outage_is_closed(transport))
		epoll_ctl(transport->engine->base.wait_fd, EPOLL_CTL_DEL,
			  transport->ops->wait_fd(transport), NULL);
}

static bool eng_outage_is_unused(struct eng_transport *transport)
{
	return transport->ops->is_unused ? transport->ops->is_unused(transport)
					 : !transport->user_cnt;
}

/** Closes what endpoints have on the device. The next connection of each makes it anew. */
static void eng_outage_close_states(struct eng_transport *transport)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->engine->eeps)
		eng_ep_states_close(UTIL_CONTAINER_OF(it, struct core_engine_ep, link), transport);
}

/** Closes the device and opens it again. device_lock is held. Returns the transport's new state. */
static int eng_outage_reopen(struct eng_transport *transport)
{
	struct epoll_event ev = { .events = EPOLLIN };
	uint64_t now_ns = util_clock_ns();

	if (!eng_outage_is_unused(transport) || now_ns < transport->reopen_ns)
		return transport->outage;
	transport->reopen_ns = now_ns + ENG_OUTAGE_PAUSE_NS;
	if (transport->ops->is_unused)
		return transport->ops->reopen(transport) ? -FI_ENODEV : 0;
	eng_outage_close_states(transport);
	eng_outage_unwatch(transport);
	if (transport->ops->reopen(transport))
		return -FI_ENODEV;
	if (!epoll_ctl(transport->engine->base.wait_fd, EPOLL_CTL_ADD,
		       transport->ops->wait_fd(transport), &ev))
		return 0;
	UTIL_WARN(DOMAIN, "device %s cannot be waited for: %s\n", transport->ops->name,
		  fi_strerror(errno));
	transport->ops->close(transport);
	return -FI_ENODEV;
}

static void eng_outage_changed(struct eng_transport *transport, int before)
{
	uint64_t now_ns = util_clock_ns();

	if (!before)
		transport->outage_ns = now_ns;
	if (transport->outage && !before)
		UTIL_WARN(EP_CTRL,
			  "device %s is out (%s): connections take other paths if there are any, "
			  "or wait until it is back\n",
			  transport->ops->name, fi_strerror(-transport->outage));
	if (!transport->outage) {
		UTIL_WARN(EP_CTRL, "device %s is back after %llu ms: connections return to it\n",
			  transport->ops->name,
			  (unsigned long long)((now_ns - transport->outage_ns) / UTIL_NS_PER_MS));
		transport->back_ns = now_ns;
	}
	eng_stats_outage(transport, before, now_ns - transport->outage_ns);
	eng_outage_tell_all(transport->engine);
}

static void eng_outage_look_at(struct eng_transport *transport)
{
	struct core_engine *engine = transport->engine;
	int before = transport->outage, now;

	pthread_mutex_lock(&engine->device_lock);
	now = eng_outage_is_closed(transport) ? before : transport->ops->health(transport);
	transport->outage = now;
	if (now == -FI_EIO || now == -FI_ENODEV)
		transport->outage = eng_outage_reopen(transport);
	now = transport->outage;
	pthread_mutex_unlock(&engine->device_lock);
	if (now != before)
		eng_outage_changed(transport, before);
}

/** Returns true if a device is in use again after an outage, or may be. */
static bool eng_outage_is_over(struct core_engine *engine)
{
	for (uint32_t i = 0; i < engine->transport_cnt; i++) {
		const struct eng_transport *transport = eng_transport_at(engine, i);

		if ((transport->back_ns || transport->lacked) && !transport->outage)
			return true;
	}
	return false;
}

/**
 * Lets connections be replaced, a bounded number a second, if better ones may be had: other paths
 * or devices, or rings of another size.
 */
static void eng_outage_improve_all(struct core_engine *engine)
{
	uint64_t now_ns = util_clock_ns();
	struct util_list *it, *tmp;

	if (!engine->up->on_regained ||
	    now_ns - engine->offer_ns < ENG_OUTAGE_LOOK_MS * UTIL_NS_PER_MS / 2 ||
	    (!(engine->detour_cnt && eng_outage_is_over(engine)) && !eng_room_is_due(engine)))
		return;
	engine->offer_ns = now_ns;
	UTIL_LIST_FOREACH_SAFE (it, tmp, &engine->eeps)
		engine->up->on_regained(UTIL_CONTAINER_OF(it, struct core_engine_ep, link)->ep);
}

void eng_outage_look(struct core_engine *engine)
{
	__atomic_store_n(&engine->has_outage, false, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < engine->transport_cnt; i++)
		if (eng_transport_at(engine, i)->ops->health)
			eng_outage_look_at(eng_transport_at(engine, i));
	/* Not to false: the control thread may have set it meanwhile. */
	if (eng_outage_paths(engine))
		__atomic_store_n(&engine->has_outage, true, __ATOMIC_RELAXED);
	eng_outage_improve_all(engine);
}

static uint32_t eng_outage_better(const struct eng_conn *conn, bool regained)
{
	const struct eng_transport_ops *ops = conn->transport->ops;
	uint32_t paths = ops->path - 1;

	if (ops->improves && ops->improves(conn))
		paths |= ops->path;
	if (regained)
		paths &= conn->out_paths & ~eng_outage_paths(conn->engine);
	return paths ? cm_conn_better(conn->cm, paths) : 0;
}

uint32_t eng_chan_better(struct core_chan *chan, bool regained)
{
	struct eng_conn *conn = eng_conn_of(chan);

	if (conn->err || !conn->cm)
		return 0;
	return eng_outage_better(conn, regained) | eng_room_reasons(conn, regained);
}

int eng_outage_enter(struct eng_transport *transport)
{
	pthread_mutex_lock(&transport->engine->device_lock);
	if (transport->outage != -FI_EIO && !eng_outage_is_closed(transport))
		return 0;
	pthread_mutex_unlock(&transport->engine->device_lock);
	return -FI_ENODEV;
}

int eng_outage_leave(struct core_engine_ep *eep, struct eng_transport *transport, int ret)
{
	bool is_doubtful = ret == -FI_EIO && transport->ops->health && !transport->refused;

	transport->user_cnt += !ret;
	transport->refused = ret == -FI_EIO;
	pthread_mutex_unlock(&transport->engine->device_lock);
	if (!is_doubtful)
		return ret;
	__atomic_store_n(&eep->engine->has_outage, true, __ATOMIC_RELAXED);
	eng_event_push_look(eep, ENG_EVENT_LOOK);
	return -FI_ENODEV;
}

void eng_outage_put(struct eng_transport *transport)
{
	pthread_mutex_lock(&transport->engine->device_lock);
	transport->user_cnt--;
	pthread_mutex_unlock(&transport->engine->device_lock);
}
