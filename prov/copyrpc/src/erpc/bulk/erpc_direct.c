/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_direct.h. */
#include "erpc/bulk/erpc_direct.h"

#include <assert.h>
#include <rdma/fi_errno.h>

#include "erpc/bulk/erpc_get.h"
#include "util/bits.h"

#define ERPC_DIRECT_ROUNDS 4u /* calls of the device before responses to its packets leave */
#define ERPC_DIRECT_SKIP   8u /* polls after a wrong guess */

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
		first = s->gets.pkts[s->gets.pkts_at % ERPC_GET_PKTS_MAX];
		erpc_direct_drop(s);
	}
	if (ep->direct_placed)
		return;
	if (ep->direct_session == s && !ep->direct_skip)
		ep->direct_skip = ERPC_DIRECT_SKIP;
	erpc_direct_begin(s);
}

/**
 * Returns the number of consecutive packets expected next for one slot, and the slot; 0 if unknown.
 */
static uint32_t erpc_direct_run(struct erpc_session *s, uint32_t *slot)
{
	uint32_t n = 0, max;

	while (s->gets.pkts_cnt) {
		*slot = s->gets.pkts[s->gets.pkts_at % ERPC_GET_PKTS_MAX];
		if (s->tx[*slot].get_op && erpc_client_in_flight(&s->tx[*slot].c))
			break;
		erpc_direct_drop(s);
	}
	max = s->gets.pkts_cnt ? erpc_client_in_flight(&s->tx[*slot].c) : 0;
	max = max < s->gets.pkts_cnt ? max : s->gets.pkts_cnt;
	while (n < max && s->gets.pkts[(s->gets.pkts_at + n) % ERPC_GET_PKTS_MAX] == *slot)
		n++;
	return n;
}

/**
 * Computes the destination of the next `cnt` packets of the get in `slot`. Returns false if it is
 * not contiguous.
 */
static bool erpc_direct_of(const struct erpc_session *s, uint32_t slot, uint32_t cnt,
			   struct dev_dgram_target *target)
{
	const struct erpc_tx *tx = &s->tx[slot];
	const struct core_get *get = tx->get_op->get;
	uint64_t off = (uint64_t)erpc_get_part_of(tx, tx->c.rx) * s->payload;
	uint64_t rest = tx->c.resp_max - off, len = (uint64_t)cnt * s->payload;

	/* A wrong guess must not overwrite packets that arrived early. */
	if (get->iov_cnt != 1 || tx->c.ahead)
		return false;
	*target = (struct dev_dgram_target){
		.base = (uint8_t *)get->iov->iov_base + tx->get_off + off,
		.len = (uint32_t)(len < rest ? len : rest),
		.head_len = WIRE_ERPC_HDR_LEN,
		.part_len = s->payload,
	};
	return true;
}

/** Returns true if the packet is the next one of the get in `slot`. */
static bool erpc_direct_is(const struct erpc_session *s, uint32_t slot,
			   const struct dev_dgram_in *in)
{
	const struct erpc_tx *tx = &s->tx[slot];
	struct wire_erpc_hdr h;

	return wire_erpc_get(&h, in->data, in->len) && h.kind == WIRE_ERPC_RESP &&
	       h.session == s->num && h.tag == s->tag && h.req_num == tx->c.req_num &&
	       h.pkt_num == tx->c.rx && tx->get_op && dev_dgram_is_from(s->ah, in);
}

/**
 * Processes packets received at the target. Returns false after another packet, which is left to
 * poll.
 */
static bool erpc_direct_take(struct erpc_ep *ep, uint32_t slot,
			     const struct dev_dgram_target *target, const struct dev_dgram_in *in,
			     unsigned cnt)
{
	struct erpc_session *s = ep->direct_session;
	unsigned i;

	for (i = 0; i < cnt; i++) {
		if (UTIL_UNLIKELY(!erpc_direct_is(s, slot, &in[i]))) {
			ep->dg->ops->put_back(ep->dg, target, i);
			return false;
		}
		ep->direct_placed = true;
		erpc_ep_rx_burst(ep, &in[i], 1);
		ep->direct_placed = false;
	}
	return true;
}

bool erpc_direct_poll(struct erpc_ep *ep, bool *more)
{
	struct dev_dgram_in in[ERPC_GET_PKTS_MAX];
	unsigned rounds = ERPC_DIRECT_ROUNDS;
	struct dev_dgram_target target;
	uint32_t slot, cnt;
	int n;

	if (ep->direct_skip) {
		ep->direct_skip--;
		return false;
	}
	while (rounds--) {
		cnt = ep->direct_session ? erpc_direct_run(ep->direct_session, &slot) : 0;
		if (!cnt) {
			ep->direct_session = NULL;
			return false;
		}
		if (!erpc_direct_of(ep->direct_session, slot, cnt, &target))
			return false;
		n = ep->dg->ops->poll_into(ep->dg, &target, in, cnt);
		if (n <= 0)
			return n == -FI_EAGAIN;
		if (!erpc_direct_take(ep, slot, &target, in, (unsigned)n))
			return false;
	}
	*more = true;
	return true;
}
