/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event channels: the queue in the segment, the tokens in the socket. */
#include "model/krn_chan.h"
#include "model/krn_fd.h"
#include "model/mdl_nic.h"
#include "model/mdl_raw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TOKENS_MAX 8

static int sender = -1; /* an unbound socket to send tokens from */

/* Writes a number in hex; returns past the end. snprintf() is not for signal handlers. */
static char *put_hex(char *to, uint64_t number)
{
	for (int shift = 60; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[number >> shift & 15];
	return to;
}

/* The abstract name of a channel: unique on the host, as it holds pid and start time of its owner. */
static socklen_t chan_address(uint32_t index, struct sockaddr_un *address)
{
	const struct mdl_chan *chan = &mdl_self.seg->chan[index];
	const struct mdl_proc *proc = &mdl_self.seg->proc[chan->proc];
	char *at = address->sun_path;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	*at++ = 0;
	memcpy(at, "copyrpc_hca/", 12);
	at = put_hex(at + 12, (uint64_t)(uint32_t)proc->pid << 32 | index);
	*at++ = '/';
	at = put_hex(at, proc->started ^ (uint64_t)chan->generation << 48);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			   (size_t)(at - address->sun_path));
}

static int take_entry(enum krn_chan_kind kind, uint32_t *index)
{
	struct mdl_segment *seg = mdl_self.seg;
	int err = -ENOMEM;

	mdl_lock(&seg->table_lock);
	for (uint32_t i = 0; i < MDL_CHAN_MAX && err; i++) {
		struct mdl_chan *chan = &seg->chan[i];

		if (chan->used)
			continue;
		chan->proc = mdl_self.slot;
		chan->generation = ++seg->generation;
		chan->async = kind;
		chan->head = chan->tail = chan->tokens = 0;
		mdl_lock_init(&chan->lock);
		__atomic_store_n(&chan->used, 1, __ATOMIC_RELEASE);
		*index = i;
		err = 0;
		if (i >= seg->chan_end)
			seg->chan_end = i + 1;
	}
	mdl_unlock(&seg->table_lock);
	return err;
}

static int sender_socket(void)
{
	int fd = __atomic_load_n(&sender, __ATOMIC_ACQUIRE);

	if (fd < 0) {
		fd = (int)MDL_RAW3(socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		__atomic_store_n(&sender, fd, __ATOMIC_RELEASE);
	}
	return fd;
}

static const enum krn_fd_kind fd_kind[] = {
	[KRN_CHAN_COMP] = KRN_FD_COMP,
	[KRN_CHAN_ASYNC] = KRN_FD_ASYNC,
	[KRN_CHAN_CM] = KRN_FD_CM,
};

int krn_chan_open(enum krn_chan_kind kind, uint32_t *index)
{
	struct sockaddr_un address;
	long fd, err = take_entry(kind, index);
	socklen_t len;

	if (err)
		return (int)err;
	sender_socket();
	fd = MDL_RAW3(socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	len = chan_address(*index, &address);
	if (fd < 0 || (err = MDL_RAW3(bind, fd, &address, len)) < 0) {
		if (fd >= 0)
			MDL_RAW1(close, fd);
		krn_chan_release(*index);
		return (int)(fd < 0 ? fd : err);
	}
	krn_fd_set((int)fd, fd_kind[kind], *index);
	return (int)fd;
}

uint32_t krn_chan_by_fd(int fd)
{
	const struct krn_fd *entry = krn_fd_get(fd);

	return entry && (entry->kind == KRN_FD_COMP || entry->kind == KRN_FD_ASYNC)
		       ? entry->index + 1
		       : 0;
}

void krn_chan_release(uint32_t index)
{
	__atomic_store_n(&mdl_self.seg->chan[index].used, 0, __ATOMIC_RELEASE);
}

/* An asynchronous channel lives as long as its context, as the context's objects name it. */
void krn_chan_close(uint32_t index)
{
	if (mdl_self.seg->chan[index].async == KRN_CHAN_COMP)
		krn_chan_release(index);
}

/* Makes the tokens as many as the events, up to the limit. Under the lock of the channel. */
static void refill_tokens(uint32_t index)
{
	struct mdl_chan *chan = &mdl_self.seg->chan[index];
	struct sockaddr_un address;
	socklen_t len = chan_address(index, &address);
	int fd = sender_socket();

	while (chan->tokens < TOKENS_MAX && chan->tokens < chan->head - chan->tail) {
		if (MDL_RAW6(sendto, fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, &address, len) < 0)
			return;
		chan->tokens++;
	}
}

bool krn_chan_push(uint32_t index, uint64_t element, uint32_t type, uint32_t object)
{
	struct mdl_chan *chan = &mdl_self.seg->chan[index];
	bool room;

	mdl_lock(&chan->lock);
	room = chan->used && chan->head - chan->tail < MDL_CHAN_DEPTH;
	if (room) {
		chan->event[chan->head % MDL_CHAN_DEPTH].element = element;
		chan->event[chan->head % MDL_CHAN_DEPTH].type = type;
		chan->event[chan->head % MDL_CHAN_DEPTH].object = object;
		chan->head++;
		refill_tokens(index);
	}
	mdl_unlock(&chan->lock);
	return room;
}

/* Takes the oldest event, if there is one, and returns its length as the program reads it. */
static ssize_t pop(uint32_t index, void *to, size_t size)
{
	struct mdl_chan *chan = &mdl_self.seg->chan[index];
	uint64_t out[2];
	size_t len = chan->async ? 16 : 8;

	if (chan->head == chan->tail)
		return -EAGAIN;
	out[0] = chan->event[chan->tail % MDL_CHAN_DEPTH].element;
	out[1] = chan->event[chan->tail % MDL_CHAN_DEPTH].type;
	chan->tail++;
	if (len > size)
		return -EINVAL;
	memcpy(to, out, len);
	return (ssize_t)len;
}

ssize_t krn_chan_read(int fd, uint32_t index, void *to, size_t size)
{
	struct mdl_chan *chan = &mdl_self.seg->chan[index];
	ssize_t got;
	char token;

	/* A token without an event is left behind by a purge: wait for the next. */
	do {
		long rc = MDL_RAW6(recvfrom, fd, &token, 1, 0, NULL, NULL);

		if (rc < 0)
			return rc;
		mdl_lock(&chan->lock);
		chan->tokens -= chan->tokens > 0;
		got = pop(index, to, size);
		refill_tokens(index);
		mdl_unlock(&chan->lock);
	} while (got == -EAGAIN);
	return got;
}

/* Removes events, and hands the elements of those removed out where `elements` is given. */
static uint32_t remove_events(struct mdl_chan *chan, uint32_t object, uint64_t *elements,
			      uint32_t max)
{
	uint32_t kept = chan->tail, gone = 0;

	for (uint32_t at = chan->tail; at != chan->head; at++) {
		if (chan->event[at % MDL_CHAN_DEPTH].object == object && gone < max) {
			if (elements)
				elements[gone] = chan->event[at % MDL_CHAN_DEPTH].element;
			gone++;
		} else
			chan->event[kept++ % MDL_CHAN_DEPTH] = chan->event[at % MDL_CHAN_DEPTH];
	}
	chan->head = kept;
	return gone;
}

uint32_t krn_chan_take(uint32_t index, uint32_t object, uint64_t *elements, uint32_t max)
{
	struct mdl_chan *chan = &mdl_self.seg->chan[index];
	uint32_t gone;

	mdl_lock(&chan->lock);
	gone = remove_events(chan, object, elements, max);
	mdl_unlock(&chan->lock);
	return gone;
}

uint32_t krn_chan_purge(uint32_t index, uint32_t object)
{
	return krn_chan_take(index, object, NULL, UINT32_MAX);
}

void krn_cq_event(struct mdl_cq *cq)
{
	if (!cq->chan)
		return;
	__atomic_fetch_add(&cq->events_raised, 1, __ATOMIC_RELAXED);
	krn_chan_push(cq->chan - 1, cq->cookie, 0, cq->number | KRN_ABOUT_CQ);
}

void krn_cq_async(struct mdl_cq *cq, uint32_t type)
{
	if (!cq->async_chan)
		return;
	__atomic_fetch_add(&cq->async_raised, 1, __ATOMIC_RELAXED);
	krn_chan_push(cq->async_chan - 1, cq->cookie, type, cq->number | KRN_ABOUT_CQ);
}

void krn_qp_async(struct mdl_qp *qp, uint32_t type)
{
	if (!qp->async_chan)
		return;
	__atomic_fetch_add(&qp->async_raised, 1, __ATOMIC_RELAXED);
	krn_chan_push(qp->async_chan - 1, qp->cookie, type, qp->number | KRN_ABOUT_QP);
}

void krn_srq_async(struct mdl_srq *srq, uint32_t type)
{
	if (!srq->async_chan)
		return;
	__atomic_fetch_add(&srq->async_raised, 1, __ATOMIC_RELAXED);
	krn_chan_push(srq->async_chan - 1, srq->cookie, type, srq->number | KRN_ABOUT_SRQ);
}
