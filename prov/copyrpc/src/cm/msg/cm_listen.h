/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is calling, and how many may?
 *
 * A guest is a stream whose CALL has not come yet: at most CM_LISTEN_GUESTS, each for two seconds;
 * one more evicts the oldest, if that has had CM_LISTEN_HURRY_MS to speak, and waits for it
 * otherwise: a flood of silent ones delays honest callers (who speak as soon as they were greeted),
 * and keeps none out. Calls that wait for the application's answer are at most `backlog`: then
 * nobody is let in any more, callers wait in the kernel's queue, and the kernel bounds that. When
 * no descriptor is left accepting pauses, longer each time.
 *
 * Shown by test/unit/cm/msg/test_cm_listen.c.
 */
#ifndef CM_CM_LISTEN_H
#define CM_CM_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/base/cm_addr.h"
#include "cm/msg/cm_msg.h"
#include "cm/node/cm_node.h"
#include "cm/base/cm_timer.h"
#include "util/list.h"

#define CM_LISTEN_GUESTS    256u
#define CM_LISTEN_HURRY_MS  200u
#define CM_LISTEN_QUEUE     1024 /* the kernel's: a flood that comes at once has to fit */
#define CM_LISTEN_WAIT_MS   2000u
#define CM_LISTEN_PAUSE_MS  50u
#define CM_LISTEN_PAUSE_MAX 1000u

struct cm_listener {
	struct cm_node *node;
	struct cm_src src;
	union cm_addr addr;
	cm_listener_asked_fn asked;
	void *ctx;
	uint32_t backlog;
	struct util_list pending; /* cm_connreq.link, oldest first */
	uint32_t pending_cnt;
	struct util_list waiting; /* cm_connreq.link */
	uint32_t waiting_cnt;
	bool is_paused;
	uint32_t pause_ms; /* length of the last pause; 0: all is well */
	struct cm_timer timer;
};

#endif
