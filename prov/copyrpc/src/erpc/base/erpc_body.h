/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reference counts for received bytes. Called by the receive side (rx/) and, by
 * core_chan_ops.release, by core.
 *
 * A body is the bytes of one request or response. A single packet stays in the device's receive
 * buffer. Several packets are assembled in memory from the heap. Delivery holds one reference, and
 * so does each message that core retains. The last reference returns the buffer.
 *
 * Receive buffers are shared by all sessions. While more than half of them are retained, new bodies
 * are copies (erpc_body_of).
 *
 * Owner: the endpoint's pool. A session lists its bodies, so that its close frees them. Tested in
 * test/unit/erpc/test_erpc_body.c.
 */
#ifndef ERPC_BASE_ERPC_BODY_H
#define ERPC_BASE_ERPC_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_chan.h"
#include "dev/dgram.h"
#include "util/list.h"

struct erpc_session;

struct erpc_body {
	struct util_list link; /* erpc_session.bodies */
	struct erpc_session *session;
	uint8_t *heap;       /* NULL: the bytes are in the device's buffer */
	const uint8_t *data; /* first byte behind the packet's header */
	uint32_t len;
	uint32_t slot; /* the device's receive buffer */
	uint32_t refs;
	bool delivered; /* counted in erpc_session.resp.retained_len */
};

/** Returns a body with `len` bytes of heap and one reference, or NULL without memory. */
struct erpc_body *erpc_body_new(struct erpc_session *s, uint32_t len);

/**
 * Returns a body for the payload of a packet, with one reference, or NULL without memory. Sets
 * *kept if the body owns the device's buffer; otherwise the payload was copied.
 */
struct erpc_body *erpc_body_of(struct erpc_session *s, const struct dev_dgram_in *in, bool *kept);

/** Frees a body without references. */
void erpc_body_free(struct erpc_body *body);

/** Returns the body's name for core. erpc_body_retained is the inverse. */
static inline core_retain_t erpc_body_retain(const struct erpc_body *body)
{
	return (core_retain_t)(uintptr_t)body;
}

static inline struct erpc_body *erpc_body_retained(core_retain_t retain)
{
	return (struct erpc_body *)(uintptr_t)retain;
}

/** Drops a reference. The last one frees the body. */
static inline void erpc_body_put(struct erpc_body *body)
{
	if (!--body->refs)
		erpc_body_free(body);
}

#endif
