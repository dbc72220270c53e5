/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_transport.h. */
#include "erpc/transport/erpc_transport.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cm/base/cm.h"
#include "dev/fault/flt.h"
#include "engine/eng_conn.h"
#include "engine/eng_engine.h"
#include "engine/eng_stats.h"
#include "erpc/erpc_progress.h"
#include "erpc/erpc_setup.h"
#include "erpc/transport/erpc_outage.h"
#include "erpc/tx/erpc_loss.h"
#include "erpc/tx/erpc_piggyback.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

#define ERPC_DRAIN_TURNS 64u
#define ERPC_MBIT_S      125000.0 /* bytes per second */

static_assert(sizeof(struct erpc_transport) <= ENG_TRANSPORT_SPACE, "fits the engine's space");
static_assert(sizeof(struct wire_erpc_params) <= CM_ENGINE_MAX, "fits the connection parameters");

/** Returns the time that the endpoints use. */
static inline uint64_t erpc_transport_now(struct erpc_transport *transport)
{
	return util_tick_ns(&transport->tick);
}

static struct erpc_session *erpc_transport_session(struct eng_conn *conn)
{
	return (struct erpc_session *)conn;
}

/* ---- device ---- */

static int erpc_transport_add_fd(struct erpc_transport *transport, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(transport->wait_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int erpc_transport_open_fds(struct erpc_transport *transport)
{
	int ret;

	transport->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	transport->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (transport->wait_fd < 0 || transport->timer_fd < 0)
		return -errno;
	ret = erpc_transport_add_fd(transport, transport->timer_fd);
	if (!ret && transport->dev)
		ret = erpc_transport_add_fd(transport,
					    transport->cfg->dev->wait_fd(transport->dev));
	return ret;
}

void erpc_transport_close(struct eng_transport *eng)
{
	struct erpc_transport *transport = erpc_transport_of(eng);

	if (transport->timer_fd >= 0)
		close(transport->timer_fd);
	if (transport->wait_fd >= 0)
		close(transport->wait_fd);
	if (transport->dev)
		transport->cfg->dev->close(transport->dev);
	transport->timer_fd = -1;
	transport->wait_fd = -1;
	transport->dev = NULL;
}

int erpc_transport_open(struct eng_transport *eng, const struct erpc_transport_dev *cfg)
{
	struct erpc_transport *transport = erpc_transport_of(eng);
	int ret = 0;

	transport->cfg = cfg;
	transport->wait_fd = -1;
	transport->timer_fd = -1;
	util_list_init(&transport->eps);
	util_tick_init(&transport->tick);
	if (cfg->dev)
		ret = cfg->dev->open(&transport->dev);
	if (!ret)
		ret = erpc_transport_open_fds(transport);
	if (ret)
		erpc_transport_close(eng);
	return ret;
}

/* ---- endpoint ---- */

/** Sets `only` after an endpoint was added to or removed from `eps`. */
static void erpc_transport_count(struct erpc_transport *transport)
{
	struct util_list *first = transport->eps.next;

	transport->only = NULL;
	if (first != &transport->eps && first == transport->eps.prev)
		transport->only = erpc_transport_ep(first);
}

static void erpc_transport_failed(struct erpc_session *s)
{
	eng_conn_fail(&s->conn, s->err);
}

/** Draws the byte that the tags of all sessions share, and lets the device drop other packets. */
static int erpc_transport_mark(struct erpc_ep_attr *attr, struct dev_dgram_attr *dg_attr)
{
	if (getrandom(&attr->mark, sizeof(attr->mark), 0) != sizeof(attr->mark))
		return -FI_EIO;
	dg_attr->match[0] =
		(struct dev_dgram_match){ WIRE_ERPC_MAGIC_AT, 0xF0, WIRE_ERPC_MAGIC << 4 };
	dg_attr->match[1] = (struct dev_dgram_match){ WIRE_ERPC_TAG_AT, 0xFF, attr->mark };
	dg_attr->match_cnt = 2;
	return 0;
}

int erpc_transport_ep_open(struct eng_transport *eng, struct core_engine_ep *eep,
			   const struct sockaddr *addr, void **out)
{
	struct erpc_transport *transport = erpc_transport_of(eng);
	const struct erpc_transport_dev *cfg = transport->cfg;
	struct dev_dgram_attr dg_attr = { .local = addr,
					  .rx_cnt = cfg->rx_cnt,
					  .tx_cnt = cfg->tx_cnt };
	struct erpc_ep_attr attr = {
		.dev = transport->dev,
		.dev_ops = cfg->dev,
		.tx_cnt = cfg->tx_cnt,
		.up = eng->engine->up,
		.link_rate = util_params.link_rate ? util_params.link_rate * ERPC_MBIT_S
						   : cfg->link_rate,
		.host_ns = cfg->host_ns,
		.eager_min = cfg->copies ? util_params.udp_eager_max : 0,
		.failed = erpc_transport_failed,
	};
	struct erpc_transport_ep *tep = calloc(1, sizeof(*tep));
	int ret;

	if (!tep)
		return -FI_ENOMEM;
	ret = erpc_transport_mark(&attr, &dg_attr);
	if (!ret)
		ret = flt_open(cfg->dgram, transport->dev, &dg_attr, &attr.dg);
	if (!ret)
		ret = erpc_ep_open(&attr, &tep->ep);
	if (ret) {
		free(tep);
		return ret;
	}
	util_list_init(&tep->link);
	tep->transport = transport;
	*out = tep;
	return 0;
}

void erpc_transport_ep_close(struct eng_transport *eng, void *ep)
{
	struct erpc_transport_ep *tep = ep;

	util_list_remove(&tep->link);
	erpc_transport_count(erpc_transport_of(eng));
	erpc_ep_close(tep->ep); /* removes its descriptor from the epoll set, too */
	free(tep);
}

/** Starts to poll an endpoint, with its first session. */
static int erpc_transport_watch(struct erpc_transport *transport, struct erpc_transport_ep *tep)
{
	struct dev_dgram *dg = tep->ep->dg;
	int ret;

	if (!util_list_is_empty(&tep->link))
		return 0;
	ret = erpc_transport_add_fd(transport, dg->ops->wait_fd(dg));
	if (ret)
		return ret;
	util_list_push_back(&transport->eps, &tep->link);
	erpc_transport_count(transport);
	return 0;
}

/* ---- connection ---- */

int erpc_transport_prepare(struct eng_transport *eng, struct core_engine_ep *eep, void *ep_state,
			   enum eng_size size, struct cm_params *params, struct eng_conn **conn)
{
	struct erpc_transport_ep *tep = ep_state;
	struct wire_erpc_params own;
	struct erpc_session *s;
	int ret = tep->ep->dg->ops->describe(tep->ep->dg, &params->dev);

	if (!ret)
		ret = erpc_session_open(tep->ep, &own, &s);
	if (ret)
		return ret;
	s->user = tep;
	s->conn.chan.ops = &erpc_chan_eng_ops;
	memcpy(params->engine, &own, sizeof(own));
	params->engine_len = sizeof(own);
	*conn = &s->conn;
	return 0;
}

void erpc_transport_aim(struct eng_conn *conn, const struct sockaddr *peer,
			struct cm_params *params)
{
	struct erpc_session *s = erpc_transport_session(conn);
	struct dev_dgram *dg = s->ep->dg;
	struct wire_erpc_params own;

	if (!dg->ops->route_mtu)
		return;
	s->mtu = dg->ops->route_mtu(dg, peer);
	memcpy(&own, params->engine, sizeof(own));
	own.mtu = s->mtu;
	memcpy(params->engine, &own, sizeof(own));
}

int erpc_transport_establish(struct eng_conn *conn, const struct cm_params *peer)
{
	struct erpc_session *s = erpc_transport_session(conn);
	struct dev_dgram *dg = s->ep->dg;
	struct wire_erpc_params params;
	struct dev_dgram_ah *ah;
	int ret;

	if (peer->engine_len != sizeof(params)) {
		UTIL_WARN(EP_CTRL,
			  "a peer sent parameters of %u bytes, expected %zu: install the same "
			  "copyrpc on both sides\n",
			  (unsigned)peer->engine_len, sizeof(params));
		return -FI_EIO;
	}
	memcpy(&params, peer->engine, sizeof(params));
	ret = dg->ops->resolve(dg, &peer->dev, &ah);
	return ret ? ret : erpc_session_connect(s, &params, ah);
}

int erpc_transport_attach(struct eng_conn *conn)
{
	struct erpc_session *s = erpc_transport_session(conn);
	struct erpc_transport_ep *tep = s->user;
	int ret = erpc_transport_watch(tep->transport, tep);

	if (ret)
		return ret;
	erpc_ep_count_in(s->ep, eng_stats_packets(conn->eep));
	erpc_session_attach(s);
	return 0;
}

uint64_t erpc_transport_last_rx(const struct eng_conn *conn)
{
	const struct erpc_session *s = (const struct erpc_session *)conn;

	return __atomic_load_n(&s->rx_ns, __ATOMIC_RELAXED);
}

void erpc_transport_drain(struct eng_conn *conn)
{
	struct erpc_session *s = erpc_transport_session(conn);
	struct erpc_transport *transport = ((struct erpc_transport_ep *)s->user)->transport;
	unsigned turns = 0;

	while (!s->err && turns++ < ERPC_DRAIN_TURNS &&
	       erpc_rx_poll(s->ep, erpc_transport_now(transport)))
		;
}

void erpc_transport_end(struct eng_conn *conn)
{
	struct erpc_session *s = erpc_transport_session(conn);

	s->err = s->err ? s->err : conn->err;
	erpc_session_end(s);
}

void erpc_transport_stop(struct eng_conn *conn)
{
	erpc_session_stop(erpc_transport_session(conn));
}

void erpc_transport_free(struct eng_conn *conn)
{
	erpc_session_close(erpc_transport_session(conn));
}

/* ---- progress ---- */

static __attribute__((noinline)) bool erpc_transport_poll_all(struct erpc_transport *transport)
{
	struct util_list *it, *tmp;
	uint64_t now_ns = 0;
	bool more = false;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->eps) {
		if (erpc_ep_is_idle(erpc_transport_ep(it)))
			continue;
		now_ns = now_ns ? now_ns : erpc_transport_now(transport);
		more |= erpc_rx_poll(erpc_transport_ep(it), now_ns);
	}
	return more;
}

/** Polls the only endpoint, the common case, or all. */
bool erpc_transport_poll(struct eng_transport *eng)
{
	struct erpc_transport *transport = erpc_transport_of(eng);
	struct erpc_ep *ep = transport->only;

	if (UTIL_UNLIKELY(!ep))
		return erpc_transport_poll_all(transport);
	return !erpc_ep_is_idle(ep) && erpc_rx_poll(ep, erpc_transport_now(transport));
}

static __attribute__((noinline)) void erpc_transport_flush_all(struct erpc_transport *transport)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->eps)
		erpc_ep_flush(erpc_transport_ep(it));
}

void erpc_transport_flush(struct eng_transport *eng)
{
	struct erpc_transport *transport = erpc_transport_of(eng);

	if (UTIL_UNLIKELY(!transport->only))
		erpc_transport_flush_all(transport);
	else
		erpc_ep_flush(transport->only);
}

void erpc_transport_progress(struct eng_transport *eng)
{
	struct erpc_transport *transport = erpc_transport_of(eng);
	struct erpc_ep *ep = transport->only;

	if (UTIL_UNLIKELY(!ep)) {
		erpc_transport_poll_all(transport);
		erpc_transport_flush_all(transport);
		return;
	}
	if (!erpc_ep_is_idle(ep))
		erpc_rx_poll(ep, erpc_transport_now(transport));
	erpc_ep_flush(ep);
}

/* ---- sleep ---- */

int erpc_transport_wait_fd(struct eng_transport *eng)
{
	return erpc_transport_of(eng)->wait_fd;
}

static void erpc_transport_set_timer(struct erpc_transport *transport, uint64_t due_ns)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(due_ns / UTIL_NS_PER_S),
					       .tv_nsec = (long)(due_ns % UTIL_NS_PER_S) } };

	timerfd_settime(transport->timer_fd, 0, &at, NULL);
}

void erpc_transport_disarm(struct eng_transport *eng)
{
	struct erpc_transport *transport = erpc_transport_of(eng);
	struct util_list *it, *tmp;

	erpc_transport_set_timer(transport, 0);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->eps) {
		struct dev_dgram *dg =
			UTIL_CONTAINER_OF(it, struct erpc_transport_ep, link)->ep->dg;

		dg->ops->disarm(dg);
	}
}

static int erpc_transport_arm_ep(struct erpc_ep *ep, uint64_t now_ns, uint64_t *due_ns)
{
	uint64_t due;
	int ret;

	if (ep->idle)
		erpc_ep_set_time(ep, now_ns);
	/* a sleeping process sends no batch that could take acks along */
	erpc_piggyback_overdue(ep, true);
	erpc_loss_forget_idle(ep);
	due = erpc_ep_due_ns(ep);
	if (!erpc_ep_is_quiet(ep) || erpc_ep_has_saved(ep) || !due)
		return -FI_EAGAIN;
	if (ep->err)
		return 0; /* nothing will arrive, and its sessions have ended */
	*due_ns = due < *due_ns ? due : *due_ns;
	ret = ep->dg->ops->arm(ep->dg);
	ep->armed = !ret;
	return ret;
}

int erpc_transport_arm(struct eng_transport *eng)
{
	struct erpc_transport *transport = erpc_transport_of(eng);
	uint64_t due_ns = UINT64_MAX, now_ns = erpc_transport_now(transport);
	struct util_list *it, *tmp;

	if (transport->dev)
		erpc_outage_health(eng); /* reads the events that wake a sleeper */
	UTIL_LIST_FOREACH_SAFE (it, tmp, &transport->eps) {
		int ret = erpc_transport_arm_ep(
			UTIL_CONTAINER_OF(it, struct erpc_transport_ep, link)->ep, now_ns, &due_ns);

		if (ret) {
			erpc_transport_disarm(eng);
			return ret;
		}
	}
	erpc_transport_set_timer(transport, due_ns == UINT64_MAX ? 0 : due_ns);
	return 0;
}
