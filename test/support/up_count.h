/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Up-calls that count, for tests of channels. All share one record: each test is a process. */
#ifndef TEST_UP_COUNT_H
#define TEST_UP_COUNT_H

#include "core/core_chan.h"

struct up_count {
	unsigned msg_cnt, call_cnt, reply_cnt, get_cnt, down_cnt;
	enum core_rx_verdict verdict; /* of messages and calls; CORE_RX_DONE at first */
	struct core_get *get;         /* last one that ended */
	int down_err;
};

extern struct up_count up_count;

enum core_rx_verdict up_count_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				  uint32_t len, core_retain_t retain);
enum core_rx_verdict up_count_call(struct core_chan *chan, struct core_call_ref ref,
				   const uint8_t *data, uint32_t len, core_retain_t retain);
void up_count_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		    uint32_t len);
void up_count_acked(struct core_chan *chan, uint64_t pos); /* counts nothing */
void up_count_get(struct core_chan *chan, struct core_get *get);
void up_count_down(struct core_chan *chan, int err);

#endif
