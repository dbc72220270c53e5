/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Open, connect and close of a session: see erpc_setup.h. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/bulk/erpc_direct.h"
#include "erpc/bulk/erpc_get.h"
#include "erpc/erpc_setup.h"
#include "erpc/tx/erpc_call.h"
#include "erpc/tx/erpc_defer.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_stage.h"
#include "util/log.h"
#include "util/stats.h"

#define ERPC_EAGER_MAX  (65u << 10) /* a message of 64 KiB is one batch */
#define ERPC_RESP_MAX   (64u << 10)
#define ERPC_EAGER_ONE  (32u << 10) /* with packets of this size a message never takes two */
#define ERPC_GET_MIN    (64u << 10)
#define ERPC_MTU_MIN    256u
#define ERPC_FLYING_MAX (512u << 10) /* bytes of one GET in flight */
#define ERPC_HEADS      32u          /* headers of a batch and of its frame, with padding */

/* ---- open and connect ---- */

static void erpc_session_lists(struct erpc_session *s)
{
	util_list_init(&s->bodies);
	util_list_init(&s->replies);
	util_list_init(&s->gets.pending);
	util_list_init(&s->gets.open);
	util_list_init(&s->dirty_link);
	util_list_init(&s->wait_link);
	util_list_init(&s->piggyback_link);
	util_list_init(&s->fail_link);
	util_list_init(&s->conn.chan.stopped_link);
	erpc_wheel_item_init(&s->time.pace);
	erpc_wheel_item_init(&s->timer);
	util_idmap_init(&s->calls.open);
}

int erpc_session_open(struct erpc_ep *ep, struct wire_erpc_params *params,
		      struct erpc_session **session)
{
	struct erpc_session *s = erpc_ep_alloc_session(ep);
	int ret;

	if (!s)
		return -FI_ENOMEM;
	ret = erpc_ep_alloc_num(ep, &s->num, &s->credit_max, &s->token);
	if (ret) {
		erpc_ep_free_session(ep, s);
		return ret;
	}
	s->credit_promised = s->credit_max;
	s->mtu = ep->dg->mtu;
	s->ep = ep;
	s->conn.up = ep->up;
	s->conn.chan.ops = &erpc_chan_ops;
	s->conn.chan.stats = &ep->unread;
	s->tag = (uint16_t)s->token;
	s->send.free_mask = ERPC_FREE_ALL;
	erpc_session_lists(s);
	*params = (struct wire_erpc_params){
		.version = WIRE_ERPC_VERSION,
		.session = s->num,
		.credits = (uint16_t)s->credit_max,
		.token = s->token,
		.mtu = s->mtu,
	};
	*session = s;
	return 0;
}

/**
 * Returns the number of the first request to the owner of `token`. Other parties cannot guess it.
 */
static uint64_t erpc_session_first(uint64_t token)
{
	return token >> 20 & 0xFFFFFFFFF8;
}

static void erpc_session_slots(struct erpc_session *s, uint64_t peer_token)
{
	uint64_t to_peer = erpc_session_first(peer_token), to_us = erpc_session_first(s->token);
	uint32_t slot;

	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		erpc_client_init(&s->tx[slot].c, to_peer + slot, s->payload);
		erpc_server_init(&s->rx[slot].s, to_us + slot, s->payload);
	}
	erpc_order_init(&s->order, 0);
}

/**
 * Returns how many packets of one GET may be in flight: no more than credits permit, and than the
 * receive buffer holds if the endpoint is not polled.
 */
static uint32_t erpc_session_window(const struct erpc_session *s)
{
	uint32_t room = s->ep->dg->rx_room / ERPC_GET_SLOTS / (s->payload + DEV_DGRAM_ROOM);
	uint32_t window = ERPC_FLYING_MAX / s->payload;

	if (s->ep->dg->rx_room && room < window)
		window = room;
	if (window > ERPC_CREDITS_MAX)
		window = ERPC_CREDITS_MAX;
	return window ? window : 1;
}

static void erpc_session_limits(struct erpc_session *s)
{
	uint32_t one = s->payload - ERPC_HEADS;
	uint64_t parts = (uint64_t)(WIRE_ERPC_PKT_MAX - 1) * s->payload;

	s->conn.chan.caps = CORE_CHAN_GET | CORE_CHAN_ASYNC | CORE_CHAN_REVOKE | CORE_CHAN_WAKES;
	s->conn.chan.eager_max =
		s->payload >= ERPC_EAGER_ONE && one < ERPC_EAGER_MAX ? one : ERPC_EAGER_MAX;
	s->conn.chan.eager_min = s->ep->eager_min;
	s->conn.chan.resp_lim = ERPC_RESP_MAX;
	s->conn.chan.resp_sure = ERPC_RESP_MAX;
	s->conn.chan.held_max = (uint32_t)(ERPC_GRANT / erpc_call_cost(sizeof(struct wire_status)) /
					   CORE_CHAN_HELD_PART);
	s->conn.chan.get_min = ERPC_GET_MIN;
	s->conn.chan.posted = &s->flow.posted;
	s->calls.grant_left = ERPC_GRANT;
	s->get_window = erpc_session_window(s);
	s->gets.max = parts < ERPC_GET_MAX ? (uint32_t)parts : ERPC_GET_MAX;
}

/**
 * Checks the peer's parameters and the common MTU. Returns 0, -FI_EAGAIN if the path's MTU has
 * shrunk since it was advertised, or -FI_E*, logged.
 */
static int erpc_session_check(const struct erpc_session *s, const struct wire_erpc_params *peer,
			      uint32_t mtu)
{
	if (peer->version != WIRE_ERPC_VERSION) {
		UTIL_WARN(EP_CTRL,
			  "peer has datagram protocol %u, this process %u: install the same "
			  "copyrpc on both sides\n",
			  peer->version, WIRE_ERPC_VERSION);
		return -FI_EOPNOTSUPP;
	}
	if (mtu < ERPC_MTU_MIN || !peer->credits || peer->zero) {
		UTIL_WARN(EP_CTRL,
			  "peer refused: %u credits, packets of %u bytes (minimum 1 and %u): "
			  "install the same copyrpc on both sides, or raise the MTU\n",
			  peer->credits, mtu, ERPC_MTU_MIN);
		return -FI_EIO;
	}
	if (s->ah->mtu < mtu) {
		UTIL_INFO(EP_CTRL,
			  "MTU of the path to a peer fell from %u to %u bytes: connect again\n",
			  mtu, s->ah->mtu);
		return -FI_EAGAIN;
	}
	return 0;
}

/** Sets the initial and the minimum RTO. */
static void erpc_session_timeout(struct erpc_session *s)
{
	uint64_t first_ns = ERPC_RTO_FIRST, min_ns = ERPC_RTO_MIN;

	if (s->ep->paces)
		min_ns = ERPC_RTO_MIN_HIGH * s->ep->timely_cfg.t_high_ns;
	if (min_ns > ERPC_RTO_MAX)
		min_ns = ERPC_RTO_MAX;
	if (first_ns < min_ns)
		first_ns = min_ns;
	erpc_rto_init(&s->flow.rto, first_ns, min_ns, ERPC_RTO_MAX);
}

int erpc_session_connect(struct erpc_session *s, const struct wire_erpc_params *peer,
			 struct dev_dgram_ah *ah)
{
	struct erpc_ep *ep = s->ep;
	uint32_t mtu = peer->mtu < s->mtu ? peer->mtu : s->mtu;
	int ret;

	s->ah = ah;
	ret = erpc_session_check(s, peer, mtu);
	if (ret)
		return ret;
	s->payload = mtu - WIRE_ERPC_HDR_LEN;
	s->batch_max = s->payload < ERPC_BATCH_MAX ? s->payload : ERPC_BATCH_MAX;
	s->reply_max = s->batch_max;
	s->batch_long_max = s->payload * ERPC_BATCH_PKTS < ERPC_BATCH_LONG
				    ? s->payload * ERPC_BATCH_PKTS
				    : ERPC_BATCH_LONG;
	s->peer_num = peer->session;
	s->peer_tag = (uint16_t)peer->token;
	if (peer->credits < s->credit_max)
		s->credit_max = peer->credits;
	s->flow.credits = (uint16_t)s->credit_max;
	erpc_session_slots(s, peer->token);
	erpc_session_limits(s);
	erpc_session_timeout(s);
	erpc_timely_init(&s->time.timely, &ep->timely_cfg, ep->now_ns);
	erpc_session_note_rate(s, ep->paces);
	s->listed = true;
	*erpc_session_peer_id(s) = ah->id;
	__atomic_store_n(&ep->sessions[s->num], s, __ATOMIC_RELEASE);
	return 0;
}

void erpc_session_attach(struct erpc_session *s)
{
	s->attached = true;
	if (s->ep->err)
		erpc_session_fail(s, s->ep->err, NULL);
}

/* ---- stop and close ---- */

/** Removes the session from all lists of the endpoint, and its packets from the burst. */
static void erpc_session_leave_lists(struct erpc_session *s)
{
	erpc_direct_forget(s);
	erpc_defer_forget(s);
	erpc_stage_end(s);
	util_list_remove(&s->dirty_link);
	erpc_loss_unwatch(s);
	if (s->flow.fresh)
		erpc_set_remove(&s->ep->fresh, s);
	s->flow.fresh = false;
	util_list_remove(&s->wait_link);
	util_list_remove(&s->piggyback_link);
	util_list_remove(&s->fail_link);
	if (s->ep->paces)
		erpc_wheel_remove(&s->ep->wheel, &s->time.pace);
	if (s->ah)
		erpc_out_forget_peer(&s->ep->out, s->ah);
}

void erpc_session_end(struct erpc_session *s)
{
	erpc_session_close_all(s);
	erpc_session_leave_lists(s);
	erpc_get_fail(s, s->err);
}

static void erpc_session_forget_calls(struct erpc_session *s)
{
	util_idmap_fini(&s->calls.open);
	util_idmap_init(&s->calls.open);
}

static void erpc_session_drop_bufs(struct erpc_session *s)
{
	struct erpc_bufs *bufs = &s->ep->bufs;
	struct util_list *first;
	uint32_t slot;

	erpc_buf_free(bufs, s->batch.buf);
	s->batch.buf = NULL;
	s->send.waits &= ~ERPC_WAITS_BATCH;
	erpc_session_close_all(s);
	while ((first = util_list_pop(&s->replies)))
		erpc_buf_free(bufs, UTIL_CONTAINER_OF(first, struct erpc_buf, link));
	for (slot = 0; slot < ERPC_SLOTS; slot++) {
		erpc_buf_free(bufs, s->tx[slot].buf);
		s->tx[slot].buf = NULL;
		erpc_buf_free(bufs, s->rx[slot].resp);
		s->rx[slot].resp = NULL;
		if (s->rx[slot].body)
			erpc_body_put(s->rx[slot].body);
		s->rx[slot].body = NULL;
	}
}

void erpc_session_stop(struct erpc_session *s)
{
	if (s->stopped)
		return;
	s->stopped = true;
	if (!s->err)
		s->err = -FI_ESHUTDOWN;
	if (s->listed)
		__atomic_store_n(&s->ep->sessions[s->num], NULL, __ATOMIC_RELEASE);
	s->listed = false;
	erpc_session_leave_lists(s);
	erpc_session_forget_calls(s);
	erpc_session_drop_bufs(s);
}

/** Returns true if the device may still read the peer's address. */
static bool erpc_session_is_read(const struct erpc_session *s)
{
	const struct dev_dgram *dg = s->ep->dg;

	return s->ah && s->attached && !dg->copies_ah && dg->tx_done != dg->tx_posted &&
	       !s->ep->err;
}

static void erpc_session_free(struct erpc_session *s)
{
	if (s->ah)
		s->ep->dg->ops->forget(s->ep->dg, s->ah);
	erpc_ep_free_session(s->ep, s);
}

void erpc_session_close(struct erpc_session *s)
{
	struct erpc_ep *ep = s->ep;
	struct util_list *first;

	erpc_session_stop(s);
	while ((first = util_list_first(&s->bodies))) {
		struct erpc_body *body = UTIL_CONTAINER_OF(first, struct erpc_body, link);

		body->refs = 1;
		erpc_body_put(body);
	}
	util_idmap_fini(&s->calls.open);
	erpc_ep_free_num(ep, s->num, s->credit_promised);
	if (!erpc_session_is_read(s)) {
		erpc_session_free(s);
		return;
	}
	s->last_tx = ep->dg->tx_posted - 1;
	util_list_push_back(&ep->zombies, &s->fail_link);
}

void erpc_session_reap(struct erpc_ep *ep, bool all)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &ep->zombies) {
		struct erpc_session *s = UTIL_CONTAINER_OF(it, struct erpc_session, fail_link);

		if (!all && !dev_dgram_is_done(ep->dg, s->last_tx))
			continue;
		util_list_remove(it);
		erpc_session_free(s);
	}
}
