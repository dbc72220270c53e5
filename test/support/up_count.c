/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Up-calls that count: see up_count.h. */
#include "support/up_count.h"

struct up_count up_count;

enum core_rx_verdict up_count_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				  uint32_t len, core_retain_t retain)
{
	up_count.msg_cnt++;
	return up_count.verdict;
}

enum core_rx_verdict up_count_call(struct core_chan *chan, struct core_call_ref ref,
				   const uint8_t *data, uint32_t len, core_retain_t retain)
{
	up_count.call_cnt++;
	return up_count.verdict;
}

void up_count_reply(struct core_chan *chan, void *context, int status, const uint8_t *data,
		    uint32_t len)
{
	up_count.reply_cnt++;
}

void up_count_acked(struct core_chan *chan, uint64_t pos)
{
}

void up_count_get(struct core_chan *chan, struct core_get *get)
{
	up_count.get_cnt++;
	up_count.get = get;
}

void up_count_down(struct core_chan *chan, int err)
{
	up_count.down_cnt++;
	up_count.down_err = err;
}
