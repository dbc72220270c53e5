/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engine for tests: see fake_engine.h. All endpoints of the process are in one global list. */
#include "support/fake_engine.h"

#include <assert.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_direct.h"
#include "util/stats.h"
#include "util/copy.h"
#include "util/idmap.h"
#include "util/list.h"

enum fake_kind { FAKE_MSG, FAKE_CALL, FAKE_REPLY };

struct fake_frame {
	struct util_list link;
	enum fake_kind kind;
	uint32_t op;
	struct core_call_ref ref;
	uint32_t len;
	uint8_t data[];
};

struct fake_chan {
	struct core_chan chan;
	struct fake_chan *other; /* NULL: the other end is closed */
	struct core_engine_ep *eep;
	struct util_list in; /* fake_frame.link */
	unsigned in_cnt;
	unsigned calls_open;
	struct fake_frame *response; /* response in on_reply; NULL once it is retained */
	struct util_idmap calls;
	struct util_list link; /* core_engine_ep.chans */
	int down;              /* -FI_E* for on_down */
	bool up_reported;
	uint64_t taken; /* CORE_CHAN_ASYNC: end of the last message */
	struct sockaddr_in peer_addr;
};

struct fake_connect {
	struct util_list link;
	struct sockaddr_in addr;
	unsigned wait;
};

struct core_engine_ep {
	struct core_engine *engine;
	struct core_ep *ep;
	struct sockaddr_in addr;
	struct util_list chans;
	struct util_list connects;
	struct util_list link; /* fake_world */
};

struct core_engine {
	struct core_progress base;
	const struct core_upcalls *up;
};

struct fake_engine_cfg fake_engine_cfg;
static struct util_list fake_world = { &fake_world, &fake_world };
static uint16_t fake_next_port = 1000;
static unsigned fake_retained_cnt;
static unsigned fake_await_cnt;
static unsigned fake_reconnect_cnt;
static unsigned fake_get_cnt;
static int fake_exposed_cnt;
static uint64_t fake_incarnation = 1;

void fake_engine_reset(void)
{
	fake_engine_cfg = (struct fake_engine_cfg){
		.eager_max = 4096,
		.caps = CORE_CHAN_GET,
		.resp_max = 4096,
		.room = 1000,
		.credit = 1000,
	};
	fake_direct_reset();
	fake_retained_cnt = 0;
	fake_await_cnt = 0;
	fake_reconnect_cnt = 0;
	fake_get_cnt = 0;
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

static void fake_put(struct fake_chan *to, struct fake_frame *frame)
{
	util_list_push_back(&to->in, &frame->link);
	to->in_cnt++;
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

static int fake_get(struct core_chan *chan, struct core_get *get)
{
	assert(chan->caps & CORE_CHAN_GET);
	assert(get->len && get->len <= util_iov_len(get->iov, get->iov_cnt));
	if (fake_engine_cfg.get_err) {
		get->status = fake_engine_cfg.get_err;
		return 1;
	}
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

	memset(frame->data, 0xDB, frame->len);
	free(frame);
	fake_retained_cnt--;
}

static void fake_deliver(struct fake_chan *fc, struct fake_frame *frame);

static void fake_drain(struct core_chan *chan)
{
	struct fake_chan *fc = fake_of(chan);
	struct util_list *first;

	while ((first = util_list_pop(&fc->in))) {
		fc->in_cnt--;
		fake_deliver(fc, UTIL_CONTAINER_OF(first, struct fake_frame, link));
	}
}

static bool fake_is_busy(struct core_chan *chan)
{
	return false;
}

static void fake_stop(struct core_chan *chan)
{
	struct fake_chan *fc = fake_of(chan);
	struct util_list *first;

	if (fc->other) {
		fc->other->other = NULL;
		fc->other->down = fc->other->down ? fc->other->down : -FI_ESHUTDOWN;
	}
	fc->other = NULL;
	while ((first = util_list_pop(&fc->in)))
		free(UTIL_CONTAINER_OF(first, struct fake_frame, link));
	util_list_remove(&fc->link);
}

static void fake_close(struct core_chan *chan)
{
	struct fake_chan *fc = fake_of(chan);

	fake_stop(chan);
	util_idmap_fini(&fc->calls);
	free(fc);
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
	.is_busy = fake_is_busy,
	.stop = fake_stop,
	.close = fake_close,
};

static struct core_engine *fake_engine_of(struct core_progress *base)
{
	return UTIL_CONTAINER_OF(base, struct core_engine, base);
}

static int fake_open(const struct core_upcalls *up, struct core_progress **base)
{
	struct core_engine *engine = calloc(1, sizeof(*engine));

	engine->base.wait_fd = -1;
	engine->up = up;
	*base = &engine->base;
	return 0;
}

static void fake_engine_close(struct core_progress *base)
{
	free(fake_engine_of(base));
}

static int fake_ep_open(struct core_progress *base, struct core_ep *ep, const struct sockaddr *addr,
			struct core_engine_ep **out)
{
	struct core_engine_ep *eep = calloc(1, sizeof(*eep));

	eep->engine = fake_engine_of(base);
	eep->ep = ep;
	eep->addr.sin_family = AF_INET;
	eep->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	eep->addr.sin_port = htons(fake_next_port++);
	if (addr && ((const struct sockaddr_in *)addr)->sin_port)
		eep->addr.sin_port = ((const struct sockaddr_in *)addr)->sin_port;
	util_list_init(&eep->chans);
	util_list_init(&eep->connects);
	util_list_push_back(&fake_world, &eep->link);
	*out = eep;
	return 0;
}

static void fake_ep_addr(struct core_engine_ep *eep, struct sockaddr_storage *addr)
{
	memcpy(addr, &eep->addr, sizeof(eep->addr));
}

static void fake_ep_close(struct core_engine_ep *eep)
{
	struct util_list *first;

	while ((first = util_list_first(&eep->chans)))
		fake_close(&UTIL_CONTAINER_OF(first, struct fake_chan, link)->chan);
	while ((first = util_list_pop(&eep->connects)))
		free(UTIL_CONTAINER_OF(first, struct fake_connect, link));
	util_list_remove(&eep->link);
	free(eep);
}

static int fake_connect(struct core_engine_ep *eep, const struct sockaddr *addr, bool was_up)
{
	struct fake_connect *c = calloc(1, sizeof(*c));

	memcpy(&c->addr, addr, sizeof(c->addr));
	c->wait = fake_engine_cfg.lazy_up;
	fake_reconnect_cnt += was_up;
	util_list_push_back(&eep->connects, &c->link);
	return 0;
}

static void fake_connect_cancel(struct core_engine_ep *eep, const struct sockaddr *addr)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &eep->connects) {
		struct fake_connect *c = UTIL_CONTAINER_OF(it, struct fake_connect, link);

		if (memcmp(&c->addr, addr, sizeof(c->addr)))
			continue;
		util_list_remove(it);
		free(c);
	}
}

static struct fake_chan *fake_chan_new(struct core_engine_ep *eep, const struct sockaddr_in *peer)
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
	fc->eep = eep;
	fc->peer_addr = *peer;
	util_list_init(&fc->in);
	util_idmap_init(&fc->calls);
	util_list_push_back(&eep->chans, &fc->link);
	return fc;
}

static struct core_engine_ep *fake_find(const struct sockaddr_in *addr)
{
	struct util_list *it;

	for (it = fake_world.next; it != &fake_world; it = it->next) {
		struct core_engine_ep *eep = UTIL_CONTAINER_OF(it, struct core_engine_ep, link);

		if (eep->addr.sin_port == addr->sin_port)
			return eep;
	}
	return NULL;
}

static bool fake_has_chan(struct core_engine_ep *eep, const struct sockaddr_in *addr)
{
	struct util_list *it;

	for (it = eep->chans.next; it != &eep->chans; it = it->next) {
		struct fake_chan *fc = UTIL_CONTAINER_OF(it, struct fake_chan, link);

		if (fc->peer_addr.sin_port == addr->sin_port && fc->other)
			return true;
	}
	return false;
}

static void fake_run_connects(struct core_engine_ep *eep)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &eep->connects) {
		struct fake_connect *c = UTIL_CONTAINER_OF(it, struct fake_connect, link);
		struct sockaddr_in addr = c->addr;
		struct core_engine_ep *to = fake_find(&addr);

		if (c->wait) {
			c->wait--;
			continue;
		}
		util_list_remove(it);
		free(c);
		if (!to || fake_engine_cfg.connect_err) {
			eep->engine->up->on_connect_failed(eep->ep, (struct sockaddr *)&addr,
							   to ? fake_engine_cfg.connect_err
							      : -FI_ECONNREFUSED);
		} else if (!fake_has_chan(eep, &addr)) {
			struct fake_chan *a = fake_chan_new(eep, &addr);
			struct fake_chan *b = fake_chan_new(to, &eep->addr);

			a->other = b;
			b->other = a;
		}
	}
}

static void fake_deliver(struct fake_chan *fc, struct fake_frame *frame)
{
	const struct core_upcalls *up = fc->eep->engine->up;
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
		fake_retained_cnt++;
		return;
	}
	memset(frame->data, 0xDB, frame->len);
	free(frame);
}

static void fake_run_chan(struct fake_chan *fc)
{
	const struct core_upcalls *up = fc->eep->engine->up;

	if (!fc->up_reported) {
		fc->up_reported = true;
		up->on_up(fc->eep->ep, &fc->chan, (struct sockaddr *)&fc->peer_addr,
			  fake_incarnation++);
	}
	if ((fc->chan.caps & CORE_CHAN_ASYNC) && !fake_engine_cfg.no_acks && !fc->down)
		up->on_acked(&fc->chan, fc->taken);
	if (!fake_engine_cfg.no_delivery)
		fake_drain(&fc->chan);
	fake_direct_run(&fc->chan, fc->down);
	if (fc->down)
		up->on_down(&fc->chan, fc->down);
}

static void fake_progress(struct core_progress *base)
{
	struct core_engine *engine = fake_engine_of(base);
	struct util_list *it, *ct, *tmp;

	for (it = fake_world.next; it != &fake_world; it = it->next) {
		struct core_engine_ep *eep = UTIL_CONTAINER_OF(it, struct core_engine_ep, link);

		if (eep->engine != engine)
			continue;
		fake_run_connects(eep);
		UTIL_LIST_FOREACH_SAFE (ct, tmp, &eep->chans)
			fake_run_chan(UTIL_CONTAINER_OF(ct, struct fake_chan, link));
	}
}

void fake_engine_kill(struct core_ep *a, struct core_ep *b, int err)
{
	struct util_list *it, *ct;

	for (it = fake_world.next; it != &fake_world; it = it->next) {
		struct core_engine_ep *eep = UTIL_CONTAINER_OF(it, struct core_engine_ep, link);

		if (eep->ep != a)
			continue;
		for (ct = eep->chans.next; ct != &eep->chans; ct = ct->next) {
			struct fake_chan *fc = UTIL_CONTAINER_OF(ct, struct fake_chan, link);

			if (!fc->other || fc->other->eep->ep != b)
				continue;
			fc->down = err;
			fc->other->down = err;
			fc->other->other = NULL;
			fc->other = NULL;
		}
	}
}

unsigned fake_engine_queued(void)
{
	struct util_list *it, *ct;
	unsigned cnt = 0;

	for (it = fake_world.next; it != &fake_world; it = it->next) {
		struct core_engine_ep *eep = UTIL_CONTAINER_OF(it, struct core_engine_ep, link);

		for (ct = eep->chans.next; ct != &eep->chans; ct = ct->next)
			cnt += UTIL_CONTAINER_OF(ct, struct fake_chan, link)->in_cnt;
	}
	return cnt;
}

unsigned fake_engine_reconnects(void)
{
	return fake_reconnect_cnt;
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

static int fake_arm(struct core_progress *base)
{
	return 0; /* only progress moves frames */
}

static void fake_disarm(struct core_progress *base)
{
}

const struct core_engine_ops fake_engine_ops = {
	.ep_open = fake_ep_open,
	.ep_addr = fake_ep_addr,
	.ep_close = fake_ep_close,
	.connect = fake_connect,
	.connect_cancel = fake_connect_cancel,
};

const struct core_progress_ops fake_progress_ops = {
	.name = "fake",
	.open = fake_open,
	.close = fake_engine_close,
	.progress = fake_progress,
	.arm = fake_arm,
	.disarm = fake_disarm,
};
