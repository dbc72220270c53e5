/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_direct.h. */
#include "erpc/bulk/erpc_direct.h"

#include <assert.h>

#include "erpc/bulk/erpc_get.h"
#include "util/bits.h"
#include "util/stats.h"

#define ERPC_DIRECT_SKIP 8u /* polls after a wrong guess */

static_assert(ERPC_GET_PKTS_MAX == ERPC_CREDITS_MAX, "one entry per packet in flight");

void erpc_direct_begin(struct erpc_session *s)
{
	if (s->ep->dg->ops->poll_into)
		s->ep->direct_session = s;
}

static void erpc_direct_drop(struct erpc_session *s)
{
	s->gets.pkts_at++;
	s->gets.pkts_cnt--;
}

void erpc_direct_received(struct erpc_session *s, uint32_t slot)
{
	struct erpc_ep *ep = s->ep;
	uint32_t first = ERPC_SLOTS;

	while (s->gets.pkts_cnt && first != slot) {
		first = erpc_gets_pkt(&s->gets, s->gets.pkts_at);
		erpc_direct_drop(s);
	}
	if (ep->direct_placed)
		return;
	if (ep->direct_session == s && !ep->direct_skip)
		ep->direct_skip = ERPC_DIRECT_SKIP;
	erpc_direct_begin(s);
}

uint32_t erpc_direct_expected(struct erpc_session *s, uint32_t *slot)
{
	uint32_t n, max;

	while (s->gets.pkts_cnt) {
		*slot = erpc_gets_pkt(&s->gets, s->gets.pkts_at);
		if (s->tx[*slot].get_op && erpc_client_in_flight(&s->tx[*slot].c))
			break;
		erpc_direct_drop(s);
	}
	if (!s->gets.pkts_cnt)
		return 0;
	max = erpc_client_in_flight(&s->tx[*slot].c);
	n = erpc_gets_run(&s->gets);
	return n < max ? n : max;
}

bool erpc_direct_target(const struct erpc_session *s, uint32_t slot, uint32_t cnt,
			struct dev_dgram_target *target)
{
	const struct erpc_tx *tx = &s->tx[slot];
	const struct core_get *get = tx->get_op->get;
	uint64_t off = (uint64_t)erpc_get_part_of(tx, tx->c.rx) * s->payload;
	uint64_t rest = tx->c.resp_max - off, len = (uint64_t)cnt * s->payload;

	/* A wrong guess must not overwrite packets that arrived early. */
	if (get->iov_cnt != 1 || !erpc_ahead_is_empty(&tx->c.ahead))
		return false;
	*target = (struct dev_dgram_target){
		.base = (uint8_t *)get->iov->iov_base + tx->get_off + off,
		.len = (uint32_t)(len < rest ? len : rest),
		.head_len = WIRE_ERPC_HDR_LEN,
		.part_len = s->payload,
	};
	return true;
}

/** Returns the number of packets in a row from in[0], a full part, that differ by their number. */
static unsigned erpc_direct_row(const struct erpc_session *s, const struct dev_dgram_in *in,
				unsigned cnt)
{
	unsigned n = 1;

	while (n < cnt && in[n].len == in[0].len && dev_dgram_is_from(s->ah, &in[n]) &&
	       wire_erpc_follows(in[0].data, in[n].data, n))
		n++;
	return n;
}

/** Returns true if a packet is the next part of the get in `slot`, and a whole one. */
static bool erpc_direct_begins_row(const struct erpc_session *s, uint32_t slot,
				   const struct dev_dgram_in *in)
{
	const struct erpc_tx *tx = &s->tx[slot];
	struct wire_erpc_hdr h;

	return !s->err && !s->ep->paces && erpc_ahead_is_empty(&tx->c.ahead) &&
	       erpc_direct_is_next(s, slot, in, &h) && h.req_type != WIRE_ERPC_REFUSED &&
	       h.msg_size == tx->c.resp_max && in->len == WIRE_ERPC_HDR_LEN + s->payload;
}

unsigned erpc_direct_take_run(struct erpc_session *s, uint32_t slot, const struct dev_dgram_in *in,
			      unsigned cnt)
{
	struct erpc_client *client = &s->tx[slot].c;
	uint32_t flying = erpc_client_in_flight(client), i, n;

	cnt = cnt < flying ? cnt : flying;
	if (cnt < 2 || !erpc_direct_begins_row(s, slot, in))
		return 0;
	n = erpc_direct_row(s, in, cnt) - 1;
	client->rx = (uint16_t)(client->rx + n);
	s->flow.credits += n;
	s->gets.pkts_at += n;
	s->gets.pkts_cnt -= n;
	util_stats_add(&s->ep->stats->rx_pkts, n);
	for (i = 0; i < n; i++)
		s->ep->dg->ops->release(s->ep->dg, in[i].slot);
	return n;
}
