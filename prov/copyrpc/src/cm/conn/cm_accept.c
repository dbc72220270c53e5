/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* HELLOs at the passive side: see cm_accept.h. */
#include "cm/conn/cm_accept.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "cm/conn/cm_attempt.h"
#include "cm/conn/cm_dgram.h"
#include "cm/conn/cm_pending.h"
#include "cm/conn/cm_pkt.h"
#include "cm/conn/cm_req.h"
#include "cm/conn/cm_unused.h"
#include "cm/ep/cm_ended.h"
#include "cm/ep/cm_ep.h"
#include "cm/ep/cm_peer.h"
#include "util/clock.h"
#include "util/log.h"

#define CM_HELLO_CONNS_MAX 2u /* conns that one HELLO replaces */
#define CM_ACCEPT_NO_FDS   "out of file descriptors: raise `ulimit -n`"

/** Valid HELLO, and the stream it arrived on. */
struct cm_hello {
	int fd; /* -1: arrived as a datagram */
	struct cm_route via;
	union cm_addr first; /* of the name that the sender states; usually via.to */
	struct wire_cm_pkt pkt;
	const struct cm_fd_msg *msg;
};

static void cm_hello_reply(struct cm_ep *cep, const struct cm_hello *hello, struct wire_cm_pkt *pkt)
{
	if (hello->fd < 0 && !cm_stranger_take(cep, &hello->via.to, util_clock_ns()))
		return;
	cm_pkt_send(cep, hello->fd, &hello->via, pkt, NULL);
	if (hello->fd >= 0)
		close(hello->fd);
}

static void cm_hello_refuse(struct cm_ep *cep, const struct cm_hello *hello, int err,
			    const char *text)
{
	struct wire_cm_pkt pkt;

	cm_pkt_nak(&pkt, hello->pkt.nonce, hello->pkt.src_inc, err, text);
	cep->stats->tx_naks++;
	cm_hello_reply(cep, hello, &pkt);
}

static void cm_hello_cross(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_CROSSED,
				   .nonce = hello->pkt.nonce,
				   .dst_inc = hello->pkt.src_inc };

	cep->stats->crossings++;
	cm_hello_reply(cep, hello, &pkt);
}

/**
 * Replies BYE: the attempt has ended here, or named an incarnation that has. The sender is notified
 * and begins anew.
 */
static void cm_hello_disown(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_BYE,
				   .nonce = hello->pkt.nonce,
				   .dst_inc = hello->pkt.src_inc };

	cep->stats->rx_stale++;
	cm_hello_reply(cep, hello, &pkt);
}

/* Passes the peer's parameters to the engine, which has prepared `conn`, and sends WELCOME. */
static int cm_hello_welcome(struct cm_conn *conn, const struct cm_hello *hello,
			    const struct cm_params *params)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_WELCOME };
	int ret = cm_conn_establish(conn, &hello->pkt.hello.params, hello->msg);

	if (ret)
		return ret;
	return cm_conn_send_params(conn, &pkt, params, CM_CONN_WELCOME_SENT,
				   util_clock_ns() + conn->node->peer_timeout_ns);
}

static void cm_hello_open_conn(struct cm_ep *cep, struct cm_peer *peer,
			       const struct cm_hello *hello)
{
	struct cm_conn *conn;
	struct cm_params params = { .path = hello->pkt.hello.params.path,
				    .features = hello->pkt.features & CM_FEATURES };
	int ret = cm_conn_open(peer, hello->fd, &hello->via, hello->pkt.nonce, hello->pkt.src_inc,
			       &conn, &params);

	if (ret) {
		cm_hello_refuse(cep, hello, ret, "the peer could not prepare its end");
		return;
	}
	conn->features = hello->pkt.features;
	conn->accepted_ns = hello->fd < 0 ? util_clock_ns() : 0;
	cm_req_await_conn(peer);
	ret = cm_hello_welcome(conn, hello, &params);
	if (ret) {
		cm_conn_refuse(conn, ret, "the peer could not use the connection parameters");
		cm_conn_down(conn, ret);
		if (peer->req) {
			cm_req_avoid(peer, params.path, ret);
			cm_req_retry(peer, ret,
				     "the peer's connection parameters could not be used here");
		}
	}
	cm_params_close_fds(&params);
}

/* Decides a crossing: the attempt of the lower incarnation wins. */
static bool cm_hello_local_wins(const struct cm_ep *cep, uint64_t their_inc,
				const union cm_addr *theirs)
{
	if (cep->inc != their_inc)
		return cep->inc < their_inc;
	return memcmp(&cep->addr, theirs, sizeof(*theirs)) < 0;
}

/* Ends a conn with the sender that the HELLO replaces. Returns false if the conn stays. */
static bool cm_hello_replace_conn(struct cm_ep *cep, struct cm_conn *conn,
				  const struct cm_hello *hello)
{
	/* Packets queued on the peer's earlier stream come first. */
	cm_conn_poll(conn);
	if (conn->state == CM_CONN_DOWN)
		return true;
	if (conn->peer_inc != hello->pkt.src_inc) {
		cm_conn_end(conn, -FI_ECONNABORTED, "the peer was restarted");
		return true;
	}
	/* The peer may have closed the existing conn, and its BYE was lost. */
	if (conn->is_dgram && conn->state == CM_CONN_UP)
		cm_dgram_suspect(conn);
	if (conn->state != CM_CONN_HELLO_SENT ||
	    cm_hello_local_wins(cep, hello->pkt.src_inc, &hello->first))
		return false;
	cm_attempt_yield(conn);
	return true;
}

/**
 * Returns whether a HELLO names another incarnation than the established conn without a stream.
 * The peer was restarted, or the packet is old or replayed, or it waited on the stream of a
 * process that has ended since. A PING decides: a restarted peer replies BYE, which ends the conn
 * before its next HELLO.
 */
static bool cm_hello_is_doubtful(struct cm_conn *conn, const struct cm_hello *hello)
{
	if (!conn->is_dgram || conn->state != CM_CONN_UP || conn->peer_inc == hello->pkt.src_inc)
		return false;
	cm_dgram_suspect(conn);
	return true;
}

static struct cm_conn *cm_hello_find_conn(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct cm_peer *peer = cm_peer_find_sender(cep, &hello->via.to, &hello->first);

	return peer ? peer->conn : NULL;
}

/*
 * Ends the conns with the sender that the HELLO replaces. There can be two: where the end of the
 * first one frees the peer of the stated name, the sender is the peer of the proved address.
 * Returns false, with a reply sent, if a conn stays.
 */
static bool cm_hello_make_room(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct cm_conn *conn = cm_hello_find_conn(cep, hello);

	for (unsigned i = 0; conn && i < CM_HELLO_CONNS_MAX; i++) {
		if (cm_hello_is_doubtful(conn, hello)) {
			cm_hello_refuse(cep, hello, -FI_EAGAIN,
					"an older connection is being checked");
			return false;
		}
		if (!cm_hello_replace_conn(cep, conn, hello)) {
			cm_hello_cross(cep, hello);
			return false;
		}
		conn = cm_hello_find_conn(cep, hello);
	}
	return true;
}

static struct cm_peer *cm_hello_get_peer(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct cm_peer *peer = cm_peer_find_sender(cep, &hello->via.to, &hello->first);

	if (!peer)
		peer = cm_peer_get(cep, &hello->via.to);
	if (!peer)
		return NULL;
	if (cm_addr_is_equal(&peer->addr, &hello->via.to))
		peer->first = hello->first;
	peer->via = hello->via;
	return peer;
}

static void cm_hello_admit(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct cm_peer *peer;

	if (!cm_hello_make_room(cep, hello))
		return;
	peer = cm_hello_get_peer(cep, hello);
	if (!peer) {
		cm_hello_refuse(cep, hello, -FI_ENOMEM, "the peer is out of memory");
		return;
	}
	cm_hello_open_conn(cep, peer, hello);
	cm_peer_settle(peer);
}

/* Decodes a HELLO for this endpoint. Any other packet is counted and otherwise ignored. */
static bool cm_hello_read(struct cm_ep *cep, struct cm_hello *hello)
{
	const struct cm_fd_msg *msg = hello->msg;
	struct wire_cm_pkt *pkt = &hello->pkt;

	if (cm_pkt_open_first(cep, msg->buf, msg->len, pkt, &hello->via))
		return false;
	hello->first = hello->via.to;
	if (pkt->dst_inc == cep->inc && pkt->src_inc != cep->inc &&
	    hello->first.sa.sa_family == cep->addr.sa.sa_family && cm_addr_is_peer(&hello->first))
		return true;
	cep->stats->rx_stale++;
	return false;
}

/** Returns whether a HELLO for shared memory, which needs a stream, arrived in a datagram. */
static bool cm_hello_is_misrouted(const struct cm_hello *hello)
{
	return hello->fd < 0 && hello->pkt.hello.params.path == WIRE_CM_PATH_SHM;
}

/** Refuses a HELLO from this host whose sender did not use the local socket. */
static void cm_hello_refuse_unproven(struct cm_ep *cep, const struct cm_hello *hello)
{
	char text[CM_ADDR_TEXT_MAX];

	cep->stats->rx_unproven++;
	UTIL_INFO(EP_CTRL,
		  "refused %s: it is on this host, but did not prove its user by the local socket; "
		  "between containers set FI_COPYRPC_JOB_KEY\n",
		  cm_addr_print(&hello->via.to, text));
	cm_hello_refuse(cep, hello, -FI_EACCES,
			"same host, but no local socket proves the user; between containers set "
			"FI_COPYRPC_JOB_KEY");
}

/** Refuses, for now, a HELLO whose sender may be on this host. */
static void cm_hello_refuse_unknown(struct cm_ep *cep, const struct cm_hello *hello, int err)
{
	if (err == -FI_EMFILE || err == -ENFILE)
		UTIL_WARN_SELDOM(EP_CTRL, "%s\n", CM_ACCEPT_NO_FDS);
	cm_hello_refuse(cep, hello, -FI_EAGAIN,
			"the peer could not find out whether this is the same host; with "
			"FI_COPYRPC_JOB_KEY it need not");
}

/** Refuses a datagram of a sender that is on this host, or may be. Returns whether it did. */
static bool cm_hello_lacks_proof(struct cm_ep *cep, const struct cm_hello *hello)
{
	int ret = hello->fd < 0 ? cm_ep_needs_proof(cep, &hello->via.to) : 0;

	if (ret > 0)
		cm_hello_refuse_unproven(cep, hello);
	else if (ret < 0)
		cm_hello_refuse_unknown(cep, hello, ret);
	return ret != 0;
}

/** Returns whether earlier conns on this path never received anything, and another path exists. */
static bool cm_hello_path_failed(struct cm_ep *cep, const struct cm_hello *hello)
{
	const struct cm_peer *peer = cm_peer_find_sender(cep, &hello->via.to, &hello->first);

	return peer && !(hello->pkt.hello.params.path &
			 cm_peer_usable_paths(peer, hello->pkt.src_inc, cep->paths.all));
}

/** Returns whether this is a late copy of a HELLO whose connection has ended. */
static bool cm_hello_has_ended(const struct cm_ep *cep, const struct cm_hello *hello)
{
	return cm_ended_has(cep, &hello->via.to, hello->pkt.src_inc, hello->pkt.nonce,
			    util_clock_ns());
}

/** Returns whether the sender's host has too many sessions, or too many without any message. */
static bool cm_hello_exceeds_unused(struct cm_ep *cep, const struct cm_hello *hello)
{
	return hello->fd < 0 &&
	       hello->pkt.hello.params.path & (WIRE_CM_PATH_UD | WIRE_CM_PATH_UDP) &&
	       !cm_unused_has_room(cep, &hello->via.to, util_clock_ns());
}

/** Accepts a HELLO, unless its sender's host has its share of connections. */
static void cm_hello_limit(struct cm_ep *cep, const struct cm_hello *hello)
{
	if (cm_hello_exceeds_unused(cep, hello)) {
		cep->stats->unused_refused++;
		cm_hello_refuse(cep, hello, -FI_EAGAIN,
				"too many connections of this host, or too many without a message");
	} else if (hello->fd < 0 && !cm_pending_make_room(cep, &hello->via.to, util_clock_ns())) {
		cm_hello_refuse(cep, hello, -FI_EAGAIN,
				"too many connections are pending at the peer");
	} else {
		cm_hello_admit(cep, hello);
	}
}

static void cm_hello_process(struct cm_ep *cep, const struct cm_hello *hello)
{
	const struct wire_cm_pkt *pkt = &hello->pkt;
	int ret = cm_params_check_fds(&pkt->hello.params, hello->msg);

	if (!cm_cookie_check(&cep->jar, &hello->via.to, pkt->src_inc, pkt->nonce, util_clock_ns(),
			     pkt->hello.cookie)) {
		cep->stats->rx_bad_cookie++;
		cm_hello_refuse(cep, hello, -FI_EAGAIN, "the cookie has expired");
	} else if (hello->fd < 0 && cm_hello_has_ended(cep, hello)) {
		cm_hello_disown(cep, hello);
	} else if (ret == -FI_EMFILE) {
		UTIL_WARN_SELDOM(EP_CTRL, "%s\n", CM_ACCEPT_NO_FDS);
		cm_hello_refuse(cep, hello, ret, "the peer is " CM_ACCEPT_NO_FDS);
	} else if (!(pkt->hello.params.path & cep->paths.all)) {
		cm_hello_refuse(cep, hello, -FI_EOPNOTSUPP, "the peer does not use that path");
	} else if (cm_hello_path_failed(cep, hello)) {
		cm_hello_refuse(cep, hello, -FI_EHOSTUNREACH, "nothing ever arrived on that path");
	} else if (ret || pkt->features & ~CM_FEATURES || cm_hello_is_misrouted(hello)) {
		cep->stats->rx_malformed++;
		cm_hello_refuse(cep, hello, -FI_EINVAL, "the HELLO is inconsistent");
	} else if (!cm_hello_lacks_proof(cep, hello)) {
		cm_hello_limit(cep, hello);
	}
}

/* Returns whether the sender states a name, and it is none that a peer can have. */
static bool cm_hello_read_name(const struct cm_ep *cep, struct cm_hello *hello)
{
	const union cm_addr *proved = &hello->via.to;
	union cm_addr stated = *proved;

	if (hello->pkt.features & WIRE_CM_FEATURE_NAME)
		cm_addr_from_wire(&hello->pkt.hello.addr, &stated);
	hello->first = cm_addr_fit_one_name(&stated, proved) ? stated : *proved;
	return stated.sa.sa_family != cep->addr.sa.sa_family || !cm_addr_is_peer(&stated) ||
	       cm_addr_is_equal(&stated, &cep->addr);
}

void cm_accept_on_hello(struct cm_ep *cep, const struct cm_route *via,
			const struct wire_cm_pkt *pkt)
{
	static const struct cm_fd_msg no_fds;
	struct cm_hello hello = { .fd = -1, .via = *via, .pkt = *pkt, .msg = &no_fds };

	if (pkt->src_inc == cep->inc)
		cep->stats->rx_stale++; /* own packet, reflected */
	else if (cm_hello_read_name(cep, &hello))
		cep->stats->rx_malformed++;
	else if (pkt->dst_inc != cep->inc)
		cm_hello_disown(cep, &hello);
	else
		cm_hello_process(cep, &hello);
}

void cm_accept_on_first(struct cm_ep *cep, int fd, struct cm_fd_msg *msg)
{
	struct cm_hello hello = { .fd = fd, .msg = msg };

	if (cm_hello_read(cep, &hello))
		cm_hello_process(cep, &hello);
	else
		close(fd);
	cm_fd_drop(msg);
}

void cm_accept_on_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	switch (pkt->type) {
	case WIRE_CM_READY: cm_conn_up(conn); break;
	case WIRE_CM_NAK: cm_conn_on_nak(conn, pkt); break;
	default: cm_conn_end(conn, -FI_EIO, "the peer violated the handshake protocol"); break;
	}
}
