/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Open, close and progress of an endpoint: see erpc_ep.h. */
#include "erpc/erpc_ep.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "erpc/bulk/erpc_direct.h"
#include "erpc/bulk/erpc_expose.h"
#include "erpc/erpc_pkt.h"
#include "erpc/erpc_session.h"
#include "erpc/tx/erpc_call.h"
#include "erpc/tx/erpc_kick.h"
#include "erpc/tx/erpc_loss.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_respond.h"
#include "util/bits.h"

#define ERPC_TABLE_LEN (ERPC_SESSIONS_MAX * sizeof(struct erpc_session *))

/* ---- progress ---- */

static inline uint64_t erpc_ep_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/** Returns the earliest time at which a timer expires, or UINT64_MAX. */
static uint64_t erpc_ep_next_ns(const struct erpc_ep *ep)
{
	uint64_t at_ns = UINT64_MAX;

	if (ep->wheel.cnt)
		at_ns = erpc_ep_min(at_ns, erpc_wheel_next_ns(&ep->wheel));
	if (ep->timers.cnt)
		at_ns = erpc_ep_min(at_ns, erpc_wheel_next_ns(&ep->timers));
	if (!util_list_is_empty(&ep->waiting))
		at_ns = erpc_ep_min(
			at_ns, UTIL_CONTAINER_OF(ep->waiting.next, struct erpc_session, wait_link)
				       ->deadline_ns);
	if (!util_list_is_empty(&ep->piggybacking))
		at_ns = erpc_ep_min(at_ns, UTIL_CONTAINER_OF(ep->piggybacking.next,
							     struct erpc_session, piggyback_link)
						   ->ack.until_ns);
	return at_ns;
}

/**
 * Keeps a packet until its session is attached, if there is space. Returns true if the buffer was
 * kept.
 */
static bool __attribute__((noinline))
erpc_ep_save_cold(struct erpc_ep *ep, const struct dev_dgram_in *in)
{
	if (ep->saved_cnt == ERPC_POLL_BURST) {
		ep->stats.rx_no_memory++;
		return false;
	}
	ep->saved[ep->saved_cnt++] = *in;
	ep->stats.rx_pkts--; /* counted again when erpc_ep_rx_saved_cold processes it */
	return true;
}

/** Processes one packet. Returns true if its buffer was kept. */
UTIL_INLINE bool erpc_ep_rx(struct erpc_ep *ep, const struct dev_dgram_in *in)
{
	struct wire_erpc_hdr h;
	struct erpc_session *s = erpc_check(ep, in, &h);

	if (UTIL_UNLIKELY(!s))
		return false;
	if (UTIL_UNLIKELY(!s->attached))
		return erpc_ep_save_cold(ep, in);
	__atomic_store_n(&s->time.rx_ns, ep->now_ns, __ATOMIC_RELAXED);
	switch (h.kind) {
	case WIRE_ERPC_REQ: return erpc_req_on(s, &h, in);
	case WIRE_ERPC_RESP: return erpc_resp_on(s, &h, in);
	case WIRE_ERPC_CR: return erpc_cr_on(s, &h, in);
	case WIRE_ERPC_RFR: return erpc_rfr_on(s, &h, in);
	}
	return false;
}

UTIL_INLINE void erpc_ep_rx_burst_hot(struct erpc_ep *ep, const struct dev_dgram_in *in, int cnt)
{
	int i;

	ep->stats.rx_pkts += (unsigned)cnt;
	for (i = 0; i < cnt; i++)
		if (!erpc_ep_rx(ep, &in[i]))
			ep->dg->ops->release(ep->dg, in[i].slot);
}

void erpc_ep_rx_burst(struct erpc_ep *ep, const struct dev_dgram_in *in, int cnt)
{
	erpc_ep_rx_burst_hot(ep, in, cnt);
}

static void erpc_ep_rx_saved_cold(struct erpc_ep *ep)
{
	struct dev_dgram_in in[ERPC_POLL_BURST];
	int cnt = (int)ep->saved_cnt;

	memcpy(in, ep->saved, (size_t)cnt * sizeof(in[0]));
	ep->saved_cnt = 0;
	erpc_ep_rx_burst(ep, in, cnt);
}

bool erpc_ep_poll(struct erpc_ep *ep, uint64_t now_ns)
{
	struct dev_dgram_in in[ERPC_POLL_BURST];
	unsigned rounds = ERPC_POLL_ROUNDS;
	bool more = false, over;
	int n = 0;

	erpc_ep_set_time(ep, now_ns);
	ep->running = true;
	if (!util_list_is_empty(&ep->fresh))
		erpc_kick_stamp(ep);
	if (UTIL_UNLIKELY(ep->saved_cnt))
		erpc_ep_rx_saved_cold(ep);
	over = UTIL_UNLIKELY(ep->direct_session) && !ep->err && erpc_direct_poll(ep, &more);
	while (!over && !ep->err && rounds--) {
		n = ep->dg->ops->poll(ep->dg, in, ERPC_POLL_BURST);
		if (n > 0)
			erpc_ep_rx_burst_hot(ep, in, n);
		over = n != (int)ERPC_POLL_BURST;
		more = !over;
	}
	if (UTIL_UNLIKELY(n < 0))
		erpc_ep_fail(ep, n);
	ep->running = false;
	return more;
}

static void erpc_ep_flush_sessions(struct erpc_ep *ep)
{
	struct util_list todo, *first;

	/* A session that cannot go on marks itself again, for the next call. */
	util_list_move(&ep->dirty, &todo);
	while ((first = util_list_pop(&todo)))
		erpc_session_flush(UTIL_CONTAINER_OF(first, struct erpc_session, dirty_link));
}

static void erpc_ep_report_failures(struct erpc_ep *ep)
{
	struct util_list *first;

	while ((first = util_list_pop(&ep->failing)))
		ep->failed(UTIL_CONTAINER_OF(first, struct erpc_session, fail_link));
}

static inline bool erpc_ep_waits_for_device(const struct erpc_ep *ep)
{
	return !util_list_is_empty(&ep->bufs.waiting) || !util_list_is_empty(&ep->dereg_list) ||
	       !util_list_is_empty(&ep->zombies);
}

/** Frees what waited for the device to complete datagrams. */
static void erpc_ep_reap_cold(struct erpc_ep *ep)
{
	ep->reaped = ep->dg->tx_done;
	if (!erpc_ep_waits_for_device(ep))
		return;
	erpc_bufs_reap_cold(&ep->bufs);
	erpc_expose_reap(ep, false);
	erpc_session_reap(ep, false);
}

/** Runs the expired timers and computes the next expiry. */
static void erpc_ep_due(struct erpc_ep *ep)
{
	if (!util_list_is_empty(&ep->waiting))
		erpc_respond_overdue(ep);
	if (!util_list_is_empty(&ep->piggybacking))
		erpc_piggyback_overdue(ep, false);
	if (ep->wheel.cnt)
		erpc_kick_wheel(ep);
	if (erpc_wheel_is_due(&ep->timers, ep->now_ns))
		erpc_loss_scan(ep);
	ep->next_ns = erpc_ep_next_ns(ep);
}

void erpc_ep_flush_some(struct erpc_ep *ep)
{
	int ret;

	ep->running = true;
	if (ep->now_ns >= ep->next_ns)
		erpc_ep_due(ep);
	if (!util_list_is_empty(&ep->dirty))
		erpc_ep_flush_sessions(ep);
	ret = erpc_out_flush(&ep->out);
	if (UTIL_UNLIKELY(ret))
		erpc_ep_fail(ep, ret);
	if (ep->reaped != ep->dg->tx_done)
		erpc_ep_reap_cold(ep);
	ep->running = false;
	if (UTIL_UNLIKELY(!util_list_is_empty(&ep->failing)))
		erpc_ep_report_failures(ep);
}

bool erpc_ep_progress(struct erpc_ep *ep, uint64_t now_ns)
{
	bool more = erpc_ep_poll(ep, now_ns);

	erpc_ep_flush(ep);
	return more;
}

void erpc_ep_doorbell_some(struct erpc_ep *ep)
{
	int ret = erpc_out_flush_some(&ep->out);

	if (UTIL_UNLIKELY(ret))
		erpc_ep_fail(ep, ret);
}

void erpc_ep_await(struct erpc_ep *ep, uint32_t number)
{
	unsigned polls;
	int n = 0;

	for (polls = 0; polls < ERPC_AWAIT_POLLS && !ep->err; polls++) {
		if (dev_dgram_is_done(ep->dg, number))
			return;
		if (ep->saved_cnt == ERPC_POLL_BURST) /* drops the last packet, as a network may */
			ep->dg->ops->release(ep->dg, ep->saved[--ep->saved_cnt].slot);
		n = ep->dg->ops->poll(ep->dg, ep->saved + ep->saved_cnt,
				      ERPC_POLL_BURST - ep->saved_cnt);
		if (n < 0)
			erpc_ep_fail(ep, n);
		else
			ep->saved_cnt += (unsigned)n;
	}
}

void erpc_ep_fail(struct erpc_ep *ep, int err)
{
	uint32_t num;

	if (ep->err)
		return;
	ep->err = err;
	for (num = 0; num < ERPC_SESSIONS_MAX; num++)
		if (ep->sessions[num] && ep->sessions[num]->attached)
			erpc_session_fail(ep->sessions[num], err, NULL);
}

bool erpc_ep_is_quiet(const struct erpc_ep *ep)
{
	/* While the device is full no packet can be posted; the device signals when that ends. */
	return util_list_is_empty(&ep->failing) &&
	       (ep->dg->tx_full || (util_list_is_empty(&ep->dirty) && !ep->out.cnt));
}

uint64_t erpc_ep_due_ns(const struct erpc_ep *ep)
{
	uint64_t at_ns = erpc_ep_next_ns(ep);

	if (at_ns == UINT64_MAX)
		return UINT64_MAX;
	return at_ns > ep->now_ns ? at_ns - ep->now_ns : 0;
}

/* ---- open and close ---- */

static int erpc_ep_seed(struct erpc_ep *ep, uint64_t seed)
{
	ep->random = seed;
	ep->seeded = seed;
	if (!seed && getrandom(&ep->random, sizeof(ep->random), 0) != sizeof(ep->random))
		return -FI_EIO;
	ep->exposure_random = ep->random * 0x2545F4914F6CDD1Dull + 1;
	return 0;
}

static int erpc_ep_make(struct erpc_ep *ep, const struct erpc_ep_attr *attr)
{
	void *table = mmap(NULL, ERPC_TABLE_LEN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int ret;

	if (table == MAP_FAILED)
		return -FI_ENOMEM;
	ep->sessions = table; /* unused pages take no memory */
	ep->used = calloc(1, ERPC_SESSIONS_MAX / 8);
	if (!ep->used)
		return -FI_ENOMEM;
	ret = erpc_ep_seed(ep, attr->seed);
	if (!ret)
		ret = erpc_out_init(&ep->out, ep->dg, ep->dev, ep->dev_ops, attr->tx_cnt);
	if (!ret)
		ret = erpc_wheel_init(&ep->timers, 0, ERPC_LOSS_SHIFT, ERPC_LOSS_SLOTS);
	if (!ret && ep->paces)
		ret = erpc_wheel_init(&ep->wheel, 0, ERPC_PACE_SHIFT, ERPC_PACE_SLOTS);
	return ret;
}

int erpc_ep_open(const struct erpc_ep_attr *attr, struct erpc_ep **out)
{
	struct erpc_ep *ep = calloc(1, sizeof(*ep));
	int ret;

	if (!ep) {
		attr->dg->ops->close(attr->dg);
		return -FI_ENOMEM;
	}
	ep->dg = attr->dg;
	ep->dev = attr->dev;
	ep->dev_ops = attr->dev_ops;
	ep->up = attr->up;
	ep->failed = attr->failed;
	ep->paces = attr->link_rate > 0;
	erpc_timely_cfg_init(&ep->timely_cfg, ep->paces ? attr->link_rate : 1e12, attr->host_ns);
	util_list_init(&ep->dirty);
	util_list_init(&ep->fresh);
	util_list_init(&ep->waiting);
	util_list_init(&ep->piggybacking);
	util_list_init(&ep->failing);
	util_list_init(&ep->dereg_list);
	util_list_init(&ep->zombies);
	util_pool_init(&ep->bodies, sizeof(struct erpc_body), 64, 0);
	util_pool_init(&ep->exposure_pool, sizeof(struct erpc_exposure), 16, 0);
	util_idmap_init(&ep->exposures);
	erpc_bufs_init(&ep->bufs, ep->dg, ep->dev, ep->dev_ops);
	pthread_mutex_init(&ep->lock, NULL);
	ret = erpc_ep_make(ep, attr);
	if (ret) {
		erpc_ep_close(ep);
		return ret;
	}
	*out = ep;
	return 0;
}

void erpc_ep_close(struct erpc_ep *ep)
{
	erpc_session_reap(ep, true);
	ep->dg->ops->close(ep->dg);
	erpc_expose_reap(ep, true);
	erpc_out_fini(&ep->out);
	erpc_bufs_fini(&ep->bufs);
	erpc_wheel_fini(&ep->wheel);
	erpc_wheel_fini(&ep->timers);
	util_pool_fini(&ep->bodies);
	util_pool_fini(&ep->exposure_pool);
	util_idmap_fini(&ep->exposures);
	if (ep->sessions)
		munmap(ep->sessions, ERPC_TABLE_LEN);
	free(ep->used);
	pthread_mutex_destroy(&ep->lock);
	free(ep);
}
