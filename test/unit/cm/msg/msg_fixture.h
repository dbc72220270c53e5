/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture for connection requests: a listener, and CM endpoints at both sides of it. */
#ifndef MSG_FIXTURE_H
#define MSG_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "cm/msg/cm_msg.h"
#include "cm/msg/cm_stream.h"
#include "unit/cm/cm_fixture.h"

#define DIAL_ENDS  4
#define DIAL_CALLS 512

struct dial_house {
	struct cm_node *node;
	struct cm_listener *listener;
	struct sockaddr_storage addr;
	struct cm_end callers[DIAL_ENDS], hosts[DIAL_ENDS];
	pthread_mutex_t lock; /* guards the fields below */
	struct cm_connreq *calls[DIAL_CALLS];
	unsigned asked, taken;
	int asked_ret; /* return value of the up-call from now on */
	char said[CM_MSG_DATA_MAX + 1];
};

void dial_house_open(struct dial_house *h, const char *key, int timeout_ms, int backlog);
/** Rejects all requests that were not taken, and closes. */
void dial_house_close(struct dial_house *h);
int dial_call(struct dial_house *h, int caller, const char *text);
/** Returns the next request that the listener reported, or NULL after `ms`. */
struct cm_connreq *dial_take(struct dial_house *h, int ms);

#endif
