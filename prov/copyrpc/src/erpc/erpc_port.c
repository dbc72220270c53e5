/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A port's life, and its loop: see erpc_port.h. */
#include "erpc/erpc_port.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "erpc/tx/erpc_kick.h"
#include "erpc/bulk/erpc_expose.h"
#include "erpc/tx/erpc_loss.h"
#include "erpc/tx/erpc_answer.h"
#include "erpc/erpc_pkt.h"
#include "erpc/bulk/erpc_direct.h"
#include "erpc/tx/erpc_piggyback.h"
#include "erpc/tx/erpc_call.h"
#include "erpc/erpc_session.h"
#include "util/bits.h"

#define ERPC_TABLE_LEN (ERPC_SESSIONS_MAX * sizeof(struct erpc_session *))

/* ---- the loop ---- */

static inline uint64_t erpc_port_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/** When something is due though nothing comes; UINT64_MAX: never. */
static uint64_t erpc_port_next_ns(const struct erpc_port *port)
{
	uint64_t at_ns = UINT64_MAX;

	if (port->wheel.cnt)
		at_ns = erpc_port_min(at_ns, erpc_wheel_next_ns(&port->wheel));
	if (port->timers.cnt)
		at_ns = erpc_port_min(at_ns, erpc_wheel_next_ns(&port->timers));
	if (!util_list_is_empty(&port->waiting))
		at_ns = erpc_port_min(
			at_ns, UTIL_CONTAINER_OF(port->waiting.next, struct erpc_session, wait_link)
				       ->deadline_ns);
	if (!util_list_is_empty(&port->riding))
		at_ns = erpc_port_min(at_ns, UTIL_CONTAINER_OF(port->riding.next,
							       struct erpc_session, piggyback_link)
						     ->piggyback_ns);
	return at_ns;
}

/** Its session is not up yet: it waits, if there is room. True if its buffer was kept. */
static bool __attribute__((noinline))
erpc_port_save_cold(struct erpc_port *port, const struct dev_dgram_in *in)
{
	if (port->saved_cnt == ERPC_POLL_BURST) {
		port->stats.rx_no_memory++;
		return false;
	}
	port->saved[port->saved_cnt++] = *in;
	port->stats.rx_pkts--; /* it is counted when it is taken in */
	return true;
}

/** One packet: true if its buffer was kept. */
static inline __attribute__((always_inline)) bool erpc_port_take(struct erpc_port *port,
								 const struct dev_dgram_in *in)
{
	struct wire_erpc_hdr h;
	struct erpc_session *s = erpc_check(port, in, &h);

	if (UTIL_UNLIKELY(!s))
		return false;
	if (UTIL_UNLIKELY(!s->attached))
		return erpc_port_save_cold(port, in);
	__atomic_store_n(&s->rx_ns, port->now_ns, __ATOMIC_RELAXED);
	switch (h.kind) {
	case WIRE_ERPC_REQ: return erpc_req_on(s, &h, in);
	case WIRE_ERPC_RESP: return erpc_resp_on(s, &h, in);
	case WIRE_ERPC_CR: return erpc_cr_on(s, &h, in);
	case WIRE_ERPC_RFR: return erpc_rfr_on(s, &h, in);
	}
	return false;
}

static inline __attribute__((always_inline)) void erpc_port_take_hot(struct erpc_port *port,
								     const struct dev_dgram_in *in,
								     int cnt)
{
	int i;

	port->stats.rx_pkts += (unsigned)cnt;
	for (i = 0; i < cnt; i++)
		if (!erpc_port_take(port, &in[i]))
			port->dg->ops->release(port->dg, in[i].slot);
}

void erpc_port_take_all(struct erpc_port *port, const struct dev_dgram_in *in, int cnt)
{
	erpc_port_take_hot(port, in, cnt);
}

static void erpc_port_take_saved_cold(struct erpc_port *port)
{
	struct dev_dgram_in in[ERPC_POLL_BURST];
	int cnt = (int)port->saved_cnt;

	memcpy(in, port->saved, (size_t)cnt * sizeof(in[0]));
	port->saved_cnt = 0;
	erpc_port_take_all(port, in, cnt);
}

bool erpc_port_poll(struct erpc_port *port, uint64_t now_ns)
{
	struct dev_dgram_in in[ERPC_POLL_BURST];
	unsigned rounds = ERPC_POLL_ROUNDS;
	bool more = false, over;
	int n = 0;

	erpc_port_tell_time(port, now_ns);
	port->running = true;
	if (!util_list_is_empty(&port->fresh))
		erpc_kick_stamp(port);
	if (UTIL_UNLIKELY(port->saved_cnt))
		erpc_port_take_saved_cold(port);
	over = UTIL_UNLIKELY(port->placing) && !port->err && erpc_direct_poll(port, &more);
	while (!over && !port->err && rounds--) {
		n = port->dg->ops->poll(port->dg, in, ERPC_POLL_BURST);
		if (n > 0)
			erpc_port_take_hot(port, in, n);
		over = n != (int)ERPC_POLL_BURST;
		more = !over;
	}
	if (UTIL_UNLIKELY(n < 0))
		erpc_port_fail(port, n);
	port->running = false;
	return more;
}

static void erpc_port_visit(struct erpc_port *port)
{
	struct util_list todo, *first;

	/* Who cannot go on marks itself again, for the next call. */
	util_list_move(&port->dirty, &todo);
	while ((first = util_list_pop(&todo)))
		erpc_session_flush(UTIL_CONTAINER_OF(first, struct erpc_session, dirty_link));
}

static void erpc_port_tell_failures(struct erpc_port *port)
{
	struct util_list *first;

	while ((first = util_list_pop(&port->failing)))
		port->failed(UTIL_CONTAINER_OF(first, struct erpc_session, fail_link));
}

static inline bool erpc_port_waits_for_device(const struct erpc_port *port)
{
	return !util_list_is_empty(&port->bufs.waiting) || !util_list_is_empty(&port->returned) ||
	       !util_list_is_empty(&port->leaving);
}

/** The device is done with more than before. */
static void erpc_port_reap_cold(struct erpc_port *port)
{
	port->reaped = port->dg->tx_done;
	if (!erpc_port_waits_for_device(port))
		return;
	erpc_bufs_reap_cold(&port->bufs);
	erpc_expose_reap(port, false);
	erpc_session_reap(port, false);
}

/** What the clock brings, and when it brings more. */
static void erpc_port_due(struct erpc_port *port)
{
	if (!util_list_is_empty(&port->waiting))
		erpc_answer_overdue(port);
	if (!util_list_is_empty(&port->riding))
		erpc_piggyback_overdue(port, false);
	if (port->wheel.cnt)
		erpc_kick_wheel(port);
	if (erpc_wheel_is_due(&port->timers, port->now_ns))
		erpc_loss_scan(port);
	port->next_ns = erpc_port_next_ns(port);
}

void erpc_port_flush_some(struct erpc_port *port)
{
	int ret;

	port->running = true;
	if (port->now_ns >= port->next_ns)
		erpc_port_due(port);
	if (!util_list_is_empty(&port->dirty))
		erpc_port_visit(port);
	ret = erpc_out_flush(&port->out);
	if (UTIL_UNLIKELY(ret))
		erpc_port_fail(port, ret);
	if (port->reaped != port->dg->tx_done)
		erpc_port_reap_cold(port);
	port->running = false;
	if (UTIL_UNLIKELY(!util_list_is_empty(&port->failing)))
		erpc_port_tell_failures(port);
}

bool erpc_port_progress(struct erpc_port *port, uint64_t now_ns)
{
	bool more = erpc_port_poll(port, now_ns);

	erpc_port_flush(port);
	return more;
}

void erpc_port_ring_some(struct erpc_port *port)
{
	int ret = erpc_out_flush_some(&port->out);

	if (UTIL_UNLIKELY(ret))
		erpc_port_fail(port, ret);
}

void erpc_port_await(struct erpc_port *port, uint32_t number)
{
	unsigned polls;
	int n = 0;

	for (polls = 0; polls < ERPC_AWAIT_POLLS && !port->err; polls++) {
		if (dev_dgram_is_done(port->dg, number))
			return;
		if (port->saved_cnt == ERPC_POLL_BURST) /* the last one is lost, as packets are */
			port->dg->ops->release(port->dg, port->saved[--port->saved_cnt].slot);
		n = port->dg->ops->poll(port->dg, port->saved + port->saved_cnt,
					ERPC_POLL_BURST - port->saved_cnt);
		if (n < 0)
			erpc_port_fail(port, n);
		else
			port->saved_cnt += (unsigned)n;
	}
}

void erpc_port_fail(struct erpc_port *port, int err)
{
	uint32_t num;

	if (port->err)
		return;
	port->err = err;
	for (num = 0; num < ERPC_SESSIONS_MAX; num++)
		if (port->sessions[num] && port->sessions[num]->attached)
			erpc_session_fail(port->sessions[num], err, NULL);
}

bool erpc_port_is_quiet(const struct erpc_port *port)
{
	/* Of what has to leave nothing can while the device is full, which says when it is not any more. */
	return util_list_is_empty(&port->failing) &&
	       (port->dg->tx_full || (util_list_is_empty(&port->dirty) && !port->out.cnt));
}

uint64_t erpc_port_due_ns(const struct erpc_port *port)
{
	uint64_t at_ns = erpc_port_next_ns(port);

	if (at_ns == UINT64_MAX)
		return UINT64_MAX;
	return at_ns > port->now_ns ? at_ns - port->now_ns : 0;
}

/* ---- its life ---- */

static int erpc_port_seed(struct erpc_port *port, uint64_t seed)
{
	port->random = seed;
	port->seeded = seed;
	if (!seed && getrandom(&port->random, sizeof(port->random), 0) != sizeof(port->random))
		return -FI_EIO;
	port->exposure_random = port->random * 0x2545F4914F6CDD1Dull + 1;
	return 0;
}

static int erpc_port_make(struct erpc_port *port, const struct erpc_port_attr *attr)
{
	void *table = mmap(NULL, ERPC_TABLE_LEN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int ret;

	if (table == MAP_FAILED)
		return -FI_ENOMEM;
	port->sessions = table; /* pages of numbers that nobody has cost nothing */
	port->used = calloc(1, ERPC_SESSIONS_MAX / 8);
	if (!port->used)
		return -FI_ENOMEM;
	ret = erpc_port_seed(port, attr->seed);
	if (!ret)
		ret = erpc_out_init(&port->out, port->dg, port->dev, port->dev_ops, attr->tx_cnt);
	if (!ret)
		ret = erpc_wheel_init(&port->timers, 0, ERPC_LOSS_SHIFT, ERPC_LOSS_SLOTS);
	if (!ret && port->paces)
		ret = erpc_wheel_init(&port->wheel, 0, ERPC_PACE_SHIFT, ERPC_PACE_SLOTS);
	return ret;
}

int erpc_port_open(const struct erpc_port_attr *attr, struct erpc_port **out)
{
	struct erpc_port *port = calloc(1, sizeof(*port));
	int ret;

	if (!port) {
		attr->dg->ops->close(attr->dg);
		return -FI_ENOMEM;
	}
	port->dg = attr->dg;
	port->dev = attr->dev;
	port->dev_ops = attr->dev_ops;
	port->up = attr->up;
	port->failed = attr->failed;
	port->paces = attr->link_rate > 0;
	erpc_timely_cfg_init(&port->timely_cfg, port->paces ? attr->link_rate : 1e12,
			     attr->host_ns);
	util_list_init(&port->dirty);
	util_list_init(&port->fresh);
	util_list_init(&port->waiting);
	util_list_init(&port->riding);
	util_list_init(&port->failing);
	util_list_init(&port->returned);
	util_list_init(&port->leaving);
	util_pool_init(&port->bodies, sizeof(struct erpc_body), 64, 0);
	util_pool_init(&port->lent, sizeof(struct erpc_exposure), 16, 0);
	util_idmap_init(&port->exposures);
	erpc_bufs_init(&port->bufs, port->dg, port->dev, port->dev_ops);
	pthread_mutex_init(&port->lock, NULL);
	ret = erpc_port_make(port, attr);
	if (ret) {
		erpc_port_close(port);
		return ret;
	}
	*out = port;
	return 0;
}

void erpc_port_close(struct erpc_port *port)
{
	erpc_session_reap(port, true);
	port->dg->ops->close(port->dg);
	erpc_expose_reap(port, true);
	erpc_out_fini(&port->out);
	erpc_bufs_fini(&port->bufs);
	erpc_wheel_fini(&port->wheel);
	erpc_wheel_fini(&port->timers);
	util_pool_fini(&port->bodies);
	util_pool_fini(&port->lent);
	util_idmap_fini(&port->exposures);
	if (port->sessions)
		munmap(port->sessions, ERPC_TABLE_LEN);
	free(port->used);
	pthread_mutex_destroy(&port->lock);
	free(port);
}
