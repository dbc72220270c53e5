/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State that the parts of dev_link share.
 *
 *   dev_link        messages over all links, sleep, the end
 *   dev_link_bulk   gets and puts beside them
 *   dev_link_churn  links that come and go, made by this thread or by another
 *   dev_link_move   moves of links between a queue pair and DC
 */
#ifndef INTEG_DEV_LINK_H
#define INTEG_DEV_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "dev_pair.h"
#include "util/clock.h"

#define LINKS    6u /* at most */
#define BREAKS   3u /* links that are broken, the first ones */
#define LIMIT_NS (100 * UTIL_NS_PER_S)

struct end {
	struct dev_link *link;
	uint64_t tx_pos, released, rx_pos;
	uint32_t sent, got, eagain;
	uint32_t asked, acked; /* writes with a requested completion, and completed ones */
	bool reading;
	bool is_gone; /* broken and closed */
};

extern const struct dev_ops *ops;
extern struct dev *dev;
extern struct end ends[LINKS];
extern unsigned links; /* number in use */
extern bool moves;     /* links move between a queue pair and DC all the time */
extern bool is_broken; /* one end breaks links meanwhile */

/* dev_link_bulk.c */
void bulk_make_buffers(void);
/** Checks that buffers are registered with the necessary rights only. */
void bulk_check_memory(void);
/** Starts one if none is open and some remain. bulk_done: one has ended. */
void bulk_start(void);
void bulk_done(void);
bool bulk_is_over(void);
void bulk_report(void);
/** Checks that the peer's puts are complete. */
void bulk_check_puts(void);
void bulk_free(void);

/* dev_link_churn.c */
void churn(void);
void loop_start(void);
/** Continues the other thread's links. loop_take returns true for an event of theirs. */
void loop_use(void);
bool loop_take(const struct dev_event *ev);
/** Stops the other thread; polls meanwhile. Returns its number of rounds. */
uint32_t loop_stop(void (*poll_one)(void));

/* dev_link_move.c */
/** Begins a move of a link that has sent a message, every 100 messages. */
void move_now_and_then(struct end *end);
/** Breaks the way that a link's writes take, unless it is between two at the moment. */
void move_break(struct end *end);
/** Checks that links moved often enough while `msgs` messages were sent on each. */
void move_check(uint32_t msgs);

#endif
