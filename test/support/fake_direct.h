/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct accesses of the fake engine (fake_engine.h): a device that accesses registered memory of
 * this process. An access ends in the progress of its channel. One that no open registration
 * permits moves no byte and ends with -FI_EREMOTEIO.
 */
#ifndef FAKE_DIRECT_H
#define FAKE_DIRECT_H

#include <stdbool.h>

#include "core/core_chan.h"

struct fake_direct_cfg {
	bool on;          /* new channels can do it */
	bool hold;        /* accesses do not end */
	bool until_asked; /* hold ends when the channel is asked whether it is busy */
	int err;          /* result of each start, or 0 */
	int reg_err;
	size_t inlines; /* longest write whose bytes are taken at its start */
	int simple_err; /* result of each start of a simple access, or 0 */
};

extern struct fake_direct_cfg fake_direct_cfg;

/** Implement core_chan_ops. */
int fake_direct_start(struct core_chan *chan, struct core_get *get, unsigned flags);
void fake_direct_drop(struct core_chan *chan, struct core_get *get);
int fake_direct_reg(struct core_chan *chan, const void *addr, size_t len, unsigned access,
		    struct core_reg **reg);

int fake_direct_access(struct core_chan *chan, const struct core_access_args *args);

void fake_direct_reset(void);
/** Return the simple accesses started since the reset, and the flags of the last one. */
unsigned fake_direct_simple_cnt(void);
unsigned fake_direct_simple_flags(void);
/** Returns the device of new channels, or NULL. */
const void *fake_direct_dev(void);
/** Ends the accesses of a channel: with `err`, or with what the device says. */
void fake_direct_run(struct core_chan *chan, int err);

/** Return the accesses started since the reset, those in progress, and open registrations. */
unsigned fake_direct_cnt(void);
unsigned fake_direct_open(void);
unsigned fake_direct_regs(void);
/** Returns the flags of the last access, and whether it had a registration of its buffers. */
unsigned fake_direct_flags(void);
bool fake_direct_was_registered(void);

#endif
