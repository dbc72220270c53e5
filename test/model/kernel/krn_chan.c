/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event channels: the queue in the segment, the tokens in the socket. */
#include "model/kernel/krn_chan.h"
#include "model/kernel/krn_fd.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_raw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TOKENS_MAX 8

static int sender = -1; /* unbound socket that sends tokens */

/* Writes a number in hex and returns its end. snprintf() is not safe in signal handlers. */
static char *put_hex(char *to, uint64_t number)
{
	for (int shift = 60; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[number >> shift & 15];
	return to;
}

static struct mdl_chan *chan_at(uint32_t number)
{
	return &mdl_self.seg->chan[number & (MDL_CHAN_MAX - 1)];
}

/* Returns true if the channel still has this number. Called under its lock. */
static bool chan_lives(const struct mdl_chan *chan, uint32_t number)
{
	return number && chan->used && chan->number == number;
}

/*
 * Builds the abstract name of a channel: unique on the host, as it contains pid and start time of
 * the owner.
 */
static socklen_t chan_address(const struct mdl_chan *chan, struct sockaddr_un *address)
{
	const struct mdl_proc *proc = &mdl_self.seg->proc[chan->proc];
	char *at = address->sun_path;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	*at++ = 0;
	memcpy(at, "copyrpc_hca/", 12);
	at = put_hex(at + 12, (uint64_t)(uint32_t)proc->pid << 32 | chan->number);
	*at++ = '/';
	at = put_hex(at, proc->started);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			   (size_t)(at - address->sun_path));
}

/* Builds a new number. The generation is never 0, so that no number is 0. */
static uint32_t next_number(uint32_t index)
{
	uint32_t generation = __atomic_add_fetch(&mdl_self.seg->generation, 1, __ATOMIC_RELAXED) &
			      (UINT32_MAX / MDL_CHAN_MAX / 2);

	return (generation | (UINT32_MAX / MDL_CHAN_MAX / 2 + 1)) * MDL_CHAN_MAX + index;
}

static void fill_entry(struct mdl_chan *chan, enum krn_chan_kind kind, uint32_t number)
{
	mdl_lock_init(&chan->lock);
	mdl_lock(&chan->lock);
	chan->proc = mdl_self.slot;
	chan->number = number;
	chan->async = kind;
	chan->head = chan->tail = chan->tokens = 0;
	__atomic_store_n(&chan->used, 1, __ATOMIC_RELEASE);
	mdl_unlock(&chan->lock);
}

static int take_entry(enum krn_chan_kind kind, uint32_t *number)
{
	struct mdl_segment *seg = mdl_self.seg;
	int err = -ENOMEM;

	mdl_lock(&seg->table_lock);
	for (uint32_t i = 0; i < MDL_CHAN_MAX && err; i++) {
		if (__atomic_load_n(&seg->chan[i].used, __ATOMIC_ACQUIRE))
			continue;
		*number = next_number(i);
		fill_entry(&seg->chan[i], kind, *number);
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

int krn_chan_open(enum krn_chan_kind kind, uint32_t *number)
{
	struct sockaddr_un address;
	long fd, err = take_entry(kind, number);
	socklen_t len;

	if (err)
		return (int)err;
	sender_socket();
	fd = MDL_RAW3(socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	len = chan_address(chan_at(*number), &address);
	if (fd < 0 || (err = MDL_RAW3(bind, fd, &address, len)) < 0) {
		if (fd >= 0)
			MDL_RAW1(close, fd);
		krn_chan_release(*number);
		return (int)(fd < 0 ? fd : err);
	}
	krn_fd_set((int)fd, fd_kind[kind], *number);
	return (int)fd;
}

uint32_t krn_chan_by_fd(int fd)
{
	const struct krn_fd *entry = krn_fd_get(fd);

	return entry && entry->kind == KRN_FD_COMP ? entry->index : 0;
}

void krn_chan_release(uint32_t number)
{
	struct mdl_chan *chan = chan_at(number);

	mdl_lock(&chan->lock);
	if (chan_lives(chan, number))
		__atomic_store_n(&chan->used, 0, __ATOMIC_RELEASE);
	mdl_unlock(&chan->lock);
}

/*
 * Sends tokens until there are as many as events, up to the limit. Called under the channel's lock.
 */
static void refill_tokens(struct mdl_chan *chan)
{
	struct sockaddr_un address;
	socklen_t len = chan_address(chan, &address);
	int fd = sender_socket();

	while (chan->tokens < TOKENS_MAX && chan->tokens < chan->head - chan->tail) {
		if (MDL_RAW6(sendto, fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, &address, len) < 0)
			return;
		chan->tokens++;
	}
}

bool krn_chan_push(uint32_t number, uint64_t element, uint32_t type, uint32_t object)
{
	struct mdl_chan *chan = chan_at(number);
	bool room;

	if (!number)
		return false;
	mdl_lock(&chan->lock);
	room = chan_lives(chan, number) && chan->head - chan->tail < MDL_CHAN_DEPTH;
	if (room) {
		chan->event[chan->head % MDL_CHAN_DEPTH].element = element;
		chan->event[chan->head % MDL_CHAN_DEPTH].type = type;
		chan->event[chan->head % MDL_CHAN_DEPTH].object = object;
		chan->head++;
		refill_tokens(chan);
	}
	mdl_unlock(&chan->lock);
	return room;
}

/* Removes the oldest event, if there is one. Returns its length in the program's layout. */
static ssize_t pop(struct mdl_chan *chan, void *to, size_t size)
{
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

ssize_t krn_chan_read(int fd, uint32_t number, void *to, size_t size)
{
	struct mdl_chan *chan = chan_at(number);
	ssize_t got;
	char token;

	/* A purge leaves tokens without an event: wait for the next. */
	do {
		long rc = MDL_RAW6(recvfrom, fd, &token, 1, 0, NULL, NULL);

		if (rc < 0)
			return rc;
		mdl_lock(&chan->lock);
		got = -EBADF; /* the context is closed */
		if (chan_lives(chan, number)) {
			chan->tokens -= chan->tokens > 0;
			got = pop(chan, to, size);
			refill_tokens(chan);
		}
		mdl_unlock(&chan->lock);
	} while (got == -EAGAIN);
	return got;
}

/* Removes events. If `elements` is given, stores the elements of the removed events there. */
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

uint32_t krn_chan_take(uint32_t number, uint32_t object, uint64_t *elements, uint32_t max)
{
	struct mdl_chan *chan = chan_at(number);
	uint32_t gone = 0;

	if (!number)
		return 0;
	mdl_lock(&chan->lock);
	if (chan_lives(chan, number))
		gone = remove_events(chan, object, elements, max);
	mdl_unlock(&chan->lock);
	return gone;
}

uint32_t krn_chan_purge(uint32_t number, uint32_t object)
{
	return krn_chan_take(number, object, NULL, UINT32_MAX);
}

/*
 * Raises an event and counts it only if the channel stores it: destruction of an object waits until
 * all events counted and not purged are read. The object's lock is held, so that no event is raised
 * after the purge.
 */
static void raise_event(uint32_t *raised, uint32_t number, uint64_t element, uint32_t type,
			uint32_t object)
{
	if (krn_chan_push(number, element, type, object))
		__atomic_fetch_add(raised, 1, __ATOMIC_RELAXED);
}

void krn_cq_event(struct mdl_cq *cq)
{
	raise_event(&cq->events_raised, cq->chan, cq->cookie, 0, cq->number | KRN_ABOUT_CQ);
}

void krn_cq_async(struct mdl_cq *cq, uint32_t type)
{
	raise_event(&cq->async_raised, cq->async_chan, cq->cookie, type, cq->number | KRN_ABOUT_CQ);
}

void krn_qp_async(struct mdl_qp *qp, uint32_t type)
{
	raise_event(&qp->async_raised, qp->async_chan, qp->cookie, type, qp->number | KRN_ABOUT_QP);
}

void krn_srq_async(struct mdl_srq *srq, uint32_t type)
{
	raise_event(&srq->async_raised, srq->async_chan, srq->cookie, type,
		    srq->number | KRN_ABOUT_SRQ);
}
