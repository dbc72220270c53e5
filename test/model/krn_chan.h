/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event channels: what ibv_get_cq_event() and ibv_get_async_event() read.
 *
 * The events lie in the segment, where any process may put them. The descriptor is a datagram
 * socket with an abstract name; a datagram in it is a token that says "there are events", so that
 * poll(), epoll and a blocking read() work as they are. Tokens are fewer than events where many
 * come at once, because a socket holds only about ten; the reader sends itself new ones.
 *
 * A channel has a number, as objects have: its place in the segment and a generation. Who still
 * names one that is gone reaches nothing, whoever has the place by then. 0 is no channel.
 */
#ifndef KRN_CHAN_H
#define KRN_CHAN_H

#include "model/mdl_objects.h"

#include <stddef.h>
#include <sys/types.h>

/*
 * What an event is about: its number, and one of these, as numbers of different kinds may be the
 * same.
 */
enum {
	KRN_ABOUT_CQ = 1 << 24,
	KRN_ABOUT_QP = 2 << 24,
	KRN_ABOUT_SRQ = 3 << 24,
	KRN_ABOUT_CM = 4 << 24,
};

enum krn_chan_kind { KRN_CHAN_COMP, KRN_CHAN_ASYNC, KRN_CHAN_CM };

/* A descriptor of a new channel of this process, or -errno, and its number. */
int krn_chan_open(enum krn_chan_kind kind, uint32_t *number);
/* The completion channel that a descriptor of the program is; 0: it is none. */
uint32_t krn_chan_by_fd(int fd);
/* It is gone; nothing if it was before. Objects that still name it raise events into nothing. */
void krn_chan_release(uint32_t number);

/*
 * What read() returns: one event, or -EAGAIN, -EINTR as the socket says; -EBADF: the channel is
 * gone.
 */
ssize_t krn_chan_read(int fd, uint32_t number, void *to, size_t size);

/* Puts an event into a channel of any process; false: it is full or gone. */
bool krn_chan_push(uint32_t number, uint64_t element, uint32_t type, uint32_t object);

/* Removes the events of an object that goes away; how many were there. */
uint32_t krn_chan_purge(uint32_t number, uint32_t object);

/*
 * For the connection manager, whose events are indices: takes out the events of one object, at most
 * max of them, and gives their elements. Returns how many.
 */
uint32_t krn_chan_take(uint32_t number, uint32_t object, uint64_t *elements, uint32_t max);

#endif /* KRN_CHAN_H */
