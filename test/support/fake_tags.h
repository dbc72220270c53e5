/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching of a device for tests of core/msg/core_offload*.c: implements core_tags.h for the
 * channels of the fake engine.
 *
 * Posts of software take effect in steps of the fake, one at a time: an operation on the list, a
 * request that reaches the other end, the read of a matched message, the notice of its end. Each
 * poll runs all steps of all lists, or as many, in as random an order, as the configuration says.
 *
 * A call that breaks the contract of core_tags.h ends the test (fake_fail.h).
 */
#ifndef FAKE_TAGS_H
#define FAKE_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core_tags.h"
#include "support/rng.h"

struct fake_tags_cfg {
	bool hold;          /* polls run no steps */
	bool hold_requests; /* requests stay on their way, and so do FINs of software */
	bool hold_reads;    /* matched messages stay unread */
	bool is_random;     /* a poll runs `chance` of 100 steps, in random order */
	unsigned chance;
	unsigned refused; /* of 100 operations that are refused with -FI_EAGAIN */
	unsigned room;    /* receives in a list, at most as many as it was opened for */
	int open_err;     /* error of every open, and so on; or 0 */
	int peer_err;
	int connect_err;
	int append_err;
	int remove_err;
	int send_err;
	int finish_err; /* of finish and keep */
	struct rng rng;
};

extern struct fake_tags_cfg fake_tags_cfg;

/** Calls since the reset. */
struct fake_tags_cnt {
	unsigned opens;
	unsigned appends;
	unsigned sends;
	unsigned removes;
	unsigned sure_removes;
	unsigned finishes;
	unsigned keeps;
	unsigned matches;    /* requests that the device gave to a receive */
	unsigned unexpected; /* requests that it reported */
	int lists;           /* open now */
	int registered;      /* receives without a drop, now */
};

extern struct fake_tags_cnt fake_tags_cnt;

/** Sets the defaults: all steps run in order, and nothing fails. */
void fake_tags_reset(void);

/** Implements core_chan_ops.tags_open. */
int fake_tags_open(uint32_t cnt, struct core_tags_list **list);

/** Runs the steps that are left, held or not, as far as `hold_*` of their kind permits. */
void fake_tags_run(void);

/** Reports each open send to a peer as kept, as one does that breaks the rules. */
void fake_tags_keep_again(struct core_tags_peer *peer);

/** Fails a peer, or the whole list: DOWN follows. */
void fake_tags_fail_peer(struct core_tags_peer *peer, int err);
void fake_tags_fail_list(struct core_tags_list *list, int err);

#endif
