/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event channels: the objects behind ibv_get_cq_event() and ibv_get_async_event().
 *
 * Events are stored in the segment, where any process may add them. The descriptor is a datagram
 * socket with an abstract name. A datagram in it is a token for available events, so that poll(),
 * epoll and a blocking read() work unchanged. A socket holds only about ten datagrams, so there may
 * be fewer tokens than events; the reader then sends itself new ones.
 *
 * A channel's number is its index in the segment and a generation. An event sent to a stale number
 * is dropped, even if the entry is in use again. 0 is no channel.
 */
#ifndef KRN_CHAN_H
#define KRN_CHAN_H

#include "model/fabric/mdl_objects.h"

#include <stddef.h>
#include <sys/types.h>

/* Kind of the object of an event. Part of the key, as numbers of different kinds may be equal. */
enum {
	KRN_ABOUT_CQ = 1 << 24,
	KRN_ABOUT_QP = 2 << 24,
	KRN_ABOUT_SRQ = 3 << 24,
	KRN_ABOUT_CM = 4 << 24,
};

enum krn_chan_kind { KRN_CHAN_COMP, KRN_CHAN_ASYNC, KRN_CHAN_CM };

/* Creates a channel of this process. Returns its descriptor and number, or -errno. */
int krn_chan_open(enum krn_chan_kind kind, uint32_t *number);
/* Returns the number of the completion channel with this descriptor, 0 if there is none. */
uint32_t krn_chan_by_fd(int fd);
/* Removes a channel if it still exists. Events of objects that still name it are dropped. */
void krn_chan_release(uint32_t number);

/* Reads one event. Returns -EAGAIN or -EINTR as the socket does, -EBADF if the channel is gone. */
ssize_t krn_chan_read(int fd, uint32_t number, void *to, size_t size);

/* Adds an event to a channel of any process. Returns false if the channel is full or gone. */
bool krn_chan_push(uint32_t number, uint64_t element, uint32_t type, uint32_t object);

/* Removes the events of an object that is destroyed. Returns their number. */
uint32_t krn_chan_purge(uint32_t number, uint32_t object);

/*
 * Removes at most max events of one object and stores their elements. Returns their number. Used by
 * the connection manager, whose events are indices.
 */
uint32_t krn_chan_take(uint32_t number, uint32_t object, uint64_t *elements, uint32_t max);

#endif /* KRN_CHAN_H */
