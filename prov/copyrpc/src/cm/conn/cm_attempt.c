/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Active side of the handshake: see cm_attempt.h. */
#include "cm/conn/cm_attempt.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cm/conn/cm_dgram.h"
#include "cm/conn/cm_pkt.h"
#include "cm/conn/cm_req.h"
#include "cm/ep/cm_ep.h"
#include "cm/ep/cm_peer.h"
#include "cm/node/cm_closer.h"
#include "util/log.h"
#include "util/uid.h"

#define CM_ATTEMPT_NO_FDS "out of file descriptors here: raise `ulimit -n`"

/** Tries again where this process lacks something that it may have later. */
static void cm_attempt_later(struct cm_peer *peer, int err)
{
	if (err == -FI_EMFILE || err == -ENFILE) {
		UTIL_WARN_SELDOM(EP_CTRL, "%s\n", CM_ATTEMPT_NO_FDS);
		cm_req_retry(peer, -FI_EMFILE, CM_ATTEMPT_NO_FDS);
	} else {
		cm_req_retry(peer, err,
			     "the kernel did not say whether the peer is on this host; with "
			     "FI_COPYRPC_JOB_KEY it need not");
	}
}

/**
 * Continues without a stream where none is possible, or tries again if it is unknown whether the
 * peer must prove its user by a stream. Returns false if it must, or there is no other path.
 */
static bool cm_attempt_without_stream(struct cm_peer *peer, const struct wire_cm_pkt *ack)
{
	int ret = cm_ep_needs_proof(peer->cep, &peer->via.to);

	if (ret < 0) {
		cm_attempt_later(peer, ret);
		return true;
	}
	if (ret || !cm_req_avoid(peer, WIRE_CM_PATH_SHM, -FI_EHOSTUNREACH))
		return false;
	cm_dgram_start(peer, ack, cm_req_path(peer));
	return true;
}

/**
 * Handles an ACK with an abstract name that does not exist here: avoids shm, after one retry if the
 * address is one of this host.
 */
static void cm_attempt_name_unreachable(struct cm_peer *peer, const struct wire_cm_pkt *ack)
{
	struct cm_req *req = peer->req;

	if (req->unreachable_inc != ack->src_inc && cm_ep_is_local(peer->cep, &peer->via.to)) {
		req->unreachable_inc = ack->src_inc;
		cm_req_retry(peer, -FI_EHOSTUNREACH, "the peer replies, but is not on this host");
	} else if (cm_attempt_without_stream(peer, ack)) {
		return;
	} else if (req->common & ~WIRE_CM_PATH_SHM) {
		cm_req_fail(
			peer, -FI_EACCES,
			"its address is one of this host, but no local socket leads to the "
			"process, so its user is unknown: it runs in another network namespace "
			"(container). Set FI_COPYRPC_JOB_KEY to the same secret in all processes "
			"of the job");
	} else {
		cm_req_fail(peer, -FI_EHOSTUNREACH,
			    "the peer replies, but runs on another host or in another network "
			    "namespace (container), and FI_COPYRPC_PATHS allows no other path that "
			    "both ends have; unset it, or add udp to it");
	}
}

static void cm_attempt_not_connected(struct cm_peer *peer, const struct wire_cm_pkt *ack, int err)
{
	switch (err) {
	case -FI_ECONNREFUSED:
	case -FI_ENOENT: cm_attempt_name_unreachable(peer, ack); break;
	case -FI_EAGAIN:
		cm_req_retry(peer, err, "too many connections are waiting at the peer");
		break;
	case -FI_ENOBUFS:
	case -FI_ENOMEM: cm_req_retry(peer, err, "the kernel has no memory for a socket"); break;
	default:
		if (cm_attempt_without_stream(peer, ack))
			break;
		cm_req_fail(peer, err, "this system does not permit the connection (%s)",
			    fi_strerror(-err));
		break;
	}
}

static int cm_attempt_socket(struct cm_peer *peer)
{
	int fd = cm_fd_socket();

	if (fd == -FI_EMFILE || fd == -ENFILE)
		cm_attempt_later(peer, fd);
	else if (fd < 0)
		cm_req_fail(peer, fd, "cannot open a socket (%s)", fi_strerror(-fd));
	return fd;
}

static bool cm_attempt_is_own_user(const struct cm_ep *cep, int fd, uid_t *uid)
{
	return !cm_fd_peer_uid(fd, uid) && *uid == cep->uid;
}

/* Returns whether the listener belongs to the same user; fails the request otherwise. */
static bool cm_attempt_check_user(struct cm_peer *peer, int fd)
{
	uid_t uid = (uid_t)-1;

	if (cm_attempt_is_own_user(peer->cep, fd, &uid))
		return true;
	if (!util_uid_is_known(uid)) {
		cm_req_fail(peer, -FI_EACCES,
			    "the user of the peer is not known here: the user namespace of this "
			    "process maps no user %d; map the users of the job (uid_map)",
			    (int)uid);
		return false;
	}
	cm_req_fail(peer, -FI_EACCES,
		    "the peer belongs to user %d and this process to user %d; run all processes "
		    "of a job as one user",
		    (int)uid, (int)peer->cep->uid);
	return false;
}

static int cm_attempt_connect(struct cm_peer *peer, const struct wire_cm_pkt *ack)
{
	int fd = cm_attempt_socket(peer);
	int ret;

	if (fd < 0)
		return -1;
	ret = cm_fd_connect(fd, ack->ack.name);
	if (ret) {
		cm_attempt_not_connected(peer, ack, ret);
		close(fd);
	} else if (cm_attempt_check_user(peer, fd)) {
		return fd;
	} else {
		cm_closer_close(fd); /* may have been sent something by the other user */
	}
	return -1;
}

void cm_attempt_failed_locally(struct cm_peer *peer, uint32_t path, int err, const char *what)
{
	char why[CM_WHY_MAX];

	snprintf(why, sizeof(why), "%s here (%s)%s", what, fi_strerror(-err),
		 cm_req_hint(path, err));
	if (cm_req_is_temporary(err) || cm_req_avoid(peer, path, err))
		cm_req_retry(peer, err, why);
	else
		cm_req_fail(peer, err, "%s", why);
}

/**
 * Replaces the stream of a prepared conn by a new one to the same process. Returns false, with the
 * old stream in place, if there is none.
 */
static bool cm_attempt_reconnect(struct cm_conn *conn, const struct wire_cm_pkt *ack)
{
	int fd = cm_fd_socket();
	uid_t uid;

	if (fd < 0)
		return false;
	if (cm_fd_connect(fd, ack->ack.name)) {
		close(fd);
		return false;
	}
	if (!cm_attempt_is_own_user(conn->cep, fd, &uid) || cm_fd_peer_pid(fd) != conn->pid) {
		cm_closer_close(fd);
		return false;
	}
	cm_src_close(conn->node, &conn->src);
	if (!cm_src_open(conn->node, &conn->src, fd))
		return true;
	close(fd);
	return false;
}

/**
 * Sends HELLO, and once more on a new stream if the peer has closed the first one: it waits for
 * HELLO for a while only (cm_incoming.h), and preparing a large ring takes longer.
 */
static int cm_attempt_send_params(struct cm_conn *conn, const struct wire_cm_pkt *ack,
				  struct wire_cm_pkt *pkt, const struct cm_params *params)
{
	uint64_t deadline_ns = conn->peer->req->deadline_ns;
	int ret = cm_conn_send_params(conn, pkt, params, CM_CONN_HELLO_SENT, deadline_ns);

	if (conn->is_dgram || (ret != -EPIPE && ret != -FI_ECONNRESET))
		return ret;
	if (!cm_attempt_reconnect(conn, ack))
		return ret;
	return cm_conn_send_params(conn, pkt, params, CM_CONN_HELLO_SENT, deadline_ns);
}

void cm_attempt_send_hello(struct cm_conn *conn, const struct wire_cm_pkt *ack,
			   const struct cm_params *params)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_HELLO, .features = CM_FEATURES & ack->features };
	struct cm_peer *peer = conn->peer;
	int ret;

	/* On a stream the address is the one that the cookie is for. */
	if (!conn->is_dgram || !conn->via.sock)
		pkt.features &= ~WIRE_CM_FEATURE_NAME;
	conn->features = pkt.features;
	memcpy(pkt.hello.cookie, ack->ack.cookie, WIRE_CM_COOKIE_LEN);
	cm_addr_to_wire(cm_ep_sock_addr(conn->cep, conn->is_dgram ? 0 : conn->via.sock),
			&pkt.hello.addr);
	ret = cm_attempt_send_params(conn, ack, &pkt, params);
	if (!ret)
		return;
	cm_conn_down(conn, ret);
	if (ret == -EPIPE || ret == -FI_ECONNRESET)
		cm_req_retry(peer, -FI_ECONNRESET, "the peer ended the connection unexpectedly");
	else
		cm_attempt_failed_locally(peer, conn->path, ret,
					  "sending the connection parameters failed");
}

static bool cm_attempt_is_acceptable(struct cm_peer *peer, const struct wire_cm_pkt *ack)
{
	if (ack->features & WIRE_CM_FEATURES_REQUIRED & ~CM_FEATURES)
		cm_req_fail(
			peer, -FI_ENOPROTOOPT,
			"the peer requires handshake features %#llx, which this process does not "
			"have; install the same copyrpc on both sides",
			(unsigned long long)(ack->features & ~CM_FEATURES));
	else if (!(ack->ack.paths & peer->cep->paths.all))
		cm_req_fail(peer, -FI_EOPNOTSUPP,
			    "no common path; compare FI_COPYRPC_PATHS of both processes");
	else
		return true;
	return false;
}

static void cm_attempt_start_stream(struct cm_peer *peer, const struct wire_cm_pkt *ack,
				    uint32_t path)
{
	struct cm_params params = { .path = path, .features = CM_FEATURES & ack->features };
	struct cm_conn *conn;
	int ret, fd = cm_attempt_connect(peer, ack);

	if (fd < 0)
		return;
	peer->req->unreachable_inc = 0;
	ret = cm_conn_open(peer, fd, &peer->via, ack->nonce, ack->src_inc, &conn, &params);
	if (ret) {
		close(fd);
		cm_attempt_failed_locally(peer, params.path, ret,
					  "preparing the connection failed");
		return;
	}
	cm_attempt_send_hello(conn, ack, &params);
	cm_params_close_fds(&params);
}

void cm_attempt_start(struct cm_peer *peer, const struct wire_cm_pkt *ack)
{
	uint32_t path;
	int ret;

	if (!cm_attempt_is_acceptable(peer, ack))
		return;
	path = cm_ep_sound_paths(peer->cep, ack->ack.paths & peer->cep->paths.all);
	peer->req->common = cm_peer_usable_paths(peer, ack->src_inc, path);
	if (!cm_req_path(peer))
		peer->req->avoided = 0; /* the peer's paths have changed */
	path = cm_req_path(peer);
	cm_req_await_conn(peer);
	ret = path == WIRE_CM_PATH_SHM ? 1 : cm_ep_needs_proof(peer->cep, &peer->via.to);
	if (ret < 0)
		cm_attempt_later(peer, ret);
	else if (ret)
		cm_attempt_start_stream(peer, ack, path);
	else
		cm_dgram_start(peer, ack, path);
}

static void cm_attempt_on_welcome(struct cm_conn *conn, const struct wire_cm_pkt *pkt,
				  const struct cm_fd_msg *msg)
{
	struct cm_peer *peer = conn->peer;
	uint32_t path = conn->path;
	int ret = cm_conn_establish(conn, &pkt->welcome.params, msg);

	if (ret) {
		cm_conn_refuse(conn, ret, "the peer could not use the connection parameters");
		cm_conn_down(conn, ret);
		if (peer->req)
			cm_attempt_failed_locally(peer, path, ret,
						  "using the peer's connection parameters failed");
		cm_peer_settle(peer);
		return;
	}
	if (cm_conn_send(conn, WIRE_CM_READY))
		cm_conn_end(conn, -FI_ECONNRESET, "the peer ended during the handshake");
	else
		cm_conn_up(conn);
}

void cm_attempt_yield(struct cm_conn *conn)
{
	struct cm_peer *peer = conn->peer;

	conn->cep->stats->crossings++;
	cm_conn_down(conn, -FI_EALREADY);
	cm_req_yield(peer);
	cm_peer_settle(peer);
}

/* Returns whether another conn to the process of this one is up: it has several addresses. */
static bool cm_attempt_is_connected(const struct cm_conn *conn)
{
	const struct util_list *head = &conn->cep->conns;

	for (const struct util_list *it = head->next; it != head; it = it->next) {
		const struct cm_conn *other = UTIL_CONTAINER_OF(it, struct cm_conn, cep_link);

		if (other != conn && other->peer_inc == conn->peer_inc &&
		    other->state == CM_CONN_UP)
			return true;
	}
	return false;
}

/* Handles CROSSED: the peer has a conn with this process, or makes one. */
static void cm_attempt_crossed(struct cm_conn *conn)
{
	struct cm_peer *peer = conn->peer;
	uint64_t peer_inc = conn->peer_inc;

	if (!cm_attempt_is_connected(conn)) {
		cm_attempt_yield(conn);
		return;
	}
	cm_conn_down(conn, -FI_EALREADY);
	cm_req_alias(peer, peer_inc);
	cm_peer_settle(peer);
}

void cm_attempt_on_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt,
		       const struct cm_fd_msg *msg)
{
	switch (pkt->type) {
	case WIRE_CM_WELCOME: cm_attempt_on_welcome(conn, pkt, msg); break;
	case WIRE_CM_NAK: cm_conn_on_nak(conn, pkt); break;
	case WIRE_CM_CROSSED: cm_attempt_crossed(conn); break;
	default: cm_conn_end(conn, -FI_EIO, "the peer violated the handshake protocol"); break;
	}
}
