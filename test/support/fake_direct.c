/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Direct accesses of the fake engine: see fake_direct.h. */
#include "support/fake_direct.h"

#include <assert.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_reg.h"
#include "core/rma/core_rma_simple.h"
#include "util/copy.h"
#include "util/list.h"

struct fake_reg {
	struct core_reg reg; /* First member */
	struct util_list link;
	uint8_t *addr;
	size_t len;
};

struct fake_access {
	struct util_list link;
	struct core_chan *chan;
	struct core_get *get;
	bool write;
};

/** Simple access in progress. */
struct fake_simple {
	struct util_list link;
	struct core_chan *chan;
	struct core_access_args args;
	uint8_t bytes[64]; /* of a write that took them */
};

struct fake_direct_cfg fake_direct_cfg;
static struct util_list fake_simples = { &fake_simples, &fake_simples };
static unsigned fake_simple_cnt, fake_simple_flags;
static uint32_t fake_simple_ended;
static struct util_list fake_regs = { &fake_regs, &fake_regs };
static struct util_list fake_accesses = { &fake_accesses, &fake_accesses };
static unsigned fake_cnt, fake_reg_cnt, fake_last_flags;
static bool fake_last_registered;
static uint64_t fake_next_key = 0x1000;

void fake_direct_reset(void)
{
	fake_direct_cfg = (struct fake_direct_cfg){ 0 };
	fake_cnt = 0;
	fake_simple_cnt = fake_simple_ended = 0;
}

const void *fake_direct_dev(void)
{
	return fake_direct_cfg.on ? &fake_direct_cfg : NULL;
}

int fake_direct_start(struct core_chan *chan, struct core_get *get, unsigned flags)
{
	struct fake_access *access = (struct fake_access *)get->engine;

	assert(chan->reg_dev && get->len && sizeof(*access) <= sizeof(get->engine));
	if (fake_direct_cfg.err)
		return fake_direct_cfg.err;
	*access = (struct fake_access){ .chan = chan,
					.get = get,
					.write = flags & CORE_DIRECT_WRITE };
	util_list_push_back(&fake_accesses, &access->link);
	fake_last_flags = flags;
	fake_last_registered = get->reg;
	fake_cnt++;
	return 0;
}

void fake_direct_drop(struct core_chan *chan, struct core_get *get)
{
	struct fake_access *access = (struct fake_access *)get->engine;

	assert(access->chan == chan);
	util_list_remove(&access->link);
}

static void fake_reg_close(struct core_reg *base)
{
	struct fake_reg *reg = (struct fake_reg *)base;

	assert(!base->users);
	util_list_remove(&reg->link);
	fake_reg_cnt--;
	free(reg);
}

int fake_direct_reg(struct core_chan *chan, const void *addr, size_t len, unsigned access,
		    struct core_reg **out)
{
	struct fake_reg *reg;

	if (fake_direct_cfg.reg_err)
		return fake_direct_cfg.reg_err;
	reg = calloc(1, sizeof(*reg));
	reg->reg.dev = chan->reg_dev;
	reg->reg.access = access;
	reg->reg.key = fake_next_key++;
	reg->reg.close = fake_reg_close;
	reg->addr = (uint8_t *)(uintptr_t)addr;
	reg->len = len;
	util_list_push_back(&fake_regs, &reg->link);
	fake_reg_cnt++;
	*out = &reg->reg;
	return 0;
}

static bool fake_permits(const struct fake_access *access)
{
	const struct core_get *get = access->get;
	unsigned right = access->write ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	struct util_list *it;

	for (it = fake_regs.next; it != &fake_regs; it = it->next) {
		struct fake_reg *reg = UTIL_CONTAINER_OF(it, struct fake_reg, link);

		if (reg->reg.key == get->remote_key)
			return (reg->reg.access & right) &&
			       get->remote_addr >= (uintptr_t)reg->addr &&
			       get->remote_addr + get->len <= (uintptr_t)reg->addr + reg->len;
	}
	return false;
}

static void fake_move(const struct fake_access *access)
{
	struct core_get *get = access->get;
	void *remote = (void *)(uintptr_t)get->remote_addr;

	if (access->write)
		util_iov_gather(remote, get->iov, get->iov_cnt, 0, get->len);
	else
		util_iov_scatter(get->iov, get->iov_cnt, 0, remote, get->len);
}

static void fake_end(struct fake_access *access, int err)
{
	struct core_get *get = access->get;

	util_list_remove(&access->link);
	get->status = err ? err : fake_permits(access) ? 0 : -FI_EREMOTEIO;
	if (!get->status)
		fake_move(access);
	get->done(get);
}

int fake_direct_access(struct core_chan *chan, const struct core_access_args *args)
{
	bool takes = (args->flags & CORE_DIRECT_WRITE) && args->len <= fake_direct_cfg.inlines;
	struct fake_simple *simple;

	if (fake_direct_cfg.simple_err)
		return fake_direct_cfg.simple_err;
	assert(takes || args->reg);
	simple = calloc(1, sizeof(*simple));
	simple->chan = chan;
	simple->args = *args;
	if (takes) {
		memcpy(simple->bytes, args->buf, args->len);
		simple->args.buf = simple->bytes;
	}
	util_list_push_back(&fake_simples, &simple->link);
	fake_simple_flags = args->flags;
	fake_simple_cnt++;
	return 0;
}

/** Ends the simple accesses of a channel, and reports all at once; with an error only forgets. */
static void fake_simple_run(struct core_chan *chan, int err)
{
	struct util_list *it, *tmp;
	uint32_t before = fake_simple_ended;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &fake_simples) {
		struct fake_simple *simple = UTIL_CONTAINER_OF(it, struct fake_simple, link);
		void *remote = (void *)(uintptr_t)simple->args.remote_addr;

		if (simple->chan != chan)
			continue;
		if (!err && (simple->args.flags & CORE_DIRECT_WRITE))
			memcpy(remote, simple->args.buf, simple->args.len);
		else if (!err)
			memcpy((void *)(uintptr_t)simple->args.buf, remote, simple->args.len);
		fake_simple_ended += !err;
		util_list_remove(it);
		free(simple);
	}
	if (fake_simple_ended != before)
		core_rma_simple_ended(chan, fake_simple_ended);
}

unsigned fake_direct_simple_cnt(void)
{
	return fake_simple_cnt;
}

unsigned fake_direct_simple_flags(void)
{
	return fake_simple_flags;
}

void fake_direct_run(struct core_chan *chan, int err)
{
	struct util_list *it, *tmp;

	if (fake_direct_cfg.hold && !err)
		return;
	fake_simple_run(chan, err);
	UTIL_LIST_FOREACH_SAFE (it, tmp, &fake_accesses) {
		struct fake_access *access = UTIL_CONTAINER_OF(it, struct fake_access, link);

		if (access->chan == chan)
			fake_end(access, err);
	}
}

unsigned fake_direct_cnt(void)
{
	return fake_cnt;
}

unsigned fake_direct_open(void)
{
	struct util_list *it;
	unsigned cnt = 0;

	for (it = fake_accesses.next; it != &fake_accesses; it = it->next)
		cnt++;
	return cnt;
}

unsigned fake_direct_regs(void)
{
	return fake_reg_cnt;
}

unsigned fake_direct_flags(void)
{
	return fake_last_flags;
}

bool fake_direct_was_registered(void)
{
	return fake_last_registered;
}
