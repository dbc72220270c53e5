/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Frames, calls and gets of a channel: see fake_chan.h. Counters: see fake_engine.h. */
#include "support/fake_chan.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_chan_plain.h"
#include "support/fake_direct.h"
#include "support/fake_engine.h"
#include "support/fake_tags.h"
#include "util/copy.h"
#include "util/stats.h"

enum fake_kind { FAKE_MSG, FAKE_CALL, FAKE_REPLY };

struct fake_frame {
	struct util_list link;
	enum fake_kind kind;
	uint32_t op;
	struct core_call_ref ref;
	uint32_t len;
	uint8_t data[];
};

static unsigned fake_retained_cnt;
static unsigned fake_await_cnt;
static unsigned fake_get_cnt;
static int fake_exposed_cnt;
static int fake_exposed_at_stop;

void fake_chan_reset(void)
{
	fake_retained_cnt = 0;
	fake_await_cnt = 0;
	fake_get_cnt = 0;
	fake_exposed_at_stop = 0;
}

static struct fake_chan *fake_of(struct core_chan *chan)
{
	return (struct fake_chan *)chan;
}

static struct fake_frame *fake_frame_new(enum fake_kind kind, const struct core_frame *f,
					 size_t head_len)
{
	uint32_t len = (uint32_t)(head_len + f->ext_len + f->len);
	struct fake_frame *frame = malloc(sizeof(*frame) + len);

	frame->kind = kind;
	frame->op = f->op;
	frame->len = len;
	memcpy(frame->data, &f->op, head_len);
	memcpy(frame->data + head_len, f->ext, f->ext_len);
	util_iov_gather(frame->data + head_len + f->ext_len, f->iov, f->iov_cnt, f->iov_off,
			f->len);
	return frame;
}

/** Overwrites the bytes, as a peer may after they are released, and frees them. */
static void fake_frame_free(struct fake_frame *frame)
{
	memset(frame->data, 0xDB, frame->len);
	free(frame);
}

static void fake_frames_free(struct util_list *frames)
{
	struct util_list *first;

	while ((first = util_list_pop(frames)))
		fake_frame_free(UTIL_CONTAINER_OF(first, struct fake_frame, link));
}

static void fake_put(struct fake_chan *to, struct fake_frame *frame)
{
	util_list_push_back(&to->in, &frame->link);
	to->in_cnt++;
	if (to->other)
		to->other->sent++;
}

static int fake_send(struct core_chan *chan, const struct core_frame *f, unsigned flags)
{
	struct fake_chan *fc = fake_of(chan);

	assert(f->ext_len + f->len <= chan->eager_max);
	if (fc->other && fc->other->in_cnt >= fake_engine_cfg.room)
		return -FI_EAGAIN;
	fc->taken += 32;
	if (fc->other)
		fake_put(fc->other, fake_frame_new(FAKE_MSG, f, 0));
	return 0;
}

static int fake_send_buf(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
			 const void *buf, size_t len)
{
	int ret = core_chan_send_framed(chan, packed, ext0, ext1, buf, len);

	return ret ? ret : !!(chan->caps & CORE_CHAN_ASYNC);
}

static void fake_await(struct core_chan *chan)
{
	fake_await_cnt++;
}

static enum core_shortage fake_call_shortage(const struct core_chan *chan, size_t len,
					     uint32_t resp_max)
{
	const struct fake_chan *fc = (const struct fake_chan *)chan;

	if (fc->calls_open >= fake_engine_cfg.credit)
		return CORE_SHORT_CREDIT;
	return fc->other && fc->other->in_cnt >= fake_engine_cfg.room ? CORE_SHORT_SPACE
								      : CORE_SHORT_NONE;
}

static int fake_call(struct core_chan *chan, const struct core_frame *f, uint32_t resp_max,
		     void *context, unsigned flags)
{
	struct fake_chan *fc = fake_of(chan);
	struct fake_frame *frame;

	assert(f->ext_len + f->len <= chan->eager_max && resp_max <= chan->resp_lim);
	if (!fc->other)
		return 0;
	if (fake_call_shortage(chan, f->len, resp_max))
		return core_chan_refuse(chan, fake_call_shortage(chan, f->len, resp_max),
					-FI_EAGAIN);
	frame = fake_frame_new(FAKE_CALL, f, sizeof(f->op));
	frame->ref.resp_max = resp_max;
	util_idmap_alloc(&fc->calls, context, &frame->ref.call_id);
	fc->calls_open++;
	fake_put(fc->other, frame);
	return 0;
}

static size_t fake_call_room(struct core_chan *chan, size_t len, uint32_t resp_max)
{
	struct fake_chan *fc = fake_of(chan);
	unsigned in_cnt = fc->other ? fc->other->in_cnt : 0;
	unsigned room = fake_engine_cfg.room > in_cnt ? fake_engine_cfg.room - in_cnt : 0;
	unsigned credit = fake_engine_cfg.credit > fc->calls_open
				  ? fake_engine_cfg.credit - fc->calls_open
				  : 0;

	return room < credit ? room : credit;
}

static int fake_reply(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
		      size_t iov_cnt, size_t len, unsigned flags)
{
	struct core_frame f = { .iov = iov, .iov_cnt = iov_cnt, .len = len };
	struct fake_frame *frame;

	if (len > ref.resp_max)
		return -FI_EMSGSIZE;
	if (!fake_of(chan)->other)
		return 0;
	frame = fake_frame_new(FAKE_REPLY, &f, 0);
	frame->ref = ref;
	fake_put(fake_of(chan)->other, frame);
	return 0;
}

static int fake_keep(struct core_chan *chan, core_retain_t *retain)
{
	struct fake_chan *fc = fake_of(chan);

	assert(fc->response);
	*retain = (core_retain_t)(uintptr_t)fc->response;
	fc->response = NULL;
	return 0;
}

static void fake_flush(struct core_chan *chan)
{
}

static void fake_fail(struct core_chan *chan, int err)
{
	fake_of(chan)->down = err;
}

static int fake_get(struct core_chan *chan, struct core_get *get)
{
	assert(chan->caps & CORE_CHAN_GET);
	assert(get->len && get->len <= util_iov_len(get->iov, get->iov_cnt));
	if (fake_engine_cfg.gets_refused) {
		fake_engine_cfg.gets_refused--;
		return -FI_EAGAIN;
	}
	if (fake_engine_cfg.get_err) {
		get->status = fake_engine_cfg.get_err;
		return 1;
	}
	if (fake_engine_cfg.gets_last)
		return 0;
	fake_get_cnt++;
	util_iov_scatter(get->iov, get->iov_cnt, 0, (void *)(uintptr_t)get->remote_addr, get->len);
	get->status = 0;
	return 1;
}

static int fake_expose(struct core_chan *chan, const void *addr, size_t len,
		       struct core_exposure *exposure)
{
	if (fake_engine_cfg.expose_err)
		return fake_engine_cfg.expose_err;
	exposure->key = 0;
	fake_exposed_cnt++;
	return 0;
}

static void fake_unexpose(struct core_chan *chan, struct core_exposure *exposure)
{
	assert(chan == exposure->chan);
	fake_exposed_cnt--;
	assert(fake_exposed_cnt >= 0);
}

static void fake_release(struct core_chan *chan, core_retain_t retain)
{
	struct fake_frame *frame = (void *)(uintptr_t)retain;

	util_list_remove(&frame->link);
	fake_frame_free(frame);
	fake_retained_cnt--;
}

static void fake_deliver(struct fake_chan *fc, struct fake_frame *frame)
{
	const struct core_upcalls *up = fc->up;
	core_retain_t retain = (core_retain_t)(uintptr_t)frame;
	enum core_rx_verdict verdict = CORE_RX_DONE;
	void *context;

	switch (frame->kind) {
	case FAKE_MSG:
		verdict = up->on_msg(&fc->chan, frame->op, frame->data, frame->len, retain);
		break;
	case FAKE_CALL:
		verdict = up->on_call(&fc->chan, frame->ref, frame->data, frame->len, retain);
		break;
	case FAKE_REPLY:
		context = util_idmap_lookup(&fc->calls, frame->ref.call_id);
		assert(context);
		util_idmap_release(&fc->calls, frame->ref.call_id);
		fc->calls_open--;
		fc->response = frame;
		up->on_reply(&fc->chan, context, 0, frame->data, frame->len);
		verdict = fc->response ? CORE_RX_DONE : CORE_RX_RETAIN;
		fc->response = NULL;
		break;
	}
	assert(verdict != CORE_RX_BAD);
	if (verdict == CORE_RX_RETAIN) {
		util_list_push_back(&fc->retained, &frame->link);
		fake_retained_cnt++;
		return;
	}
	fake_frame_free(frame);
}

static void fake_drain(struct core_chan *chan)
{
	struct fake_chan *fc = fake_of(chan);
	struct util_list *first;

	while ((first = util_list_pop(&fc->in))) {
		fc->in_cnt--;
		fake_deliver(fc, UTIL_CONTAINER_OF(first, struct fake_frame, link));
		fc->parsed++;
	}
}

static bool fake_is_busy(struct core_chan *chan)
{
	if (fake_direct_cfg.until_asked)
		fake_direct_cfg.hold = false;
	if (fake_engine_cfg.acks_when_asked)
		fake_engine_cfg.no_acks = false;
	return false;
}

static uint32_t fake_better(struct core_chan *chan, bool regained)
{
	return fake_engine_cfg.better | (regained ? fake_engine_cfg.wants : 0);
}

static void fake_resize(struct core_chan *chan, bool is_larger)
{
	fake_engine_cfg.enlarged += is_larger;
	fake_engine_cfg.reduced += !is_larger;
}

static void fake_stop(struct core_chan *chan)
{
	struct fake_chan *fc = fake_of(chan);

	if (fc->other) {
		fake_exposed_at_stop = fake_exposed_cnt;
		fc->other->other = NULL;
		fc->other->down = fc->other->down ? fc->other->down : -FI_ESHUTDOWN;
	}
	fc->other = NULL;
	fake_frames_free(&fc->in);
	util_list_remove(&fc->link);
}

void fake_chan_close(struct fake_chan *fc)
{
	fake_stop(&fc->chan);
	fake_frames_free(&fc->retained);
	util_idmap_fini(&fc->calls);
	free(fc);
}

static void fake_close(struct core_chan *chan)
{
	fake_chan_close(fake_of(chan));
}

static int fake_open_tags(struct core_chan *chan, uint32_t cnt, struct core_tags_list **list)
{
	return fake_tags_open(cnt, list);
}

static void fake_positions(struct core_chan *chan, uint64_t *sent, uint64_t *parsed)
{
	struct fake_chan *fc = fake_of(chan);

	*sent = fc->sent;
	*parsed = fc->other ? fc->other->parsed : 0;
}

static const struct core_chan_ops fake_chan_ops = {
	.send = fake_send,
	.send_buf = fake_send_buf,
	.send_more = core_chan_send_more,
	.call = fake_call,
	.call_buf = core_chan_call_framed,
	.call_room = fake_call_room,
	.call_shortage = fake_call_shortage,
	.reply = fake_reply,
	.reply_release = core_chan_reply_release,
	.retain = fake_keep,
	.await = fake_await,
	.flush = fake_flush,
	.get = fake_get,
	.expose = fake_expose,
	.unexpose = fake_unexpose,
	.direct = fake_direct_start,
	.access = fake_direct_access,
	.undirect = fake_direct_drop,
	.reg = fake_direct_reg,
	.release = fake_release,
	.drain = fake_drain,
	.fail = fake_fail,
	.is_busy = fake_is_busy,
	.better = fake_better,
	.resize = fake_resize,
	.tags_open = fake_open_tags,
	.positions = fake_positions,
	.stop = fake_stop,
	.close = fake_close,
};

struct fake_chan *fake_chan_new(struct core_ep *ep, const struct core_upcalls *up,
				const struct sockaddr_in *peer)
{
	static struct copyrpc_stats_peer unread;
	struct fake_chan *fc = calloc(1, sizeof(*fc));

	fc->chan.ops = &fake_chan_ops;
	fc->chan.eager_max = fake_engine_cfg.eager_max;
	fc->chan.eager_min = fake_engine_cfg.eager_min;
	fc->chan.caps = fake_engine_cfg.caps;
	fc->chan.resp_lim = fake_engine_cfg.resp_max;
	fc->chan.resp_sure = fake_engine_cfg.resp_max;
	fc->chan.held_max = fake_engine_cfg.held_max;
	fc->chan.posted = &fc->taken;
	fc->chan.stats = &unread;
	fc->chan.reg_dev = fake_direct_dev();
	fc->chan.access_inline = (uint32_t)fake_direct_cfg.inlines;
	fc->ep = ep;
	fc->up = up;
	fc->peer_addr = *peer;
	util_list_init(&fc->in);
	util_list_init(&fc->retained);
	util_idmap_init(&fc->calls);
	return fc;
}

void fake_chan_run(struct fake_chan *fc)
{
	const struct core_upcalls *up = fc->up;

	if (!fc->up_reported) {
		fc->up_reported = true;
		up->on_up(fc->ep, &fc->chan, (struct sockaddr *)&fc->peer_addr, fc->incarnation);
	}
	if ((fc->chan.caps & CORE_CHAN_ASYNC) && !fake_engine_cfg.no_acks && !fc->down)
		up->on_acked(&fc->chan, fc->taken);
	if (!fake_engine_cfg.no_delivery)
		fake_drain(&fc->chan);
	fake_direct_run(&fc->chan, fc->down);
	if (fc->down)
		up->on_down(&fc->chan, fc->down);
}

unsigned fake_engine_awaits(void)
{
	return fake_await_cnt;
}

unsigned fake_engine_retained(void)
{
	return fake_retained_cnt;
}

unsigned fake_engine_gets(void)
{
	return fake_get_cnt;
}

unsigned fake_engine_exposed(void)
{
	return (unsigned)fake_exposed_cnt;
}

unsigned fake_engine_exposed_at_stop(void)
{
	return (unsigned)fake_exposed_at_stop;
}
