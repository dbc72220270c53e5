/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lanes over datagrams: see erpc_lane.h. */
#include "erpc/lane/erpc_lane.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cm/cm.h"
#include "dev/fault/flt.h"
#include "engine/eng_conn.h"
#include "engine/eng_engine.h"
#include "erpc/tx/erpc_loss.h"
#include "erpc/tx/erpc_ride.h"
#include "erpc/erpc_session.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

#define ERPC_DRAIN_TURNS 64u
#define ERPC_MBIT_S      125000.0 /* bytes per second */

static_assert(sizeof(struct erpc_lane) <= ENG_LANE_ROOM, "it lives there");
static_assert(sizeof(struct wire_erpc_half) <= CM_ENGINE_MAX, "fits a half");

static struct erpc_lane *erpc_lane_of(struct eng_lane *lane)
{
	return (struct erpc_lane *)lane;
}

/** What its ports go by. */
static inline uint64_t erpc_lane_now(struct erpc_lane *lane)
{
	return util_tick_ns(&lane->tick);
}

static struct erpc_session *erpc_lane_session(struct eng_conn *conn)
{
	return (struct erpc_session *)conn;
}

/* ---- the device ---- */

static int erpc_lane_open_fds(struct erpc_lane *lane)
{
	struct epoll_event ev = { .events = EPOLLIN };

	lane->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	lane->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (lane->wait_fd < 0 || lane->timer_fd < 0 ||
	    epoll_ctl(lane->wait_fd, EPOLL_CTL_ADD, lane->timer_fd, &ev))
		return -errno;
	return 0;
}

void erpc_lane_close(struct eng_lane *eng)
{
	struct erpc_lane *lane = erpc_lane_of(eng);

	if (lane->timer_fd >= 0)
		close(lane->timer_fd);
	if (lane->wait_fd >= 0)
		close(lane->wait_fd);
	if (lane->dev)
		lane->what->dev->close(lane->dev);
}

int erpc_lane_open(struct eng_lane *eng, const struct erpc_lane_dev *what)
{
	struct erpc_lane *lane = erpc_lane_of(eng);
	int ret = flt_check(); /* now, and not with the first connection */

	lane->what = what;
	lane->wait_fd = -1;
	lane->timer_fd = -1;
	util_list_init(&lane->ports);
	util_tick_init(&lane->tick);
	if (!ret && what->dev)
		ret = what->dev->open(&lane->dev);
	if (!ret)
		ret = erpc_lane_open_fds(lane);
	if (ret)
		erpc_lane_close(eng);
	return ret;
}

/* ---- an endpoint's port ---- */

static inline struct erpc_port *erpc_lane_port(struct util_list *link)
{
	return UTIL_CONTAINER_OF(link, struct erpc_lane_port, link)->port;
}

/** A port is polled, or one is no more. */
static void erpc_lane_count(struct erpc_lane *lane)
{
	struct util_list *first = lane->ports.next;

	lane->only = NULL;
	if (first != &lane->ports && first == lane->ports.prev)
		lane->only = erpc_lane_port(first);
}

static void erpc_lane_failed(struct erpc_session *s)
{
	eng_conn_fail(&s->conn, s->err);
}

int erpc_lane_ep_open(struct eng_lane *eng, struct core_engine_ep *eep, const struct sockaddr *addr,
		      void **out)
{
	struct erpc_lane *lane = erpc_lane_of(eng);
	const struct erpc_lane_dev *what = lane->what;
	struct dev_dgram_attr dg_attr = { .local = addr,
					  .rx_cnt = what->rx_cnt,
					  .tx_cnt = what->tx_cnt };
	struct erpc_port_attr attr = {
		.dev = lane->dev,
		.dev_ops = what->dev,
		.tx_cnt = what->tx_cnt,
		.up = eng->engine->up,
		.link_rate = util_params.link_rate ? util_params.link_rate * ERPC_MBIT_S
						   : what->link_rate,
		.host_ns = what->host_ns,
		.failed = erpc_lane_failed,
	};
	struct erpc_lane_port *lp = calloc(1, sizeof(*lp));
	int ret;

	(void)eep;
	if (!lp)
		return -FI_ENOMEM;
	ret = flt_open(what->dgram, lane->dev, &dg_attr, &attr.dg);
	if (!ret)
		ret = erpc_port_open(&attr, &lp->port);
	if (ret) {
		free(lp);
		return ret;
	}
	util_list_init(&lp->link);
	lp->lane = lane;
	*out = lp;
	return 0;
}

void erpc_lane_ep_close(struct eng_lane *eng, void *port)
{
	struct erpc_lane_port *lp = port;

	util_list_remove(&lp->link);
	erpc_lane_count(erpc_lane_of(eng));
	erpc_port_close(lp->port); /* its descriptor leaves the epoll set with it */
	free(lp);
}

/** From its first session on a port is polled. */
static int erpc_lane_watch(struct erpc_lane *lane, struct erpc_lane_port *lp)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct dev_dgram *dg = lp->port->dg;

	if (!util_list_is_empty(&lp->link))
		return 0;
	if (epoll_ctl(lane->wait_fd, EPOLL_CTL_ADD, dg->ops->wait_fd(dg), &ev))
		return -errno;
	util_list_push_back(&lane->ports, &lp->link);
	erpc_lane_count(lane);
	return 0;
}

/* ---- a connection ---- */

int erpc_lane_prepare(struct eng_lane *eng, struct core_engine_ep *eep, struct cm_half *half,
		      struct eng_conn **conn)
{
	struct erpc_lane_port *lp = eng_port(eep, eng);
	struct wire_erpc_half own;
	struct erpc_session *s;
	int ret = lp->port->dg->ops->describe(lp->port->dg, &half->dev);

	if (!ret)
		ret = erpc_session_open(lp->port, &own, &s);
	if (ret)
		return ret;
	s->user = lp;
	s->conn.chan.ops = &erpc_chan_eng_ops;
	memcpy(half->engine, &own, sizeof(own));
	half->engine_len = sizeof(own);
	*conn = &s->conn;
	return 0;
}

void erpc_lane_aim(struct eng_conn *conn, const struct sockaddr *peer, struct cm_half *half)
{
	struct erpc_session *s = erpc_lane_session(conn);
	struct dev_dgram *dg = s->port->dg;
	struct wire_erpc_half own;

	if (!dg->ops->route_mtu)
		return;
	s->mtu = dg->ops->route_mtu(dg, peer);
	memcpy(&own, half->engine, sizeof(own));
	own.mtu = s->mtu;
	memcpy(half->engine, &own, sizeof(own));
}

int erpc_lane_establish(struct eng_conn *conn, const struct cm_half *peer)
{
	struct erpc_session *s = erpc_lane_session(conn);
	struct dev_dgram *dg = s->port->dg;
	struct wire_erpc_half half;
	struct dev_dgram_ah *ah;
	int ret;

	if (peer->engine_len != sizeof(half)) {
		UTIL_WARN(EP_CTRL,
			  "a peer says %u bytes of itself where %zu are expected: install the same "
			  "copyrpc on both sides\n",
			  (unsigned)peer->engine_len, sizeof(half));
		return -FI_EIO;
	}
	memcpy(&half, peer->engine, sizeof(half));
	ret = dg->ops->resolve(dg, &peer->dev, &ah);
	return ret ? ret : erpc_session_connect(s, &half, ah);
}

int erpc_lane_attach(struct eng_conn *conn)
{
	struct erpc_session *s = erpc_lane_session(conn);
	struct erpc_lane_port *lp = s->user;
	int ret = erpc_lane_watch(lp->lane, lp);

	if (!ret)
		erpc_session_attach(s);
	return ret;
}

uint64_t erpc_lane_heard(const struct eng_conn *conn)
{
	const struct erpc_session *s = (const struct erpc_session *)conn;

	return __atomic_load_n(&s->rx_ns, __ATOMIC_RELAXED);
}

void erpc_lane_drain(struct eng_conn *conn)
{
	struct erpc_session *s = erpc_lane_session(conn);
	struct erpc_lane *lane = ((struct erpc_lane_port *)s->user)->lane;
	unsigned turns = 0;

	while (!s->err && turns++ < ERPC_DRAIN_TURNS &&
	       erpc_port_poll(s->port, erpc_lane_now(lane)))
		;
}

void erpc_lane_end(struct eng_conn *conn)
{
	struct erpc_session *s = erpc_lane_session(conn);

	s->err = s->err ? s->err : conn->err;
	erpc_session_end(s);
}

void erpc_lane_stop(struct eng_conn *conn)
{
	erpc_session_stop(erpc_lane_session(conn));
}

void erpc_lane_free(struct eng_conn *conn)
{
	erpc_session_close(erpc_lane_session(conn));
}

/* ---- the loop ---- */

static __attribute__((noinline)) bool erpc_lane_poll_all(struct erpc_lane *lane)
{
	struct util_list *it, *tmp;
	uint64_t now_ns = 0;
	bool more = false;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &lane->ports) {
		if (erpc_port_is_idle(erpc_lane_port(it)))
			continue;
		now_ns = now_ns ? now_ns : erpc_lane_now(lane);
		more |= erpc_port_poll(erpc_lane_port(it), now_ns);
	}
	return more;
}

/** Most lanes have one port. */
bool erpc_lane_poll(struct eng_lane *eng)
{
	struct erpc_lane *lane = erpc_lane_of(eng);
	struct erpc_port *port = lane->only;

	if (UTIL_UNLIKELY(!port))
		return erpc_lane_poll_all(lane);
	return !erpc_port_is_idle(port) && erpc_port_poll(port, erpc_lane_now(lane));
}

static __attribute__((noinline)) void erpc_lane_flush_all(struct erpc_lane *lane)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &lane->ports)
		erpc_port_flush(erpc_lane_port(it));
}

void erpc_lane_flush(struct eng_lane *eng)
{
	struct erpc_lane *lane = erpc_lane_of(eng);

	if (UTIL_UNLIKELY(!lane->only))
		erpc_lane_flush_all(lane);
	else
		erpc_port_flush(lane->only);
}

void erpc_lane_progress(struct eng_lane *eng)
{
	struct erpc_lane *lane = erpc_lane_of(eng);
	struct erpc_port *port = lane->only;

	if (UTIL_UNLIKELY(!port)) {
		erpc_lane_poll_all(lane);
		erpc_lane_flush_all(lane);
		return;
	}
	if (!erpc_port_is_idle(port))
		erpc_port_poll(port, erpc_lane_now(lane));
	erpc_port_flush(port);
}

/* ---- sleep ---- */

int erpc_lane_wait_fd(struct eng_lane *eng)
{
	return erpc_lane_of(eng)->wait_fd;
}

static void erpc_lane_set_timer(struct erpc_lane *lane, uint64_t due_ns)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(due_ns / UTIL_NS_PER_S),
					       .tv_nsec = (long)(due_ns % UTIL_NS_PER_S) } };

	timerfd_settime(lane->timer_fd, 0, &at, NULL);
}

void erpc_lane_disarm(struct eng_lane *eng)
{
	struct erpc_lane *lane = erpc_lane_of(eng);
	struct util_list *it, *tmp;

	erpc_lane_set_timer(lane, 0);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &lane->ports) {
		struct dev_dgram *dg = UTIL_CONTAINER_OF(it, struct erpc_lane_port, link)->port->dg;

		dg->ops->disarm(dg);
	}
}

static int erpc_lane_arm_port(struct erpc_port *port, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t due;
	int ret;

	if (port->idle)
		erpc_port_tell_time(port, now_ns);
	erpc_ride_overdue(port, true); /* who sleeps says nothing that could take them along */
	erpc_loss_forget_idle(port);
	due = erpc_port_due_ns(port);
	if (!erpc_port_is_quiet(port) || erpc_port_has_saved(port) || !due)
		return -FI_EAGAIN;
	*due_ns = due < *due_ns ? due : *due_ns;
	ret = port->dg->ops->arm(port->dg);
	port->armed = !ret;
	return ret;
}

int erpc_lane_arm(struct eng_lane *eng)
{
	struct erpc_lane *lane = erpc_lane_of(eng);
	uint64_t due_ns = UINT64_MAX, now_ns = erpc_lane_now(lane);
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &lane->ports) {
		int ret = erpc_lane_arm_port(
			UTIL_CONTAINER_OF(it, struct erpc_lane_port, link)->port, now_ns, &due_ns);

		if (ret) {
			erpc_lane_disarm(eng);
			return ret;
		}
	}
	erpc_lane_set_timer(lane, due_ns == UINT64_MAX ? 0 : due_ns);
	return 0;
}
