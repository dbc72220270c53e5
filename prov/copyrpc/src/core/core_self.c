/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Loopback channel. See core_self.h. */
#include "core/core_self.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_chan_plain.h"
#include "core/core_handler.h"
#include "util/copy.h"
#include "util/idmap.h"

#define CORE_SELF_EAGER_MAX (1u << 20)

struct core_self {
	struct core_chan chan;
	struct util_idmap calls; /* id -> context, until the reply */
	uint8_t *resp;           /* block of the response during on_reply, unless retained */
};

static struct core_self *core_self_of(struct core_chan *chan)
{
	return (struct core_self *)chan;
}

/** Copies extension and user bytes of a frame to one block. Its address is the retain token. */
static uint8_t *core_self_flatten(const struct core_frame *frame, size_t head_len)
{
	uint8_t *data = malloc(head_len + frame->ext_len + frame->len + 1);

	if (!data)
		return NULL;
	memcpy(data, &frame->op, head_len);
	memcpy(data + head_len, frame->ext, frame->ext_len);
	util_iov_gather(data + head_len + frame->ext_len, frame->iov, frame->iov_cnt,
			frame->iov_off, frame->len);
	return data;
}

static int core_self_verdict(enum core_rx_verdict verdict, uint8_t *data)
{
	if (verdict != CORE_RX_RETAIN)
		free(data);
	return verdict == CORE_RX_BAD ? -FI_EIO : 0;
}

static int core_self_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags)
{
	uint8_t *data = core_self_flatten(frame, 0);

	if (!data)
		return -FI_EAGAIN;
	return core_self_verdict(core_upcall_table.on_msg(chan, frame->op, data,
							  frame->ext_len + (uint32_t)frame->len,
							  (core_retain_t)(uintptr_t)data),
				 data);
}

static int core_self_call(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max,
			  void *context, unsigned flags)
{
	uint8_t *data = core_self_flatten(frame, sizeof(frame->op));
	struct core_call_ref ref = { .resp_max = resp_max };
	int ret;

	if (!data)
		return core_chan_refuse(chan, CORE_SHORT_MEMORY, -FI_EAGAIN);
	ret = util_idmap_alloc(&core_self_of(chan)->calls, context, &ref.call_id);
	if (ret) {
		free(data);
		return core_chan_refuse(chan, CORE_SHORT_MEMORY, ret);
	}
	return core_self_verdict(core_upcall_table.on_call(chan, ref, data,
							   (uint32_t)(sizeof(frame->op) +
								      frame->ext_len + frame->len),
							   (core_retain_t)(uintptr_t)data),
				 data);
}

static size_t core_self_call_room(struct core_chan *chan, size_t len, uint32_t resp_max)
{
	return UTIL_IDMAP_MAX - core_self_of(chan)->calls.used_cnt;
}

static enum core_shortage core_self_call_shortage(const struct core_chan *chan, size_t len,
						  uint32_t resp_max)
{
	const struct core_self *self = (const struct core_self *)chan;

	return self->calls.used_cnt < UTIL_IDMAP_MAX ? CORE_SHORT_NONE : CORE_SHORT_MEMORY;
}

static void core_self_respond(struct core_self *self, struct core_call_ref ref, const void *data,
			      size_t len)
{
	void *context = util_idmap_lookup(&self->calls, ref.call_id);

	util_idmap_release(&self->calls, ref.call_id);
	core_upcall_table.on_reply(&self->chan, context, 0, data, (uint32_t)len);
}

/**
 * Ends a call whose response has several buffers and for which there is no memory: the callee has
 * replied and cannot be asked to repeat it.
 */
static void core_self_respond_nothing(struct core_self *self, struct core_call_ref ref)
{
	void *context = util_idmap_lookup(&self->calls, ref.call_id);

	util_idmap_release(&self->calls, ref.call_id);
	core_upcall_table.on_reply(&self->chan, context, -FI_ENOMEM, NULL, 0);
}

/**
 * Replies with a block of its own, which on_reply may retain. Without memory the bytes of a single
 * buffer are passed on and cannot be retained. on_reply may make a call whose reply is nested.
 */
static int core_self_reply(struct core_chan *chan, struct core_call_ref ref,
			   const struct iovec *iov, size_t iov_cnt, size_t len, unsigned flags)
{
	struct core_self *self = core_self_of(chan);
	uint8_t *outer = self->resp, *data;

	if (len > ref.resp_max)
		return -FI_EMSGSIZE;
	data = malloc(len + 1);
	if (!data && iov_cnt != 1) {
		core_self_respond_nothing(self, ref);
		return 0;
	}
	if (data)
		util_iov_gather(data, iov, iov_cnt, 0, len);
	self->resp = data;
	core_self_respond(self, ref, data ? data : iov[0].iov_base, len);
	free(self->resp);
	self->resp = outer;
	return 0;
}

static int core_self_retain(struct core_chan *chan, core_retain_t *retain)
{
	struct core_self *self = core_self_of(chan);

	if (!self->resp)
		return -FI_ENOMEM;
	*retain = (core_retain_t)(uintptr_t)self->resp;
	self->resp = NULL;
	return 0;
}

static void core_self_flush(struct core_chan *chan)
{
}

static int core_self_get(struct core_chan *chan, struct core_get *get)
{
	util_iov_scatter(get->iov, get->iov_cnt, 0, (const void *)(uintptr_t)get->remote_addr,
			 get->len);
	get->status = 0;
	return 1;
}

static int core_self_expose(struct core_chan *chan, const void *addr, size_t len,
			    struct core_exposure *exposure)
{
	exposure->key = 0;
	return 0;
}

static void core_self_unexpose(struct core_chan *chan, struct core_exposure *exposure)
{
}

static void core_self_release(struct core_chan *chan, core_retain_t retain)
{
	free((void *)(uintptr_t)retain);
}

static bool core_self_is_busy(struct core_chan *chan)
{
	return false;
}

static void core_self_stop(struct core_chan *chan)
{
}

static void core_self_close(struct core_chan *chan)
{
	util_idmap_fini(&core_self_of(chan)->calls);
	free(chan);
}

static const struct core_chan_ops core_self_ops = {
	.send = core_self_send,
	.send_buf = core_chan_send_framed,
	.send_more = core_chan_send_more,
	.call = core_self_call,
	.call_buf = core_chan_call_framed,
	.call_room = core_self_call_room,
	.call_shortage = core_self_call_shortage,
	.reply = core_self_reply,
	.reply_release = core_chan_reply_release,
	.retain = core_self_retain,
	.flush = core_self_flush,
	.get = core_self_get,
	.expose = core_self_expose,
	.unexpose = core_self_unexpose,
	.release = core_self_release,
	.is_busy = core_self_is_busy,
	.stop = core_self_stop,
	.close = core_self_close,
};

struct core_chan *core_self_open(void)
{
	struct core_self *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->chan.ops = &core_self_ops;
	self->chan.eager_max = CORE_SELF_EAGER_MAX;
	self->chan.resp_lim = CORE_SELF_EAGER_MAX;
	self->chan.resp_sure = CORE_SELF_EAGER_MAX;
	self->chan.held_max = UINT32_MAX; /* calls reserve nothing */
	self->chan.caps = CORE_CHAN_GET | CORE_CHAN_REVOKE;
	util_idmap_init(&self->calls);
	return &self->chan;
}
