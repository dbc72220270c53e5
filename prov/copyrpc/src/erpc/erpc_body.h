/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whose bytes are these that arrived, and how long do they stay?
 *
 * A body is the bytes of one request or response: where they came in a single packet, the device's
 * receive buffer; else memory from the heap, into which packets were put together. Who delivers it
 * has a reference, and so has each hold (core_chan.h) on something in it. The last one gives the
 * bytes back. Receive buffers are shared by all sessions: when half of them are held, more are not, and
 * what is to stay is copied (erpc_body_of).
 *
 * Owner: the endpoint's pool; a session lists its own, so that its end finds them.
 * Shown by test/unit/erpc/test_erpc_body.c.
 */
#ifndef ERPC_BODY_H
#define ERPC_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "dev/dgram.h"
#include "util/list.h"

struct erpc_session;

struct erpc_body {
	struct util_list link; /* erpc_session.bodies */
	struct erpc_session *session;
	uint8_t *heap;       /* NULL: the device's buffer */
	const uint8_t *data; /* past the packet's header */
	uint32_t len;
	uint32_t slot; /* the device's */
	uint32_t refs;
	bool delivered; /* counted in the session's held bytes */
};

/** One with `len` bytes of heap, one reference: NULL: no memory. */
struct erpc_body *erpc_body_new(struct erpc_session *s, uint32_t len);

/**
 * The payload of a packet, one reference: the device's buffer, *kept is true and the body gives it back;
 * or a copy. NULL: no memory.
 */
struct erpc_body *erpc_body_of(struct erpc_session *s, const struct dev_dgram_in *in, bool *kept);

/** Nobody refers to it. */
void erpc_body_free(struct erpc_body *body);

/** As core knows it, and back. */
static inline core_retain_t erpc_body_retain(const struct erpc_body *body)
{
	return (core_retain_t)(uintptr_t)body;
}

static inline struct erpc_body *erpc_body_retained(core_retain_t retain)
{
	return (struct erpc_body *)(uintptr_t)retain;
}

/** A reference less; with the last one it is gone. */
static inline void erpc_body_put(struct erpc_body *body)
{
	if (!--body->refs)
		erpc_body_free(body);
}

#endif
