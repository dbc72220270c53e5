/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What if we are the peer?
 *
 * A channel whose other end is the same endpoint: a send is an up-call, a call's reply likewise, a
 * fetch is a memcpy. It never runs out of anything but memory.
 *
 * Shown by test/unit/core/test_core_self.c.
 */
#ifndef CORE_SELF_H
#define CORE_SELF_H

struct core_chan;

/** NULL: no memory. Freed by ops->close. */
struct core_chan *core_self_open(void);

#endif
