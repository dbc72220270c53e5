/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections without a stream: see cm_dgram.h. */
#include "cm/conn/cm_dgram.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/conn/cm_accept.h"
#include "cm/conn/cm_attempt.h"
#include "cm/conn/cm_pkt.h"
#include "cm/conn/cm_req.h"
#include "cm/conn/cm_udp.h"
#include "cm/conn/cm_unused.h"
#include "cm/ep/cm_ep.h"
#include "cm/ep/cm_peer.h"
#include "util/clock.h"
#include "util/log.h"

static const struct cm_fd_msg cm_dgram_no_fds;

static void cm_dgram_arm(struct cm_conn *conn, uint64_t delay_ns)
{
	cm_node_arm(conn->node, &conn->timer, util_clock_ns() + delay_ns);
}

/** Arms the timer for the next repetition, or for the deadline if that is earlier. */
static void cm_dgram_arm_repeat(struct cm_conn *conn)
{
	uint64_t at_ns = util_clock_ns() + cm_req_backoff_ns(conn->try_cnt);

	cm_node_arm(conn->node, &conn->timer,
		    at_ns < conn->deadline_ns ? at_ns : conn->deadline_ns);
}

int cm_dgram_send(struct cm_conn *conn, const uint8_t *buf, size_t len, uint64_t deadline_ns)
{
	conn->resend = malloc(len);
	if (!conn->resend)
		return -FI_ENOMEM;
	memcpy(conn->resend, buf, len);
	conn->resend_len = len;
	conn->try_cnt = 0;
	conn->deadline_ns = deadline_ns;
	cm_dgram_arm_repeat(conn);
	return cm_udp_send_bytes(conn->cep, buf, len, &conn->via);
}

void cm_dgram_stop_resend(struct cm_conn *conn)
{
	free(conn->resend);
	conn->resend = NULL;
}

static void cm_dgram_repeat(struct cm_conn *conn)
{
	conn->try_cnt++;
	cm_dgram_arm_repeat(conn);
	cm_udp_send_bytes(conn->cep, conn->resend, conn->resend_len, &conn->via);
}

uint64_t cm_dgram_ping_ns(uint64_t timeout_ns, uint32_t peer_cnt)
{
	uint64_t ns = CM_DGRAM_PING_MS * UTIL_NS_PER_MS;
	uint64_t share_ns = peer_cnt * (UTIL_NS_PER_S / CM_DGRAM_PINGS_S);

	if (share_ns > timeout_ns / 4)
		share_ns = timeout_ns / 4;
	if (ns > timeout_ns / 8)
		ns = timeout_ns / 8;
	return ns > share_ns ? ns : share_ns;
}

static uint64_t cm_dgram_silence_ns(const struct cm_conn *conn)
{
	return cm_dgram_ping_ns(conn->node->peer_timeout_ns, conn->cep->watched_cnt);
}

/** Arms the next check, at random, so that the PINGs to many peers are spread. */
static void cm_dgram_arm_watch(struct cm_conn *conn)
{
	uint32_t us = (uint32_t)(cm_dgram_silence_ns(conn) / 1000);

	cm_dgram_arm(conn, 1000ull * (us - us / 4 + cm_mac_random_below(us / 2 + 1)));
}

void cm_dgram_watch(struct cm_conn *conn)
{
	cm_dgram_stop_resend(conn);
	conn->last_rx_ns = conn->checked_ns = util_clock_ns();
	conn->refused_cnt = 0;
	cm_dgram_arm_watch(conn);
}

void cm_dgram_suspect(struct cm_conn *conn)
{
	if (conn->state != CM_CONN_UP)
		return;
	conn->is_suspect = true;
	cm_node_arm(conn->node, &conn->timer, 0);
}

void cm_dgram_on_unreachable(struct cm_conn *conn, int err)
{
	/* A missing route may come back within the timeout; a closed port does not. */
	if (err != -FI_ECONNREFUSED)
		return;
	conn->cep->stats->rx_refused++;
	conn->refused_cnt++;
	cm_dgram_arm(conn, conn->refused_cnt < CM_DGRAM_REFUSED_CNT
				   ? CM_DGRAM_SUSPECT_MS * UTIL_NS_PER_MS
				   : 0);
}

static void cm_dgram_ping(struct cm_conn *conn)
{
	conn->is_suspect = false;
	conn->cep->stats->tx_pings++;
	cm_conn_send(conn, WIRE_CM_PING);
}

/**
 * Discounts a time during which this process was stopped: packets of the peer may be unread.
 * Advances last_rx_ns by the excess and schedules a PING.
 */
static void cm_dgram_discount(struct cm_conn *conn, uint64_t now_ns)
{
	uint64_t gap_ns = now_ns - conn->checked_ns, fair_ns = 2 * cm_dgram_silence_ns(conn);

	conn->checked_ns = now_ns;
	if (gap_ns <= fair_ns)
		return;
	conn->last_rx_ns += gap_ns - fair_ns;
	if (conn->last_rx_ns > now_ns)
		conn->last_rx_ns = now_ns;
	conn->is_suspect = true;
}

/** Counts messages that the engine received as packets of the peer. */
static void cm_dgram_poll_engine(struct cm_conn *conn, uint64_t now_ns)
{
	const struct cm_ep *cep = conn->cep;
	uint64_t last_rx_ns;

	if (!cep->ops->last_rx_ns)
		return;
	last_rx_ns = cep->ops->last_rx_ns(cep->ctx, conn, conn->user);
	if (last_rx_ns)
		cm_unused_remove(conn);
	if (last_rx_ns > now_ns) /* received after now_ns was read */
		last_rx_ns = now_ns;
	if (last_rx_ns > conn->last_rx_ns)
		conn->last_rx_ns = last_rx_ns;
}

static void cm_dgram_check_peer(struct cm_conn *conn, uint64_t now_ns)
{
	uint64_t silent_ns;
	char why[64];

	cm_dgram_poll_engine(conn, now_ns);
	cm_dgram_discount(conn, now_ns);
	silent_ns = now_ns - conn->last_rx_ns;

	if (conn->refused_cnt >= CM_DGRAM_REFUSED_CNT) {
		cm_conn_end(conn, -FI_ECONNRESET, "the peer's port is closed: it has ended");
	} else if (silent_ns >= conn->node->peer_timeout_ns) {
		/*
		 * A stopped peer receives this later, and then does not wait for what was abandoned
		 * here.
		 */
		cm_conn_send(conn, WIRE_CM_BROKEN);
		snprintf(why, sizeof(why), "the peer has been silent for %.1f s",
			 (double)silent_ns / 1e9);
		cm_conn_end(conn, -FI_ETIMEDOUT, why);
	} else {
		cm_dgram_arm_watch(conn);
		if (conn->is_suspect || conn->refused_cnt ||
		    silent_ns >= cm_dgram_silence_ns(conn) / 2)
			cm_dgram_ping(conn);
	}
}

static void cm_dgram_resend_or_end(struct cm_conn *conn, uint64_t now_ns)
{
	if (conn->refused_cnt >= CM_DGRAM_REFUSED_CNT)
		cm_conn_end(conn, -FI_ECONNRESET, "the peer ended during the handshake");
	else if (now_ns >= conn->deadline_ns)
		cm_conn_end(conn, -FI_ETIMEDOUT, cm_conn_late_text(conn));
	else
		cm_dgram_repeat(conn);
}

void cm_dgram_on_timer(struct cm_timer *timer)
{
	struct cm_conn *conn = UTIL_CONTAINER_OF(timer, struct cm_conn, timer);
	uint64_t now_ns = util_clock_ns();

	if (conn->state == CM_CONN_UP)
		cm_dgram_check_peer(conn, now_ns);
	else
		cm_dgram_resend_or_end(conn, now_ns);
}

void cm_dgram_start(struct cm_peer *peer, const struct wire_cm_pkt *ack, uint32_t path)
{
	struct cm_conn *conn;
	struct cm_params params = { .path = path, .features = CM_FEATURES & ack->features };
	int ret = cm_conn_open(peer, -1, &peer->via, ack->nonce, ack->src_inc, &conn, &params);

	if (ret) {
		cm_attempt_failed_locally(peer, path, ret, "preparing the connection failed");
		return;
	}
	cm_attempt_send_hello(conn, ack, &params);
	cm_params_close_fds(&params);
}

/** Replies BYE to a packet of an unknown connection; never to BYE itself. */
static void cm_dgram_reply_unknown(struct cm_ep *cep, const struct cm_route *via,
				   const struct wire_cm_pkt *pkt)
{
	struct wire_cm_pkt bye = { .type = WIRE_CM_BYE,
				   .nonce = pkt->nonce,
				   .dst_inc = pkt->src_inc };

	cep->stats->rx_stale++;
	if (pkt->type != WIRE_CM_WELCOME && pkt->type != WIRE_CM_READY && pkt->type != WIRE_CM_PING)
		return;
	if (cm_stranger_take(cep, &via->to, util_clock_ns()))
		cm_udp_send(cep, &bye, via);
}

static void cm_dgram_on_hello_sent(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	switch (pkt->type) {
	case WIRE_CM_WELCOME:
	case WIRE_CM_NAK:
	case WIRE_CM_CROSSED: cm_attempt_on_pkt(conn, pkt, &cm_dgram_no_fds); break;
	case WIRE_CM_BYE:
		cm_conn_end(conn, -FI_ECONNRESET, "the peer gave up the connection");
		break;
	default: conn->cep->stats->rx_stale++; break;
	}
}

/* A PING means that the peer is up and READY was lost. */
static void cm_dgram_on_welcome_sent(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	switch (pkt->type) {
	case WIRE_CM_PING: cm_conn_send(conn, WIRE_CM_PONG); /* fall through */
	case WIRE_CM_READY: cm_conn_up(conn); break;
	case WIRE_CM_NAK: cm_accept_on_pkt(conn, pkt); break;
	case WIRE_CM_BYE:
		cm_conn_end(conn, -FI_ECONNRESET, "the peer gave up the connection");
		break;
	default: conn->cep->stats->rx_stale++; break;
	}
}

static void cm_dgram_on_up(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	conn->last_rx_ns = util_clock_ns();
	conn->refused_cnt = 0;
	switch (pkt->type) {
	case WIRE_CM_PING: cm_conn_send(conn, WIRE_CM_PONG); break;
	case WIRE_CM_PONG: break;
	case WIRE_CM_WELCOME: cm_conn_send(conn, WIRE_CM_READY); break;
	case WIRE_CM_BYE: cm_conn_end(conn, -FI_ESHUTDOWN, "the peer closed the connection"); break;
	case WIRE_CM_BROKEN: cm_conn_end(conn, -FI_EIO, "the connection failed at the peer"); break;
	default: conn->cep->stats->rx_stale++; break;
	}
}

static void cm_dgram_on_conn_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	switch (conn->state) {
	case CM_CONN_HELLO_SENT: cm_dgram_on_hello_sent(conn, pkt); break;
	case CM_CONN_WELCOME_SENT: cm_dgram_on_welcome_sent(conn, pkt); break;
	case CM_CONN_UP: cm_dgram_on_up(conn, pkt); break;
	default: break;
	}
}

/** Repeats WELCOME for a repeated HELLO: the first WELCOME was lost or is on its way. */
static void cm_dgram_on_hello_again(struct cm_conn *conn)
{
	conn->cep->stats->rx_stale++;
	if (conn->state == CM_CONN_WELCOME_SENT)
		cm_udp_send_bytes(conn->cep, conn->resend, conn->resend_len, &conn->via);
}

bool cm_dgram_on_pkt(struct cm_ep *cep, const struct cm_route *via, const struct wire_cm_pkt *pkt)
{
	struct cm_peer *peer = cm_peer_find(cep, &via->to);
	struct cm_conn *conn = peer ? peer->conn : NULL;

	if (!conn || !conn->is_dgram || conn->nonce != pkt->nonce)
		conn = NULL;
	if (pkt->type == WIRE_CM_NAK && (!conn || conn->state == CM_CONN_UP))
		return false;
	if (conn && pkt->dst_inc == cep->inc && pkt->src_inc == conn->peer_inc) {
		if (pkt->type == WIRE_CM_HELLO)
			cm_dgram_on_hello_again(conn);
		else
			cm_dgram_on_conn_pkt(conn, pkt);
	} else if (conn && pkt->dst_inc == cep->inc && pkt->type == WIRE_CM_BYE) {
		cm_conn_end(conn, -FI_ECONNABORTED, "the peer was restarted");
	} else if (pkt->type == WIRE_CM_HELLO) {
		cm_accept_on_hello(cep, via, pkt);
	} else {
		cm_dgram_reply_unknown(cep, via, pkt);
	}
	return true;
}
