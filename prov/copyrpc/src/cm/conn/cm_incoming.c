/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Incoming streams: see cm_incoming.h. Accepts them, refuses those of other users, and keeps the
 * rest until they bring their first message, are too many or wait for too long.
 */
#include "cm/conn/cm_incoming.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cm/conn/cm_accept.h"
#include "cm/ep/cm_ep.h"
#include "cm/node/cm_closer.h"
#include "util/clock.h"
#include "util/log.h"

#define CM_INCOMING_BURST 64

/** Accepted stream without a HELLO yet. */
struct cm_incoming {
	struct cm_src src;
	struct cm_ep *cep;
	struct util_list link; /* cep->incoming */
	struct cm_timer timer;
	struct cm_zombie zombie;
};

static bool cm_incoming_is_foreign(const struct cm_ep *cep, int fd, uid_t *uid)
{
	*uid = (uid_t)-1;
	return cm_fd_peer_uid(fd, uid) || *uid != cep->uid;
}

static void cm_incoming_close_unread(const struct cm_ep *cep, int fd)
{
	uid_t uid;

	if (cm_incoming_is_foreign(cep, fd, &uid))
		cm_closer_close(fd);
	else
		close(fd);
}

static int cm_incoming_leave(struct cm_incoming *stream)
{
	struct cm_ep *cep = stream->cep;
	int fd = cm_src_release(cep->node, &stream->src);

	util_list_remove(&stream->link);
	cep->incoming_cnt--;
	cm_node_disarm(cep->node, &stream->timer);
	cm_node_defer_free(cep->node, &stream->zombie, stream);
	return fd;
}

/* Reads the first message, or the end of the stream. Returns false if there is none yet. */
static bool cm_incoming_read(struct cm_incoming *stream)
{
	struct cm_ep *cep = stream->cep;
	struct cm_fd_msg msg;
	int ret = cm_fd_recv(stream->src.fd, &msg);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret > 0)
		cm_accept_on_first(cep, cm_incoming_leave(stream), &msg);
	else
		close(cm_incoming_leave(stream));
	return true;
}

/* Closes a stream that is silent, and not one whose HELLO came while the thread was busy. */
static void cm_incoming_evict(struct cm_incoming *stream)
{
	if (cm_incoming_read(stream))
		return;
	stream->cep->stats->incoming_evicted++;
	close(cm_incoming_leave(stream));
}

static void cm_incoming_on_timer(struct cm_timer *timer)
{
	cm_incoming_evict(UTIL_CONTAINER_OF(timer, struct cm_incoming, timer));
}

static void cm_incoming_on_ready(struct cm_src *src, uint32_t events)
{
	cm_incoming_read(UTIL_CONTAINER_OF(src, struct cm_incoming, src));
}

void cm_incoming_drop_all(struct cm_ep *cep)
{
	struct util_list *first;

	while ((first = util_list_first(&cep->incoming)))
		close(cm_incoming_leave(UTIL_CONTAINER_OF(first, struct cm_incoming, link)));
}

void cm_incoming_close_listener(struct cm_ep *cep)
{
	int listen_fd = cm_src_release(cep->node, &cep->listen);
	int fd = 0;

	if (listen_fd < 0)
		return;
	shutdown(listen_fd, SHUT_RDWR); /* no stream is added from now on */
	while (fd >= 0 && cm_closer_has_room()) {
		fd = cm_fd_accept(listen_fd);
		if (fd >= 0)
			cm_incoming_close_unread(cep, fd);
	}
	if (fd == -FI_EAGAIN) /* no stream is left */
		close(listen_fd);
	else
		cm_closer_close(listen_fd);
}

/* Registers a stream without a HELLO yet, and closes the oldest if there are too many. */
static void cm_incoming_add(struct cm_ep *cep, int fd)
{
	struct util_list *oldest = util_list_first(&cep->incoming);
	struct cm_incoming *stream = calloc(1, sizeof(*stream));

	if (cep->incoming_cnt >= CM_INCOMING_MAX)
		cm_incoming_evict(UTIL_CONTAINER_OF(oldest, struct cm_incoming, link));
	if (!stream) {
		close(fd);
		return;
	}
	stream->cep = cep;
	cm_src_init(&stream->src, cm_incoming_on_ready);
	cm_timer_init(&stream->timer, cm_incoming_on_timer);
	if (cm_src_open(cep->node, &stream->src, fd)) {
		close(fd);
		free(stream);
		return;
	}
	util_list_push_back(&cep->incoming, &stream->link);
	cep->incoming_cnt++;
	cm_node_arm(cep->node, &stream->timer,
		    util_clock_ns() + CM_INCOMING_WAIT_MS * UTIL_NS_PER_MS);
}

/*
 * Ends a stream of another user's process. Reading it or closing it here could wait (cm_closer.h),
 * so it gets no NAK: the connecting end knows both users as well.
 */
static void cm_incoming_refuse_user(struct cm_ep *cep, int fd, uid_t uid)
{
	cep->stats->incoming_foreign++;
	UTIL_INFO(EP_CTRL, "refused a connection from a process of user %d\n", (int)uid);
	cm_closer_close(fd);
}

static void cm_incoming_begin(struct cm_ep *cep, int fd)
{
	struct cm_fd_msg msg;
	uid_t uid;
	int ret;

	if (cm_incoming_is_foreign(cep, fd, &uid)) {
		cm_incoming_refuse_user(cep, fd, uid);
		return;
	}
	ret = cm_fd_recv(fd, &msg);
	if (ret > 0)
		cm_accept_on_first(cep, fd, &msg);
	else if (ret == -FI_EAGAIN)
		cm_incoming_add(cep, fd);
	else
		close(fd);
}

void cm_incoming_on_pause_over(struct cm_timer *timer)
{
	struct cm_ep *cep = UTIL_CONTAINER_OF(timer, struct cm_ep, listen_timer);

	cm_src_resume(cep->node, &cep->listen);
}

/* Pauses accepting while more streams of other users wait for the closer than it takes. */
static void cm_incoming_await_closer(struct cm_ep *cep)
{
	UTIL_WARN_SELDOM(EP_CTRL,
			 "accepting no connection of this host for now: a process of another user "
			 "keeps streams from being closed; FI_LOG_LEVEL=info names the user\n");
	cep->stats->accept_pauses++;
	cm_src_pause(cep->node, &cep->listen);
	cm_node_arm(cep->node, &cep->listen_timer, util_clock_ns() + CM_PAUSE_MS * UTIL_NS_PER_MS);
}

void cm_incoming_on_listen(struct cm_src *src, uint32_t events)
{
	struct cm_ep *cep = UTIL_CONTAINER_OF(src, struct cm_ep, listen);

	for (unsigned i = 0; i < CM_INCOMING_BURST; i++) {
		int fd;

		if (!cm_closer_has_room()) {
			cm_incoming_await_closer(cep);
			return;
		}
		fd = cm_fd_accept(src->fd);
		if (fd == -FI_EAGAIN)
			return;
		if (fd < 0) {
			cep->stats->accept_pauses++;
			cm_src_back_off(cep->node, src, &cep->listen_timer, &cep->listen_pause_ms,
					fd);
			return;
		}
		cep->listen_pause_ms = 0;
		cm_incoming_begin(cep, fd);
	}
}
