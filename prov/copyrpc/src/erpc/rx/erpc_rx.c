/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_rx.h. */
#include "erpc/rx/erpc_rx.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "erpc/base/erpc_session.h"
#include "erpc/bulk/erpc_direct.h"
#include "erpc/rx/erpc_pkt.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_now.h"
#include "erpc/tx/erpc_stage.h"
#include "util/bits.h"
#include "util/stats.h"

/* Packets between the one that is handled and the one whose session names bytes to fetch. */
#define ERPC_RX_AHEAD 2

/* Place of the kind of a batch's first frame: behind its length. */
#define ERPC_RX_KIND_AT (WIRE_ERPC_HDR_LEN + (uint32_t)sizeof(struct wire_erpc_batch) + 3)

#define ERPC_DIRECT_ROUNDS 8u /* calls of the device before responses to its packets leave */

/**
 * Keeps a packet until its session is attached, if there is space. Returns true if the buffer was
 * kept.
 */
static bool __attribute__((noinline))
erpc_rx_save_cold(struct erpc_ep *ep, const struct dev_dgram_in *in)
{
	if (ep->saved_cnt == ERPC_POLL_BURST) {
		ep->stats->rx_no_memory++;
		return false;
	}
	ep->saved[ep->saved_cnt++] = *in;
	ep->stats->rx_pkts--; /* counted again when erpc_rx_saved_cold processes it */
	return true;
}

/** Processes one packet. Returns true if its buffer was kept. */
UTIL_INLINE bool erpc_rx_packet(struct erpc_ep *ep, const struct dev_dgram_in *in)
{
	struct wire_erpc_hdr h;
	struct erpc_session *s = erpc_check(ep, in, &h);

	if (UTIL_UNLIKELY(!s))
		return false;
	if (UTIL_UNLIKELY(!s->attached))
		return erpc_rx_save_cold(ep, in);
	__atomic_store_n(&s->rx_ns, ep->now_ns, __ATOMIC_RELAXED);
	switch (h.kind) {
	case WIRE_ERPC_REQ: return erpc_req_on(s, &h, in);
	case WIRE_ERPC_RESP: return erpc_resp_on(s, &h, in);
	case WIRE_ERPC_CR: return erpc_cr_on(s, &h, in);
	case WIRE_ERPC_RFR: return erpc_rfr_on(s, &h, in);
	}
	return false;
}

/** Returns true if the packet is a batch that begins with a call. */
static inline bool erpc_rx_is_call(const struct dev_dgram_in *in)
{
	return in->len > ERPC_RX_KIND_AT && in->data[ERPC_RX_KIND_AT] == WIRE_ERPC_FRAME_CALL;
}

/**
 * Fetches the lines that the handler of a request needs. Returns the place of the address that it
 * reads next: the kept response's, which a call replaces, or the peer's.
 */
static inline const void *erpc_rx_prefetch_req(const struct erpc_session *s,
					       const struct erpc_rx *rx,
					       const struct dev_dgram_in *in)
{
	__builtin_prefetch(&s->dirty_link, 1);
	__builtin_prefetch(rx, 1);
	if (!erpc_rx_is_call(in))
		return &s->ah;
	__builtin_prefetch(&s->replies, 1);
	return &rx->resp;
}

/** Fetches those that the handler of a response needs, likewise: the ids of calls, or `nothing`. */
static inline const void *erpc_rx_prefetch_resp(const struct erpc_session *s,
						const struct erpc_tx *tx,
						const struct dev_dgram_in *in, const void *nothing)
{
	__builtin_prefetch(&s->flow, 1);
	__builtin_prefetch(tx, 1);
	if (in->len == WIRE_ERPC_HDR_LEN)
		return nothing;
	__builtin_prefetch(&s->calls, 1);
	return &s->calls.open.slots;
}

/**
 * Fetches the lines of the packet's session that its handler needs. Returns the place of an address
 * of further bytes, in one of these lines or, if there are none, of the device, which is in the
 * cache. Trusts nothing: any number has a place in the table.
 */
static inline const void *erpc_rx_prefetch(const struct erpc_ep *ep, const struct dev_dgram_in *in)
{
	const struct erpc_session *s;
	struct wire_erpc_hdr h;
	uint32_t slot;

	if (UTIL_UNLIKELY(in->len < WIRE_ERPC_HDR_LEN))
		return &ep->dg;
	wire_erpc_parse(&h, in->data);
	s = __atomic_load_n(&ep->sessions[h.session], __ATOMIC_ACQUIRE);
	if (UTIL_UNLIKELY(!s))
		return &ep->dg;
	__builtin_prefetch(&s->conn);
	__builtin_prefetch(&s->ep, 1);
	slot = h.req_num % ERPC_SLOTS;
	return h.kind == WIRE_ERPC_REQ ? erpc_rx_prefetch_req(s, &s->rx[slot], in)
				       : erpc_rx_prefetch_resp(s, &s->tx[slot], in, &ep->dg);
}

/** Fetches the bytes whose address is at `place`. */
static inline void erpc_rx_prefetch_named(const void *place)
{
	const void *named;

	memcpy(&named, place, sizeof(named));
	__builtin_prefetch(named);
}

UTIL_INLINE void erpc_rx_one(struct erpc_ep *ep, const struct dev_dgram_in *in)
{
	if (!erpc_rx_packet(ep, in))
		ep->dg->ops->release(ep->dg, in->slot);
}

/**
 * Processes several packets. Their sessions differ, and those of thousands are in no cache: the
 * lines are fetched together, and what these name, a little ahead.
 */
static void erpc_rx_several(struct erpc_ep *ep, const struct dev_dgram_in *in, int cnt)
{
	const void *places[ERPC_POLL_BURST];
	int i;

	for (i = 0; i < cnt; i++)
		places[i] = erpc_rx_prefetch(ep, &in[i]);
	for (i = 0; i < cnt; i++) {
		if (i + ERPC_RX_AHEAD < cnt)
			erpc_rx_prefetch_named(places[i + ERPC_RX_AHEAD]);
		erpc_rx_one(ep, &in[i]);
	}
}

static void erpc_rx_burst(struct erpc_ep *ep, const struct dev_dgram_in *in, int cnt)
{
	util_stats_add(&ep->stats->rx_pkts, (unsigned)cnt);
	if (cnt == 1)
		erpc_rx_one(ep, in);
	else
		erpc_rx_several(ep, in, cnt);
}

static void erpc_rx_saved_cold(struct erpc_ep *ep)
{
	struct dev_dgram_in in[ERPC_POLL_BURST];
	int cnt = (int)ep->saved_cnt;

	memcpy(in, ep->saved, (size_t)cnt * sizeof(in[0]));
	ep->saved_cnt = 0;
	erpc_rx_burst(ep, in, cnt);
}

/**
 * Processes packets received at the target. Returns false after another packet, which is left to
 * poll.
 */
static bool erpc_rx_direct_take(struct erpc_ep *ep, uint32_t slot,
				const struct dev_dgram_target *target,
				const struct dev_dgram_in *in, unsigned cnt)
{
	struct erpc_session *s = ep->direct_session;
	struct wire_erpc_hdr h;
	unsigned i;

	for (i = erpc_direct_take_run(s, slot, in, cnt); i < cnt; i++) {
		if (UTIL_UNLIKELY(!erpc_direct_is_next(s, slot, &in[i], &h))) {
			ep->dg->ops->put_back(ep->dg, target, i);
			return false;
		}
		ep->direct_placed = true;
		erpc_rx_burst(ep, &in[i], 1);
		ep->direct_placed = false;
	}
	return true;
}

static bool erpc_rx_direct(struct erpc_ep *ep, bool *more)
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
		cnt = ep->direct_session ? erpc_direct_expected(ep->direct_session, &slot) : 0;
		if (!cnt) {
			ep->direct_session = NULL;
			return false;
		}
		if (!erpc_direct_target(ep->direct_session, slot, cnt, &target))
			return false;
		n = ep->dg->ops->poll_into(ep->dg, &target, in, cnt);
		if (n <= 0)
			return n == -FI_EAGAIN;
		if (!erpc_rx_direct_take(ep, slot, &target, in, (unsigned)n))
			return false;
	}
	*more = true;
	return true;
}

bool erpc_rx_poll(struct erpc_ep *ep, uint64_t now_ns)
{
	struct dev_dgram_in in[ERPC_POLL_BURST];
	unsigned rounds = ERPC_POLL_ROUNDS;
	bool more = false, over;
	int n = 0;

	erpc_stage_polled(ep, now_ns);
	erpc_now_polled(ep, now_ns);
	erpc_ep_set_time(ep, now_ns);
	ep->running = true;
	if (!erpc_set_is_empty(&ep->fresh))
		erpc_kick_stamp(ep);
	if (UTIL_UNLIKELY(ep->saved_cnt))
		erpc_rx_saved_cold(ep);
	over = UTIL_UNLIKELY(ep->direct_session) && !ep->err && erpc_rx_direct(ep, &more);
	while (!over && !ep->err && rounds--) {
		n = ep->dg->ops->poll(ep->dg, in, ERPC_POLL_BURST);
		if (n > 0)
			erpc_rx_burst(ep, in, n);
		over = n != (int)ERPC_POLL_BURST;
		more = !over;
	}
	if (UTIL_UNLIKELY(n < 0))
		erpc_ep_fail(ep, n);
	ep->running = false;
	return more;
}
