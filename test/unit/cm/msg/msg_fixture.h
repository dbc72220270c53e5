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

#define MSG_ENDS         4
#define MSG_REQUESTS_MAX 512

struct msg_fixture {
	struct cm_node *node;
	struct cm_listener *listener;
	struct sockaddr_storage addr;
	struct cm_end active[MSG_ENDS], passive[MSG_ENDS];
	pthread_mutex_t lock; /* guards the fields below */
	struct cm_connreq *requests[MSG_REQUESTS_MAX];
	unsigned reported, taken;
	int report_ret; /* return value of the up-call from now on */
	char data[CM_MSG_DATA_MAX + 1];
};

void msg_fixture_open(struct msg_fixture *h, const char *key, int timeout_ms, int backlog);
/** Rejects all requests that were not taken, and closes. */
void msg_fixture_close(struct msg_fixture *h);
int msg_request(struct msg_fixture *h, int caller, const char *text);
/** Returns the next request that the listener reported, or NULL after `ms`. */
struct cm_connreq *msg_take_request(struct msg_fixture *h, int ms);

#endif
