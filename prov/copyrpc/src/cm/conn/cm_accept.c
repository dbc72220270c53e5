/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Callers and HELLOs at the side that was asked: see cm_accept.h. */
#include "cm/conn/cm_accept.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/cm_ep.h"
#include "cm/conn/cm_attempt.h"
#include "cm/conn/cm_dgram.h"
#include "cm/conn/cm_pending.h"
#include "cm/req/cm_peer.h"
#include "cm/req/cm_pkt.h"
#include "cm/req/cm_req.h"
#include "util/clock.h"
#include "util/log.h"

#define CM_ACCEPT_BURST 64

#define CM_ACCEPT_NO_FDS "out of file descriptors: raise `ulimit -n`"

/** A stream whose HELLO has not come yet. */
struct cm_caller {
	struct cm_src src;
	struct cm_ep *cep;
	struct util_list link; /* agent->callers */
	struct cm_timer timer;
	struct cm_zombie zombie;
};

/** A HELLO that was found to be in order, and the stream it came on. */
struct cm_hello {
	int fd; /* -1: it came as a datagram */
	union cm_addr addr;
	struct wire_cm_pkt pkt;
	const struct cm_fd_msg *msg;
};

static void cm_hello_reply(struct cm_ep *cep, const struct cm_hello *hello, struct wire_cm_pkt *pkt)
{
	cm_pkt_send(cep, hello->fd, &hello->addr, pkt, NULL);
	if (hello->fd >= 0)
		close(hello->fd);
}

static void cm_hello_refuse(struct cm_ep *cep, const struct cm_hello *hello, int err,
			    const char *text)
{
	struct wire_cm_pkt pkt;

	cm_pkt_nak(&pkt, hello->pkt.nonce, hello->pkt.src_inc, err, text);
	cep->stats.tx_naks++;
	cm_hello_reply(cep, hello, &pkt);
}

static void cm_hello_cross(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_CROSSED,
				   .nonce = hello->pkt.nonce,
				   .dst_inc = hello->pkt.src_inc };

	cep->stats.crossings++;
	cm_hello_reply(cep, hello, &pkt);
}

/* The engine has prepared its half of `conn`: the other half, and our WELCOME. */
static int cm_hello_welcome(struct cm_conn *conn, const struct cm_hello *hello,
			    const struct cm_params *params)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_WELCOME };
	int ret = cm_conn_establish(conn, &hello->pkt.hello.params, hello->msg);

	if (ret)
		return ret;
	return cm_conn_send_params(conn, &pkt, params, CM_CONN_INVITED,
				   util_clock_ns() + conn->node->peer_timeout_ns);
}

static void cm_hello_let_in(struct cm_ep *cep, struct cm_peer *peer, const struct cm_hello *hello)
{
	struct cm_conn *conn;
	struct cm_params params = { .path = hello->pkt.hello.params.path };
	int ret =
		cm_conn_open(peer, hello->fd, hello->pkt.nonce, hello->pkt.src_inc, &conn, &params);

	if (ret) {
		cm_hello_refuse(cep, hello, ret, "it could not prepare its end");
		return;
	}
	cm_req_hold(peer);
	ret = cm_hello_welcome(conn, hello, &params);
	if (ret) {
		cm_conn_refuse(conn, ret, "it could not take what was offered");
		cm_conn_down(conn, ret);
		if (peer->req) {
			cm_req_avoid(peer, params.path);
			cm_req_again(peer, ret, "what it offered could not be used here");
		}
	}
	cm_params_close_fds(&params);
}

/* Two that connect to each other at once: the lower incarnation's attempt wins. */
static bool cm_hello_we_win(const struct cm_ep *cep, uint64_t their_inc,
			    const union cm_addr *theirs)
{
	if (cep->inc != their_inc)
		return cep->inc < their_inc;
	return memcmp(&cep->addr, theirs, sizeof(*theirs)) < 0;
}

/* Makes room for the HELLO among what there is with its sender: false if it has to give way. */
static bool cm_hello_make_way(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct cm_peer *peer = cm_peer_find(cep, &hello->addr);
	struct cm_conn *conn = peer ? peer->conn : NULL;

	/* What it said on another stream before comes first. */
	if (conn)
		cm_conn_poll(conn);
	if (!conn || conn->state == CM_CONN_DOWN)
		return true;
	if (conn->peer_inc != hello->pkt.src_inc) {
		cm_conn_end(conn, -FI_ECONNABORTED, "it was restarted");
		return true;
	}
	/* Perhaps it has given up the one we have, and its goodbye was lost. */
	if (conn->is_dgram && conn->state == CM_CONN_UP)
		cm_dgram_suspect(conn);
	if (conn->state != CM_CONN_ASKED || cm_hello_we_win(cep, hello->pkt.src_inc, &hello->addr))
		return false;
	cm_attempt_yield(conn);
	return true;
}

/**
 * Another incarnation than the one that we are connected to: it was restarted, or this is an old packet, late or
 * played again. A datagram does not tell, so the address is asked: who was restarted does not know the connection,
 * and its BYE ends it before its next HELLO.
 */
static bool cm_hello_is_doubtful(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct cm_peer *peer = cm_peer_find(cep, &hello->addr);
	struct cm_conn *conn = peer ? peer->conn : NULL;

	if (hello->fd >= 0 || !conn || !conn->is_dgram || conn->state != CM_CONN_UP ||
	    conn->peer_inc == hello->pkt.src_inc)
		return false;
	cm_dgram_suspect(conn);
	return true;
}

static void cm_hello_admit(struct cm_ep *cep, const struct cm_hello *hello)
{
	struct cm_peer *peer;

	if (cm_hello_is_doubtful(cep, hello)) {
		cm_hello_refuse(cep, hello, -FI_EAGAIN, "who was there before is asked first");
		return;
	}
	if (!cm_hello_make_way(cep, hello)) {
		cm_hello_cross(cep, hello);
		return;
	}
	peer = cm_peer_get(cep, &hello->addr);
	if (!peer) {
		cm_hello_refuse(cep, hello, -FI_ENOMEM, "it is out of memory");
		return;
	}
	cm_hello_let_in(cep, peer, hello);
	cm_peer_settle(peer);
}

/* Is it a HELLO to us, from a possible peer? Anything else changes nothing. */
static bool cm_hello_read(struct cm_ep *cep, struct cm_hello *hello)
{
	const struct cm_fd_msg *msg = hello->msg;
	struct wire_cm_pkt *pkt = &hello->pkt;

	if (cm_pkt_open(cep, NULL, msg->buf, msg->len, pkt))
		return false;
	cm_addr_from_wire(&pkt->hello.addr, &hello->addr);
	if (pkt->dst_inc == cep->inc && pkt->src_inc != cep->inc &&
	    hello->addr.sa.sa_family == cep->addr.sa.sa_family && cm_addr_is_peer(&hello->addr))
		return true;
	cep->stats.rx_stale++;
	return false;
}

/** Shared memory needs a stream, and nothing else has one. */
static bool cm_hello_strays(const struct cm_hello *hello)
{
	return (hello->fd >= 0) != (hello->pkt.hello.params.path == WIRE_CM_PATH_SHM);
}

/** Others took this path before, and nothing came. Refused only where we have another. */
static bool cm_hello_is_struck(struct cm_ep *cep, const struct cm_hello *hello)
{
	const struct cm_peer *peer = cm_peer_find(cep, &hello->addr);

	return peer && !(hello->pkt.hello.params.path &
			 cm_peer_sound(peer, hello->pkt.src_inc, cep->paths.all));
}

static void cm_hello_judge(struct cm_ep *cep, const struct cm_hello *hello)
{
	const struct wire_cm_pkt *pkt = &hello->pkt;
	int ret = cm_params_check_fds(&pkt->hello.params, hello->msg);

	if (!cm_cookie_check(&cep->jar, &hello->addr, pkt->src_inc, pkt->nonce, util_clock_ns(),
			     pkt->hello.cookie)) {
		cep->stats.rx_bad_cookie++;
		cm_hello_refuse(cep, hello, -FI_EAGAIN, "the invitation is too old");
	} else if (ret == -FI_EMFILE) {
		UTIL_WARN_SELDOM(EP_CTRL, "%s\n", CM_ACCEPT_NO_FDS);
		cm_hello_refuse(cep, hello, ret, "it is " CM_ACCEPT_NO_FDS);
	} else if (!(pkt->hello.params.path & cep->paths.all)) {
		cm_hello_refuse(cep, hello, -FI_EOPNOTSUPP, "it does not go that way");
	} else if (cm_hello_is_struck(cep, hello)) {
		cm_hello_refuse(cep, hello, -FI_EHOSTUNREACH, "nothing ever came that way");
	} else if (ret || pkt->features & ~CM_FEATURES || cm_hello_strays(hello)) {
		cep->stats.rx_malformed++;
		cm_hello_refuse(cep, hello, -FI_EINVAL, "the HELLO contradicts itself");
	} else if (hello->fd < 0 && !cm_pending_make_room(cep, &hello->addr, util_clock_ns())) {
		cm_hello_refuse(cep, hello, -FI_EAGAIN, "too many are being let in there");
	} else {
		cm_hello_admit(cep, hello);
	}
}

void cm_accept_on_hello(struct cm_ep *cep, const union cm_addr *from, const struct wire_cm_pkt *pkt)
{
	static const struct cm_fd_msg no_fds;
	struct cm_hello hello = { .fd = -1, .addr = *from, .pkt = *pkt, .msg = &no_fds };

	if (pkt->dst_inc == cep->inc && pkt->src_inc != cep->inc)
		cm_hello_judge(cep, &hello);
	else
		cep->stats.rx_stale++;
}

/* The first message on a stream: takes fd over. */
static void cm_accept_on_first(struct cm_ep *cep, int fd, struct cm_fd_msg *msg)
{
	struct cm_hello hello = { .fd = fd, .msg = msg };

	if (cm_hello_read(cep, &hello))
		cm_hello_judge(cep, &hello);
	else
		close(fd);
	cm_fd_drop(msg);
}

static int cm_caller_leave(struct cm_caller *caller)
{
	struct cm_ep *cep = caller->cep;
	int fd = cm_src_release(cep->node, &caller->src);

	util_list_remove(&caller->link);
	cep->caller_cnt--;
	cm_node_disarm(cep->node, &caller->timer);
	cm_node_defer_free(cep->node, &caller->zombie, caller);
	return fd;
}

static void cm_caller_evict(struct cm_caller *caller)
{
	caller->cep->stats.callers_evicted++;
	close(cm_caller_leave(caller));
}

static void cm_caller_on_timer(struct cm_timer *timer)
{
	cm_caller_evict(UTIL_CONTAINER_OF(timer, struct cm_caller, timer));
}

static void cm_caller_on_ready(struct cm_src *src, uint32_t events)
{
	struct cm_caller *caller = UTIL_CONTAINER_OF(src, struct cm_caller, src);
	struct cm_ep *cep = caller->cep;
	struct cm_fd_msg msg;
	int ret = cm_fd_recv(src->fd, &msg);

	(void)events;
	if (ret == -FI_EAGAIN)
		return;
	if (ret > 0)
		cm_accept_on_first(cep, cm_caller_leave(caller), &msg);
	else
		close(cm_caller_leave(caller));
}

void cm_accept_drop_callers(struct cm_ep *cep)
{
	struct util_list *first;

	while ((first = util_list_first(&cep->callers)))
		close(cm_caller_leave(UTIL_CONTAINER_OF(first, struct cm_caller, link)));
}

/* The stream is there and its HELLO is not: it has to wait, and the oldest may have to go. */
static void cm_caller_add(struct cm_ep *cep, int fd)
{
	struct util_list *oldest = util_list_first(&cep->callers);
	struct cm_caller *caller = calloc(1, sizeof(*caller));

	if (cep->caller_cnt >= CM_ACCEPT_CALLERS)
		cm_caller_evict(UTIL_CONTAINER_OF(oldest, struct cm_caller, link));
	if (!caller) {
		close(fd);
		return;
	}
	caller->cep = cep;
	cm_src_init(&caller->src, cm_caller_on_ready);
	cm_timer_init(&caller->timer, cm_caller_on_timer);
	if (cm_src_open(cep->node, &caller->src, fd)) {
		close(fd);
		free(caller);
		return;
	}
	util_list_push_back(&cep->callers, &caller->link);
	cep->caller_cnt++;
	cm_node_arm(cep->node, &caller->timer,
		    util_clock_ns() + CM_ACCEPT_WAIT_MS * UTIL_NS_PER_MS);
}

/* Another user's process hears why, if it has said who it is; and that is all it gets. */
static void cm_accept_turn_away(struct cm_ep *cep, int fd, uid_t uid)
{
	struct cm_fd_msg msg;
	struct cm_hello hello = { .fd = fd, .msg = &msg };
	char text[WIRE_CM_TEXT_MAX + 1];

	cep->stats.callers_foreign++;
	UTIL_INFO(EP_CTRL, "a process of user %d was turned away\n", (int)uid);
	if (cm_fd_recv(fd, &msg) <= 0) {
		close(fd);
		return;
	}
	snprintf(text, sizeof(text), "it belongs to user %d and you to user %d", (int)cep->uid,
		 (int)uid);
	if (cm_hello_read(cep, &hello))
		cm_hello_refuse(cep, &hello, -FI_EACCES, text);
	else
		close(fd);
	cm_fd_drop(&msg);
}

static void cm_accept_take(struct cm_ep *cep, int fd)
{
	uid_t uid = (uid_t)-1;
	struct cm_fd_msg msg;
	int ret;

	if (cm_fd_peer_uid(fd, &uid) || uid != cep->uid) {
		cm_accept_turn_away(cep, fd, uid);
		return;
	}
	ret = cm_fd_recv(fd, &msg);
	if (ret > 0)
		cm_accept_on_first(cep, fd, &msg);
	else if (ret == -FI_EAGAIN)
		cm_caller_add(cep, fd);
	else
		close(fd);
}

/* Nothing can be accepted now: the callers stay in the kernel's queue for a while. */
static void cm_accept_pause(struct cm_ep *cep, int err)
{
	uint32_t ms = cep->listen_pause_ms ? 2 * cep->listen_pause_ms : CM_ACCEPT_PAUSE_MS;

	if (!cep->listen_pause_ms)
		UTIL_WARN_SELDOM(EP_CTRL, "a peer cannot be let in (%s): %s\n", fi_strerror(-err),
				 CM_ACCEPT_NO_FDS);
	cep->stats.accept_pauses++;
	cep->listen_pause_ms = ms < CM_ACCEPT_PAUSE_MAX ? ms : CM_ACCEPT_PAUSE_MAX;
	cm_src_pause(cep->node, &cep->listen);
	cm_node_arm(cep->node, &cep->listen_timer,
		    util_clock_ns() + cep->listen_pause_ms * UTIL_NS_PER_MS);
}

void cm_accept_on_pause_over(struct cm_timer *timer)
{
	struct cm_ep *cep = UTIL_CONTAINER_OF(timer, struct cm_ep, listen_timer);

	cm_src_resume(cep->node, &cep->listen);
}

void cm_accept_on_ready(struct cm_src *src, uint32_t events)
{
	struct cm_ep *cep = UTIL_CONTAINER_OF(src, struct cm_ep, listen);

	(void)events;
	for (unsigned i = 0; i < CM_ACCEPT_BURST; i++) {
		int fd = cm_fd_accept(src->fd);

		if (fd == -FI_EAGAIN)
			return;
		if (fd < 0) {
			cm_accept_pause(cep, fd);
			return;
		}
		cep->listen_pause_ms = 0;
		cm_accept_take(cep, fd);
	}
}

static void cm_accept_on_nak(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	struct cm_peer *peer = conn->peer;
	uint32_t path = conn->path;

	cm_conn_down(conn, -(int)pkt->nak.err);
	cm_req_refused(peer, path, pkt);
	cm_peer_settle(peer);
}

void cm_accept_on_pkt(struct cm_conn *conn, const struct wire_cm_pkt *pkt)
{
	switch (pkt->type) {
	case WIRE_CM_READY: cm_conn_up(conn); break;
	case WIRE_CM_NAK: cm_accept_on_nak(conn, pkt); break;
	default: cm_conn_end(conn, -FI_EIO, "it broke the rules of the handshake"); break;
	}
}
