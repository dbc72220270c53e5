/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_reply.h. */
#include "erpc/tx/erpc_reply.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/base/erpc_body.h"
#include "erpc/base/erpc_ep.h"
#include "erpc/tx/erpc_respond.h"
#include "erpc/tx/erpc_send.h"
#include "util/bits.h"
#include "util/copy.h"
#include "util/stats.h"

/** Returns the buffer that replies are appended to, or NULL. */
static inline struct erpc_buf *erpc_reply_last(struct erpc_session *s)
{
	if (util_list_is_empty(&s->replies))
		return NULL;
	return UTIL_CONTAINER_OF(s->replies.prev, struct erpc_buf, link);
}

/** Moves the last buffer to a larger one for `len` bytes. Returns NULL without memory. */
static struct erpc_buf *erpc_reply_grow(struct erpc_session *s, struct erpc_buf *buf, uint32_t len)
{
	struct erpc_buf *larger;

	util_list_remove(&buf->link);
	larger = erpc_buf_grow(&s->ep->bufs, buf, len);
	util_list_push_back(&s->replies, larger ? &larger->link : &buf->link);
	return larger;
}

/** Opens a buffer for a reply of `span` bytes. Returns NULL without memory. */
static struct erpc_buf *erpc_reply_open(struct erpc_session *s, uint32_t span)
{
	uint32_t head = sizeof(struct wire_erpc_batch);
	struct erpc_buf *buf = erpc_buf_alloc(&s->ep->bufs, head + span);

	if (!buf)
		return NULL;
	memset(buf->data, 0, head);
	buf->len = head;
	s->reply_reserved += head;
	util_list_push_back(&s->replies, &buf->link);
	s->send.waits |= ERPC_WAITS_REPLIES;
	return buf;
}

/** Returns a buffer with room for `span` bytes, or NULL without memory. */
static struct erpc_buf *__attribute__((noinline))
erpc_reply_room_cold(struct erpc_session *s, uint32_t span)
{
	struct erpc_buf *buf = erpc_reply_last(s);

	if (!buf || buf->len + span > s->reply_max)
		return erpc_reply_open(s, span);
	return erpc_reply_grow(s, buf, buf->len + span);
}

static inline struct erpc_buf *erpc_reply_room(struct erpc_session *s, uint32_t span)
{
	struct erpc_buf *buf = erpc_reply_last(s);

	if (UTIL_UNLIKELY(!buf || buf->len + span > buf->cap || buf->len + span > s->reply_max))
		return erpc_reply_room_cold(s, span);
	return buf;
}

/** Returns the bytes that may be appended to the buffer without further checks. */
static inline uint32_t erpc_reply_rest(const struct erpc_session *s, const struct erpc_buf *buf)
{
	uint32_t max = buf->cap < s->reply_max ? buf->cap : s->reply_max;

	return s->resp.release_mask || buf->len > max ? 0 : max - buf->len;
}

/**
 * Writes the header of a reply and returns the place of its bytes. Without memory returns NULL
 * after failing the session.
 */
static inline uint8_t *erpc_reply_put(struct erpc_session *s, struct core_call_ref ref,
				      uint32_t len)
{
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_REPLY, len);
	struct erpc_buf *buf = erpc_reply_room(s, span);
	uint8_t *at;

	s->resp.calls_pending--;
	s->reply_reserved -= ref.resp_max + ERPC_GRANT_CALL;
	if (UTIL_UNLIKELY(!buf)) {
		erpc_session_fail(s, -FI_ENOMEM, "out of memory for a reply");
		return NULL;
	}
	at = buf->data + buf->len;
	buf->len += span;
	s->reply_reserved += span;
	s->resp.room = erpc_reply_rest(s, buf);
	return wire_erpc_frame_put(at, WIRE_ERPC_FRAME_REPLY, ref.call_id, 0, len);
}

/** Sends what slots, credits and rate allow. Gets need no flush by a reply. */
static void erpc_reply_flush(struct erpc_session *s)
{
	if (erpc_respond_has_some(s))
		erpc_respond_flush(s);
	erpc_send_leave(s);
	erpc_kick(s);
}

/** Ends a reply. Sends it unless more follow. */
static inline void erpc_reply_added(struct erpc_session *s, unsigned flags)
{
	erpc_session_mark(s);
	erpc_defer_reply(s, flags);
	if ((flags & CORE_SEND_MORE) || s->ep->running)
		return;
	erpc_reply_flush(s);
	erpc_ep_doorbell(s->ep);
}

int erpc_reply(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
	       size_t iov_cnt, size_t len, unsigned flags)
{
	struct erpc_session *s = erpc_session_of(chan);
	uint8_t *at;

	if (len > ref.resp_max)
		return -FI_EMSGSIZE;
	if (s->err) /* or stopped */
		return 0;
	at = erpc_reply_put(s, ref, (uint32_t)len);
	if (!at)
		return 0;
	util_iov_gather(at, iov, iov_cnt, 0, len);
	erpc_reply_added(s, flags);
	return 0;
}

/** Sends the reply as the response to the batch that waits for it. */
static inline void erpc_reply_send_single(struct erpc_session *s, struct erpc_buf *buf)
{
	uint32_t slot = (uint32_t)__builtin_ctz(s->resp.wait_mask);
	struct erpc_rx *rx = &s->rx[slot];
	struct wire_erpc_hdr h = {
		.req_type = WIRE_ERPC_LATE,
		.msg_size = buf->len,
		.session = s->peer_num,
		.kind = WIRE_ERPC_RESP,
		.pkt_num = (uint16_t)(rx->s.req_pkts - 1),
		.req_num = rx->s.req_num,
		.tag = s->peer_tag,
	};

	s->resp.wait_mask = 0;
	util_list_remove(&s->wait_link);
	memset(buf->data, 0, ERPC_BATCH_HEAD);
	rx->resp = buf;
	erpc_server_respond_single(&rx->s, buf->len);
	s->last_resp_ns = s->ep->now_ns;
	util_stats_add(&s->ep->stats->tx_pkts, 1);
	erpc_out_put_first(&s->ep->out, s->ah, buf, buf->len, &h, &rx->out);
	erpc_ep_doorbell(s->ep);
}

/** Sends a single reply (erpc_batch.h). */
static inline int erpc_reply_single(struct erpc_session *s, struct core_call_ref ref,
				    struct erpc_body *body, const void *buf, size_t len)
{
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_REPLY, (uint32_t)len);
	struct erpc_buf *single = erpc_batch_single_buf(s, span);

	util_copy_short(wire_erpc_frame_put(single->data + ERPC_BATCH_HEAD, WIRE_ERPC_FRAME_REPLY,
					    ref.call_id, 0, (uint32_t)len),
			buf, len);
	s->resp.calls_pending = 0;
	s->reply_reserved -= ref.resp_max + ERPC_GRANT_CALL;
	erpc_reply_send_single(s, single);
	erpc_body_put(body);
	return 0;
}

static int __attribute__((noinline))
erpc_reply_release_cold(struct erpc_session *s, struct core_call_ref ref, core_retain_t retain,
			const void *buf, size_t len, unsigned flags)
{
	struct core_chan *chan = &s->conn.chan;
	uint8_t *at;

	if (UTIL_UNLIKELY(len > ref.resp_max || s->err)) /* or stopped */
		return core_chan_reply_release(chan, ref, retain, buf, len, flags);
	at = erpc_reply_put(s, ref, (uint32_t)len);
	if (UTIL_LIKELY(at != NULL)) {
		util_copy(at, buf, len);
		erpc_reply_added(s, flags);
	}
	chan->ops->release(chan, retain);
	return 0;
}

/** Handles a reply that cannot be appended without further checks. */
static int __attribute__((noinline))
erpc_reply_release_general(struct erpc_session *s, struct core_call_ref ref, core_retain_t retain,
			   const void *buf, size_t len, unsigned flags)
{
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_REPLY, (uint32_t)len);

	if (len <= ref.resp_max && erpc_reply_may_single(s, span, len, flags))
		return erpc_reply_single(s, ref, erpc_body_retained(retain), buf, len);
	return erpc_reply_release_cold(s, ref, retain, buf, len, flags);
}

/** Appends a reply to the last buffer. */
static inline void erpc_reply_append(struct erpc_session *s, struct core_call_ref ref,
				     uint32_t span, const void *buf, size_t len)
{
	struct erpc_buf *to = UTIL_CONTAINER_OF(s->replies.prev, struct erpc_buf, link);
	uint8_t *at = to->data + to->len;

	to->len += span;
	s->resp.room -= span;
	s->resp.calls_pending--;
	s->reply_reserved -= ref.resp_max + ERPC_GRANT_CALL - span;
	util_copy_short(
		wire_erpc_frame_put(at, WIRE_ERPC_FRAME_REPLY, ref.call_id, 0, (uint32_t)len), buf,
		len);
}

int erpc_reply_release(struct core_chan *chan, struct core_call_ref ref, core_retain_t retain,
		       const void *buf, size_t len, unsigned flags)
{
	uint32_t span = wire_erpc_frame_span(WIRE_ERPC_FRAME_REPLY, (uint32_t)len);
	struct erpc_session *s = erpc_session_of(chan);
	struct erpc_body *body = erpc_body_retained(retain);

	if (UTIL_UNLIKELY(!(flags & CORE_SEND_MORE) || span > s->resp.room || len > ref.resp_max ||
			  len > UTIL_COPY_SHORT || body->refs < 2))
		return erpc_reply_release_general(s, ref, retain, buf, len, flags);
	body->refs--;
	erpc_reply_append(s, ref, span, buf, len);
	return 0;
}
