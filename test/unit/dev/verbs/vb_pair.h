/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two devices of one process with links between them, for the tests.
 *
 * COPYRPC_TEST_DEVICES ("rxe0,rxe1") names the devices, by default the first one, twice. Without a
 * device, every test that opens a pair is skipped. test/rxe runs them all on a kernel device.
 */
#ifndef TEST_VB_PAIR_H
#define TEST_VB_PAIR_H

#include <stdint.h>

#include "dev/verbs/vb.h"

#define PAIR_PATIENCE_S 240

struct transport {
	struct dev_link *link;
	struct vb_dev *dev;
	uint64_t tx_pos; /* virtual */
	uint64_t rx_pos;
};

/** Depths at which every ring wraps soon. */
extern const struct vb_tune pair_small;

/** Opens both, or skips the test without a device. tune: NULL for the default. */
void pair_open(struct vb_dev *devs[2], const struct vb_tune *tune);

/** Closes all that is open: the .fini of every suite. */
void pair_fini(void);

/** Makes a link with a ring of ring_len at each end; attached if `attach`. */
void pair_link(struct vb_dev *devs[2], uint64_t ring_len, bool attach,
	       struct transport transports[2]);

/** Closes the end of a link that was made last. */
void pair_close_last(void);

/** Writes `len` bytes (a multiple of 32) of a pattern. Returns the result of write_imm. */
int pair_write(struct transport *transport, uint32_t len);

/** Checks the pattern of an arrived write, and moves on. */
void pair_take(struct transport *transport, uint32_t imm);

/** Polls until there is an event of `kind`. Fails the test if it takes too long. */
struct dev_event pair_wait(struct vb_dev *dev, enum dev_event_kind kind);

/** Returns true if `dev` has an event within `ms`. */
bool pair_poll(struct vb_dev *dev, struct dev_event *ev, unsigned ms);

#endif
