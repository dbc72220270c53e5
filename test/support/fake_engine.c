/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engine for tests: see fake_engine.h. All endpoints of the process are in one global list. */
#include "support/fake_engine.h"

#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_ep.h"
#include "support/fake_chan.h"
#include "support/fake_direct.h"
#include "util/list.h"

struct fake_connect {
	struct util_list link;
	struct sockaddr_in addr;
	unsigned wait;
};

struct core_engine_ep {
	struct core_engine *engine;
	struct core_ep *ep;
	struct sockaddr_in addr;
	uint64_t incarnation;
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
static uint64_t fake_next_incarnation = 1;
static unsigned fake_reconnect_cnt;

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
	fake_chan_reset();
	fake_reconnect_cnt = 0;
}

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
	const struct sockaddr_in *in = (const void *)addr;
	struct core_engine_ep *eep = calloc(1, sizeof(*eep));

	eep->engine = fake_engine_of(base);
	eep->ep = ep;
	eep->incarnation = fake_next_incarnation++;
	eep->addr.sin_family = AF_INET;
	eep->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	eep->addr.sin_port = htons(fake_next_port++);
	if (in && in->sin_port)
		eep->addr.sin_port = in->sin_port;
	if (in)
		memcpy(eep->addr.sin_zero, in->sin_zero, sizeof(in->sin_zero));
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
		fake_chan_close(UTIL_CONTAINER_OF(first, struct fake_chan, link));
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

static struct fake_chan *fake_chan_add(struct core_engine_ep *eep, const struct sockaddr_in *peer)
{
	struct fake_chan *fc = fake_chan_new(eep->ep, eep->engine->up, peer);

	util_list_push_back(&eep->chans, &fc->link);
	return fc;
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
			struct fake_chan *a = fake_chan_add(eep, &addr);
			struct fake_chan *b = fake_chan_add(to, &eep->addr);

			a->other = b;
			b->other = a;
			a->incarnation = to->incarnation;
			b->incarnation = eep->incarnation;
		}
	}
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
			fake_chan_run(UTIL_CONTAINER_OF(ct, struct fake_chan, link));
	}
}

void fake_engine_restart(struct core_ep *ep)
{
	ep->eep->incarnation = fake_next_incarnation++;
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

			if (!fc->other || fc->other->ep != b)
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
