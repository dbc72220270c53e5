/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Objects and functions that the files of dev_tag share. */
#ifndef INTEG_DEV_TAG_H
#define INTEG_DEV_TAG_H

#include "dev/mlx5/m5_tm.h"
#include "dev_pair.h"

#define TAGS     32u    /* receives that the device's list takes */
#define SENDS    8u     /* in flight */
#define LEN_MAX  40000u /* of a message */
#define STUCK_NS (100 * UTIL_NS_PER_S)

struct send {
	struct m5_tm_send tm;
	bool is_open;
	bool is_kept; /* by the other side, which said so */
	uint8_t *buf;
};

struct recv {
	struct m5_tm_recv tm;
	uint64_t tag, mask;
	uint32_t len;
	uint8_t *buf;
};

extern struct m5_tm *tm;
extern struct m5_tm_peer *peer;
extern struct send sends[SENDS];
extern struct recv recvs[TAGS];
extern uint32_t lkey; /* of all buffers of receives */

/** Polls until there is an event. */
void tag_wait(struct m5_tm_event *ev);

/**
 * Sleeps for a short time, unless there is something to do or the device wakes this process. Polls
 * once. Returns true if there is an event. Counts in *woken the sleeps that the device has ended.
 */
bool tag_sleep(struct m5_tm_event *ev, uint32_t *woken);

/** Returns 64 random bits, the same for the same x. */
uint64_t tag_mix(uint64_t x);

/**
 * Fills the buffer of a free send and sends it as message `seq`, half of them with data. Returns
 * false without room.
 */
bool tag_send(uint32_t seq, uint64_t tag, uint32_t len);

/** Checks the first `len` bytes of message seq. */
void tag_check(const uint8_t *buf, uint32_t seq, uint32_t len);

/** Checks the data of the other side's message seq. */
void tag_check_data(uint32_t seq, bool has_data, uint32_t data);

/** Exchanges `msgs` messages with the other side, matched in every way. */
void match_play(uint32_t msgs);

#endif
