/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests for connections: probing, retries, time-out. See cm_req.h. */
#include "cm/conn/cm_req.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cm/conn/cm_attempt.h"
#include "cm/conn/cm_conn.h"
#include "cm/conn/cm_req_route.h"
#include "cm/conn/cm_udp.h"
#include "cm/ep/cm_ep.h"
#include "util/clock.h"
#include "util/event.h"
#include "util/log.h"
#include "util/param.h"

static const uint8_t cm_req_next[CM_REQ_STATE_CNT] = {
	[CM_REQ_QUEUED] = CM_STATE_BIT(CM_REQ_PROBE) | CM_STATE_BIT(CM_REQ_ATTEMPT),
	[CM_REQ_PROBE] = CM_STATE_BIT(CM_REQ_ATTEMPT) | CM_STATE_BIT(CM_REQ_PAUSE),
	[CM_REQ_ATTEMPT] = CM_STATE_BIT(CM_REQ_PAUSE),
	[CM_REQ_PAUSE] = CM_STATE_BIT(CM_REQ_PROBE) | CM_STATE_BIT(CM_REQ_ATTEMPT),
	[CM_REQ_DONE] = CM_STATE_BIT(CM_REQ_PAUSE),
};

static const char *const cm_req_names[CM_REQ_STATE_CNT] = {
	[CM_REQ_QUEUED] = "queued", [CM_REQ_PROBE] = "probe", [CM_REQ_ATTEMPT] = "attempt",
	[CM_REQ_PAUSE] = "pause",   [CM_REQ_DONE] = "done",
};

const struct cm_states cm_req_states = { CM_REQ_STATE_CNT, cm_req_names, cm_req_next };

static void cm_req_set_state(struct cm_req *req, enum cm_req_state state)
{
	assert(cm_state_may(&cm_req_states, req->state, state));
	UTIL_DBG(EP_CTRL, "request %p: %s -> %s\n", (void *)req, cm_req_names[req->state],
		 cm_req_names[state]);
	req->state = state;
}

uint64_t cm_req_backoff_ns(uint32_t cnt)
{
	uint64_t ms = cnt < 6 ? CM_REQ_RETRY_MS << cnt : CM_REQ_RETRY_MAX;
	uint64_t us = 1000 * (ms < CM_REQ_RETRY_MAX ? ms : CM_REQ_RETRY_MAX);

	return 1000 * (us / 2 + cm_mac_random_below((uint32_t)us));
}

static void cm_req_arm(struct cm_req *req, uint64_t delay_ns)
{
	uint64_t at_ns = util_clock_ns() + delay_ns;

	if (req->deadline_ns && at_ns > req->deadline_ns)
		at_ns = req->deadline_ns;
	cm_node_arm(req->peer->cep->node, &req->timer, at_ns);
}

static void cm_req_send(struct cm_req *req)
{
	const struct cm_route *via = &req->routes[req->route_at];
	struct cm_ep *cep = req->peer->cep;
	bool is_first = req->route_cnt > 1 && !req->has_tried_all;
	int ret;

	cep->stats->tx_reqs++;
	cm_req_arm(req, cm_req_backoff_ns(is_first ? req->route_tries : req->try_cnt));
	req->try_cnt++;
	req->route_tries++;
	ret = cm_udp_send_req(cep, via, req->peer->node_cnt > 1 ? &req->name : NULL, req->nonce);
	if (ret)
		cm_req_on_unreachable(req->peer, &via->to, req->nonce, ret);
}

static void cm_req_probe(struct cm_req *req)
{
	cm_req_set_state(req, CM_REQ_PROBE);
	req->nonce = cm_mac_random();
	req->try_cnt = 0;
	req->routes_wrong = 0;
	cm_req_route_find(req);
	cm_req_send(req);
}

/* Starts the peer timeout of a request when it gets its slot. */
static void cm_req_start_clock(struct cm_req *req)
{
	if (req->deadline_ns)
		return;
	req->start_ns = util_clock_ns();
	req->deadline_ns = req->start_ns + req->peer->cep->node->peer_timeout_ns;
}

static void cm_req_next_in_queue(struct cm_ep *cep)
{
	struct util_list *first;
	struct cm_req *req;

	while (cep->req_slot_cnt < CM_REQ_SLOTS && (first = util_list_pop(&cep->req_queue))) {
		req = UTIL_CONTAINER_OF(first, struct cm_req, queue_link);
		cep->req_slot_cnt++;
		req->has_slot = true;
		cm_req_start_clock(req);
		cm_req_probe(req);
	}
}

static void cm_req_drop_slot(struct cm_req *req)
{
	if (!req->has_slot)
		return;
	req->has_slot = false;
	req->peer->cep->req_slot_cnt--;
	cm_req_next_in_queue(req->peer->cep);
}

static void cm_req_close(struct cm_req *req)
{
	req->peer->req = NULL;
	util_list_remove(&req->queue_link);
	cm_node_disarm(req->peer->cep->node, &req->timer);
	cm_req_drop_slot(req);
	free(req);
}

/* Returns what is wrong with an address that only its own host can reach, or "". */
static const char *cm_req_loopback(const struct cm_peer *peer)
{
	return cm_addr_is_loopback(&peer->addr) && !cm_addr_is_loopback(&peer->cep->addr)
		       ? " (a loopback address: if that process runs on another host, set "
			 "FI_COPYRPC_IFACE there)"
		       : "";
}

void cm_req_fail(struct cm_peer *peer, int err, const char *fmt, ...)
{
	struct cm_ep *cep = peer->cep;
	char addr[CM_ADDR_TEXT_MAX], why[2 * CM_WHY_MAX];
	union cm_addr name;
	va_list args;
	int len;

	len = snprintf(why, sizeof(why), "no connection to %s", cm_addr_print(&peer->addr, addr));
	for (uint32_t i = 1; i < peer->node_cnt; i++)
		len += snprintf(why + len, sizeof(why) - (size_t)len, " or %s",
				cm_addr_print(&peer->nodes[i].addr, addr));
	len += snprintf(why + len, sizeof(why) - (size_t)len, "%s: ", cm_req_loopback(peer));
	va_start(args, fmt);
	vsnprintf(why + len, sizeof(why) - (size_t)len, fmt, args);
	va_end(args);
	name = peer->req->name;
	cm_req_close(peer->req);
	if (cep->on_result)
		cep->on_result(cep, err);
	cep->ops->failed(cep->ctx, &name.sa, err, why);
}

static double cm_req_timeout_s(const struct cm_req *req)
{
	return (double)req->peer->cep->node->peer_timeout_ns / 1e9;
}

static void cm_req_fail_silent(struct cm_req *req)
{
	const char *ports = util_params.ports;

	cm_req_fail(
		req->peer, -FI_ETIMEDOUT,
		"no reply for %.1f s (FI_COPYRPC_PEER_TIMEOUT); check that the process runs, that "
		"FI_COPYRPC_JOB_KEY is the same in both, and that no firewall of the two hosts "
		"drops UDP to these ports (FI_COPYRPC_PORTS=%s%s)",
		cm_req_timeout_s(req), ports ? ports : "50000-50999",
		ports ? "" : " would limit them to a range to open");
}

static void cm_req_fail_unreachable(struct cm_req *req)
{
	char here[CM_ADDR_TEXT_MAX];

	if (req->refused_err == -FI_ECONNREFUSED && req->was_up)
		cm_req_fail(req->peer, -FI_ECONNREFUSED,
			    "no process at this address; it has ended");
	else if (req->refused_err == -FI_ECONNREFUSED)
		cm_req_fail(req->peer, -FI_ECONNREFUSED,
			    "no process at this address for %.1f s (FI_COPYRPC_PEER_TIMEOUT); it "
			    "has ended, is not started yet, or the address is out of date",
			    cm_req_timeout_s(req));
	else
		cm_req_fail(req->peer, -FI_EHOSTUNREACH,
			    "there is no route from %s (%s); check `ip route get`",
			    cm_addr_print(&req->peer->cep->addr, here),
			    fi_strerror(-req->refused_err));
}

/* Reports once that the request waits for a process that may start late. */
static void cm_req_expect(struct cm_req *req)
{
	char addr[CM_ADDR_TEXT_MAX];

	if (req->is_expected)
		return;
	req->is_expected = true;
	UTIL_INFO(EP_CTRL, "no process at %s yet; waiting up to %.1f s for it to start\n",
		  cm_addr_print(&req->peer->addr, addr), cm_req_timeout_s(req));
}

/* Returns whether the network refuses each route, or it leads to another process. */
static bool cm_req_is_refused(const struct cm_req *req)
{
	uint32_t all = (1u << req->route_cnt) - 1;

	return req->refused_cnt && (req->routes_refused | req->routes_wrong) == all;
}

/* Returns true if the refusals of the address end the request before its deadline. */
static bool cm_req_grace_is_over(struct cm_req *req, uint64_t now_ns)
{
	if (req->refused_cnt < CM_REQ_GRACE_TRIES || !cm_req_is_refused(req) ||
	    now_ns - req->start_ns < CM_REQ_GRACE_MS * UTIL_NS_PER_MS)
		return false;
	if (req->was_up || req->refused_err != -FI_ECONNREFUSED)
		return true;
	cm_req_expect(req);
	return false;
}

/* Ends a request that is past its deadline, with an up-call. Returns whether it ended. */
static bool cm_req_expire(struct cm_req *req, uint64_t now_ns)
{
	struct cm_peer *peer = req->peer;

	if (cm_req_grace_is_over(req, now_ns) ||
	    (now_ns >= req->deadline_ns && cm_req_is_refused(req)))
		cm_req_fail_unreachable(req);
	else if (now_ns < req->deadline_ns)
		return false;
	else if (req->err)
		cm_req_fail(peer, req->err, "%s", req->why);
	else
		cm_req_fail_silent(req);
	cm_peer_settle(peer);
	return true;
}

static void cm_req_on_timer(struct cm_timer *timer)
{
	struct cm_req *req = UTIL_CONTAINER_OF(timer, struct cm_req, timer);
	struct cm_peer *peer = req->peer;
	struct cm_ep *cep = peer->cep;

	if (req->state == CM_REQ_DONE) {
		cm_req_close(req);
		cep->ops->up(cep->ctx, peer->conn, peer->conn->user, true);
		return;
	}
	if (cm_req_expire(req, util_clock_ns()))
		return;
	if (req->state == CM_REQ_PAUSE) {
		cm_req_probe(req);
		return;
	}
	req->err = 0; /* the peer no longer replies: report that instead */
	cm_req_route_choose(req);
	cm_req_send(req);
	if (req->try_cnt > CM_REQ_PARK_TRIES)
		cm_req_drop_slot(req);
}

int cm_req_open(struct cm_peer *peer, const union cm_addr *name, bool was_up)
{
	struct cm_ep *cep = peer->cep;
	struct cm_req *req = calloc(1, sizeof(*req));

	if (!req)
		return -FI_ENOMEM;
	req->peer = peer;
	req->name = *name;
	req->was_up = was_up;
	cm_timer_init(&req->timer, cm_req_on_timer);
	util_list_init(&req->queue_link);
	peer->req = req;
	if (!peer->conn) {
		req->state = CM_REQ_QUEUED;
		util_list_push_back(&cep->req_queue, &req->queue_link);
		cm_req_next_in_queue(cep);
		return 0;
	}
	cm_req_start_clock(req);
	req->state = peer->conn->state == CM_CONN_UP ? CM_REQ_DONE : CM_REQ_ATTEMPT;
	if (req->state == CM_REQ_DONE)
		cm_node_arm(cep->node, &req->timer, 0);
	return 0;
}

void cm_req_cancel(struct cm_peer *peer)
{
	if (peer->req)
		cm_req_close(peer->req);
}

void cm_req_await_conn(struct cm_peer *peer)
{
	struct cm_req *req = peer->req;

	if (!req || req->state == CM_REQ_ATTEMPT)
		return;
	util_list_remove(&req->queue_link);
	cm_node_disarm(peer->cep->node, &req->timer);
	cm_req_start_clock(req);
	req->nonce = 0;
	cm_req_set_state(req, CM_REQ_ATTEMPT);
}

static void cm_req_pause(struct cm_req *req, uint64_t delay_ns)
{
	cm_req_set_state(req, CM_REQ_PAUSE);
	req->nonce = 0;
	cm_req_arm(req, delay_ns);
}

void cm_req_retry(struct cm_peer *peer, int err, const char *why)
{
	struct cm_req *req = peer->req;

	if (req->state == CM_REQ_PAUSE)
		return;
	req->err = err;
	snprintf(req->why, sizeof(req->why), "%s", why);
	cm_req_pause(req, cm_req_backoff_ns(req->pause_cnt++));
}

void cm_req_yield(struct cm_peer *peer)
{
	if (peer->req)
		cm_req_pause(peer->req, CM_REQ_CROSSED_MS * UTIL_NS_PER_MS + cm_req_backoff_ns(0));
}

void cm_req_alias(struct cm_peer *peer, uint64_t peer_inc)
{
	struct cm_ep *cep = peer->cep;
	char text[CM_ADDR_TEXT_MAX];
	union cm_addr name;

	if (!peer->req)
		return;
	name = peer->req->name;
	cm_req_close(peer->req);
	UTIL_INFO(EP_CTRL, "%s is another address of the connected peer with incarnation %016llx\n",
		  cm_addr_print(&name, text), (unsigned long long)peer_inc);
	cep->ops->alias(cep->ctx, &name.sa, peer_inc);
}

uint32_t cm_req_path(const struct cm_peer *peer)
{
	const struct cm_paths *paths = &peer->cep->paths;
	uint32_t left = peer->req->common & ~peer->req->avoided;

	for (uint32_t i = 0; i < CM_PATHS_MAX; i++)
		if (paths->best[i] & left)
			return paths->best[i] & left;
	return left & -left;
}

bool cm_req_avoid(struct cm_peer *peer, uint32_t path, int err)
{
	struct cm_req *req = peer->req;

	if (!(req->common & ~req->avoided & ~path))
		return false;
	req->avoided |= path;
	util_event(COPYRPC_STATS_PATH_FAILED, &peer->addr.sa, path, (uint64_t)-err);
	return true;
}

bool cm_req_complete(struct cm_peer *peer)
{
	if (!peer->req)
		return false;
	cm_req_close(peer->req);
	return true;
}

bool cm_req_is_temporary(int err)
{
	return err == -FI_EAGAIN || err == -FI_EMFILE || err == -ENFILE || err == -FI_ENOBUFS ||
	       err == -FI_ENODEV; /* a device that failed, and may come back */
}

const char *cm_req_hint(uint32_t path, int err)
{
	if (err == -FI_EMFILE)
		return "; raise `ulimit -n`";
	if ((err == -FI_ENOMEM || err == -FI_ENOSPC) && path & CM_PATHS_RINGS)
		return "; lower FI_COPYRPC_RING_SIZE, or set FI_COPYRPC_MEM to the memory that "
		       "the process may use";
	return "";
}

void cm_req_refused(struct cm_peer *peer, uint32_t path, const struct wire_cm_pkt *nak)
{
	int err = -(int)nak->nak.err;
	char why[CM_WHY_MAX];

	if (!peer->req)
		return;
	/* A refusal for the wrong user holds for every path. */
	if (err == -FI_EACCES || (!cm_req_is_temporary(err) && !cm_req_avoid(peer, path, err))) {
		cm_req_fail(peer, err, "refused by the peer: %s (%s)%s", nak->nak.text,
			    fi_strerror(-err), cm_req_hint(path, err));
		return;
	}
	snprintf(why, sizeof(why), "refused by the peer until the timeout: %s (%s)", nak->nak.text,
		 fi_strerror(-err));
	cm_req_retry(peer, err, why);
}

/* Returns whether the request waits for a reply with this nonce. */
static bool cm_req_expects(struct cm_peer *peer, uint64_t nonce)
{
	return peer->req && peer->req->state == CM_REQ_PROBE && peer->req->nonce == nonce;
}

/* Goes on with the next address: this one leads to the wrong process. */
static void cm_req_is_wrong(struct cm_peer *peer, const struct cm_route *via)
{
	struct cm_req *req = peer->req;
	uint32_t at = cm_req_route_via(req, via);

	if (at == req->route_cnt) {
		peer->cep->stats->rx_stale++;
		return;
	}
	req->routes_wrong |= 1u << at;
	if (req->routes_wrong == (1u << req->route_cnt) - 1) {
		cm_req_retry(peer, -FI_EHOSTUNREACH,
			     "other processes reply at all of its addresses that can be reached");
		return;
	}
	if (at != req->route_at)
		return;
	cm_req_route_next(req);
	cm_req_arm(req, 0);
}

void cm_req_on_ack(struct cm_peer *peer, const struct cm_route *via, const struct wire_cm_pkt *pkt)
{
	struct cm_req *req = peer->req;

	if (!cm_req_expects(peer, pkt->nonce)) {
		peer->cep->stats->rx_stale++;
		return;
	}
	/* The peer would take this process for another one, at the address that it sees. */
	if (via->sock && !(pkt->features & WIRE_CM_FEATURE_NAME)) {
		cm_req_is_wrong(peer, via);
		return;
	}
	req->refused_cnt = 0;
	req->was_up = true;
	peer->via = *via;
	cm_attempt_start(peer, pkt);
	cm_peer_settle(peer);
}

void cm_req_on_nak(struct cm_peer *peer, const struct cm_route *via, const struct wire_cm_pkt *pkt)
{
	struct cm_req *req = peer->req;

	if (!cm_req_expects(peer, pkt->nonce)) {
		peer->cep->stats->rx_stale++;
		return;
	}
	req->refused_cnt = 0;
	if (pkt->nak.err == FI_EADDRNOTAVAIL && peer->node_cnt > 1) {
		cm_req_is_wrong(peer, via);
		return;
	}
	cm_req_refused(peer, ~0u, pkt);
	cm_peer_settle(peer);
}

void cm_req_on_unreachable(struct cm_peer *peer, const union cm_addr *to, uint64_t nonce, int err)
{
	struct cm_req *req = peer->req;
	uint32_t at;

	if (!cm_req_expects(peer, nonce))
		return;
	peer->cep->stats->rx_refused++;
	at = cm_req_route_index(req, to);
	if (at == req->route_cnt)
		return;
	/* A closed port says more than a missing route to another address. */
	if (!req->refused_cnt || req->refused_err != -FI_ECONNREFUSED || req->route_cnt == 1)
		req->refused_err = err;
	req->refused_cnt++;
	req->routes_refused |= 1u << at;
	if (at == req->route_at && req->route_cnt > 1 && !req->has_tried_all)
		cm_req_arm(req, 0);
}
