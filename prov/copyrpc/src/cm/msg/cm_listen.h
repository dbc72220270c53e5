/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Listener of connected endpoints: accepts streams, reports connection requests, bounds both.
 *
 * PENDING: an accepted stream without a REQUEST. At most CM_LISTEN_PENDING_MAX, each for two
 * seconds. One more replaces the oldest once that is older than CM_LISTEN_EVICT_MS, and waits in
 * the kernel's queue until then. So silent streams delay correct endpoints, which send REQUEST
 * right after GREET, but do not block them. WAITING: at most `backlog` requests wait for the
 * application; then accepting pauses and the kernel's queue bounds the rest. A request whose stream
 * has ended counts until the application replies, so peers that connect and close do not fill its
 * event queue. Without a free descriptor accepting pauses, longer each time.
 */
#ifndef CM_MSG_CM_LISTEN_H
#define CM_MSG_CM_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"
#include "cm/base/cm_timer.h"
#include "cm/msg/cm_msg.h"
#include "cm/node/cm_node.h"
#include "util/list.h"

#define CM_LISTEN_PENDING_MAX 256u
#define CM_LISTEN_EVICT_MS    200u
#define CM_LISTEN_QUEUE       1024 /* backlog of listen(2), large enough for a burst */
#define CM_LISTEN_WAIT_MS     2000u

struct cm_listener {
	struct cm_node *node;
	struct cm_src src;
	union cm_addr addr;
	cm_listener_request_fn on_request;
	void *ctx;
	uint32_t backlog;
	struct util_list pending; /* cm_connreq.link, oldest first */
	uint32_t pending_cnt;
	struct util_list waiting; /* cm_connreq.link: requests without a reply, ended ones too */
	uint32_t waiting_cnt;
	bool is_paused;
	uint32_t pause_ms; /* length of the last pause; 0: none */
	struct cm_timer timer;
};

#endif
