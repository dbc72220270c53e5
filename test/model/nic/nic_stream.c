/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Execution of the send queue of a DCI with streams. Called by nic_sq.c and nic_qp.c.
 *
 * A WQE names its stream by a number of 16 bits. WQEs of one stream are executed in order; while
 * one waits for its responder, those of other streams go on. A stream with WQEs that are not
 * executed yet holds one of 2^log_streams channels, each with a connection of its own. A WQE of a
 * stream for which no channel is free stops the queue until one is.
 *
 * The device looks at a window of NIC_WINDOW WQEs. Completions are written in the order of the
 * queue, because software frees all blocks up to a completed WQE: a WQE that was executed early
 * stays in the window until those before it have their result.
 *
 * A WQE that fails puts its stream into error. The QP stays in RTS; later WQEs of that stream are
 * flushed until software resets it. When 2^log_errored streams are in error, the QP goes to ERR.
 *
 * In poll mode some WQEs are begun late, so that those of other streams overtake them.
 *
 * The state is the process's own, as only the owner of a QP executes its send queue.
 */
#include "model/nic/nic_stream.h"

#include <errno.h>
#include <string.h>

#include "model/nic/nic_cq.h"
#include "model/nic/nic_cqe.h"
#include "model/nic/nic_dc.h"
#include "model/nic/nic_fault.h"
#include "model/nic/nic_qp.h"
#include "model/nic/nic_sq.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

enum {
	NIC_STREAM_QPS = 128, /* DCIs with streams in one process */
	NIC_WINDOW = 64,
	NIC_CHANNELS = 1 << MDL_LOG_STREAMS_MAX,
	NIC_ERRORED = 1 << MDL_LOG_ERRORED_MAX,
	NIC_VENDOR_STREAM_FLUSH = 0xf9,
	NIC_STREAM_LATE_IN_4 = 1, /* poll mode: of 4 WQEs, the number begun late */
	NIC_STREAM_LATE_NS = 60000,
};

/* WQE of the window. */
struct nic_pending {
	uint32_t at; /* number of its first block, counted since creation */
	uint16_t stream;
	uint8_t blocks, opcode;
	bool signalled;
	bool finished; /* true: the result is known */
	uint8_t channel;
	uint64_t due_ns; /* time before which it is not tried */
	struct nic_attempts attempts;
	struct nic_result result;
};

struct nic_channel {
	struct nic_dc_conn conn;
	uint64_t used; /* value of the clock at its last use, 0: never used */
	uint16_t stream;
	uint32_t waits; /* WQEs of its stream in the window that are not finished */
};

struct nic_streams {
	uint32_t used;      /* 1: belongs to a QP */
	uint32_t next;      /* block after the last WQE of the window */
	uint32_t head, cnt; /* oldest WQE of the window, and their number */
	uint32_t channel_cnt;
	uint32_t errored_cnt, errored_max;
	uint64_t clock;
	uint16_t errored[NIC_ERRORED]; /* streams in error */
	struct nic_channel channel[NIC_CHANNELS];
	struct nic_pending window[NIC_WINDOW];
};

static struct nic_streams nic_streams[NIC_STREAM_QPS];

static struct nic_streams *nic_streams_of(const struct mdl_qp *qp)
{
	return qp->nic_streams ? &nic_streams[qp->nic_streams - 1] : NULL;
}

void nic_stream_attach(void)
{
	for (uint32_t i = 0; i < NIC_STREAM_QPS; i++)
		__atomic_store_n(&nic_streams[i].used, 0, __ATOMIC_RELEASE);
}

int nic_stream_create(struct mdl_qp *qp)
{
	qp->nic_streams = 0;
	if (!qp->has_streams)
		return 0;
	for (uint32_t i = 0; i < NIC_STREAM_QPS; i++) {
		uint32_t none = 0;

		if (!__atomic_compare_exchange_n(&nic_streams[i].used, &none, 1, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		nic_streams[i].channel_cnt = 1u << qp->log_streams;
		nic_streams[i].errored_max = 1u << qp->log_errored;
		qp->nic_streams = i + 1;
		return 0;
	}
	return -ENOMEM;
}

void nic_stream_destroy(struct mdl_qp *qp)
{
	struct nic_streams *streams = nic_streams_of(qp);

	qp->nic_streams = 0;
	if (streams)
		__atomic_store_n(&streams->used, 0, __ATOMIC_RELEASE);
}

void nic_stream_forget(struct mdl_qp *qp)
{
	struct nic_streams *streams = nic_streams_of(qp);

	if (!streams)
		return;
	streams->head = streams->cnt = streams->errored_cnt = 0;
	streams->clock = 0;
	memset(streams->channel, 0, sizeof(streams->channel));
}

static struct nic_pending *nic_stream_at(struct nic_streams *streams, uint32_t k)
{
	return &streams->window[(streams->head + k) % NIC_WINDOW];
}

/* ---- streams in error ------------------------------------------------------------------------ */
static uint32_t nic_stream_errored(const struct nic_streams *streams, uint16_t stream)
{
	uint32_t i = 0;

	while (i < streams->errored_cnt && streams->errored[i] != stream)
		i++;
	return i;
}

static bool nic_stream_is_errored(const struct nic_streams *streams, uint16_t stream)
{
	return nic_stream_errored(streams, stream) < streams->errored_cnt;
}

static bool nic_stream_is_broken(const struct nic_streams *streams)
{
	return streams->errored_cnt >= streams->errored_max;
}

int nic_stream_reset(struct mdl_qp *qp, uint16_t stream)
{
	struct nic_streams *streams = nic_streams_of(qp);
	int rc = -EINVAL;
	uint32_t at;

	if (!streams)
		return rc;
	mdl_lock(&qp->sq_lock);
	at = nic_stream_errored(streams, stream);
	if (at < streams->errored_cnt && nic_qp_state(qp) == MDL_QPS_RTS) {
		streams->errored[at] = streams->errored[--streams->errored_cnt];
		rc = 0;
	}
	mdl_unlock(&qp->sq_lock);
	return rc;
}

/* ---- channels -------------------------------------------------------------------------------- */
static struct nic_channel *nic_stream_find(struct nic_streams *streams, uint16_t stream)
{
	for (uint32_t i = 0; i < streams->channel_cnt; i++)
		if (streams->channel[i].used && streams->channel[i].stream == stream)
			return &streams->channel[i];
	return NULL;
}

/* Returns the channel that is idle for longest, or null if all have work. */
static struct nic_channel *nic_stream_idle(struct nic_streams *streams)
{
	struct nic_channel *idle = NULL;

	for (uint32_t i = 0; i < streams->channel_cnt; i++) {
		struct nic_channel *channel = &streams->channel[i];

		if (!channel->waits && (!idle || channel->used < idle->used))
			idle = channel;
	}
	return idle;
}

/* Returns the channel of a stream, or gives it an idle one. */
static struct nic_channel *nic_stream_channel(struct nic_streams *streams, uint16_t stream)
{
	struct nic_channel *channel = nic_stream_find(streams, stream);

	if (!channel)
		channel = nic_stream_idle(streams);
	if (!channel)
		return NULL;
	channel->stream = stream;
	channel->used = ++streams->clock;
	return channel;
}

struct nic_dc_conn *nic_stream_conn(struct mdl_qp *qp, uint16_t stream)
{
	struct nic_streams *streams = nic_streams_of(qp);
	struct nic_channel *channel = streams ? nic_stream_find(streams, stream) : NULL;

	return channel ? &channel->conn : NULL;
}

/* ---- the window ------------------------------------------------------------------------------ */
static uint64_t nic_stream_late(void)
{
	if (mdl_self.config.mode != MDL_MODE_POLL || (nic_random() & 3) >= NIC_STREAM_LATE_IN_4)
		return 0;
	return mdl_now_ns() + nic_random() % NIC_STREAM_LATE_NS;
}

static void nic_stream_flushed(struct nic_pending *pending)
{
	pending->finished = true;
	pending->result =
		(struct nic_result){ .syndrome = NIC_SYN_FLUSH, .vendor = NIC_VENDOR_STREAM_FLUSH };
}

/* Takes the next WQE of the queue into the window. Returns false if its stream finds no channel. */
static bool nic_stream_admit_one(struct mdl_qp *qp, struct nic_streams *streams)
{
	struct nic_pending *pending = nic_stream_at(streams, streams->cnt);
	struct nic_channel *channel = NULL;
	uint8_t bytes[NIC_SQ_BYTES];
	struct nic_wqe wqe;
	bool errored;

	nic_sq_decode(qp, streams->next, bytes, &wqe);
	errored = nic_stream_is_errored(streams, wqe.stream);
	if (!errored && !(channel = nic_stream_channel(streams, wqe.stream)))
		return false;
	*pending = (struct nic_pending){ .at = streams->next,
					 .stream = wqe.stream,
					 .blocks = wqe.blocks,
					 .opcode = wqe.opcode,
					 .signalled = wqe.signalled,
					 .due_ns = nic_stream_late() };
	if (errored)
		nic_stream_flushed(pending);
	if (channel) {
		channel->waits++;
		pending->channel = channel - streams->channel;
	}
	streams->cnt++;
	streams->next += wqe.blocks;
	return true;
}

static bool nic_stream_admit(struct mdl_qp *qp, struct nic_streams *streams)
{
	bool any = false;

	if (!streams->cnt)
		streams->next = qp->nic_sq_ci;
	while (streams->cnt < NIC_WINDOW && (uint16_t)(qp->nic_sq_pi - streams->next) &&
	       nic_stream_admit_one(qp, streams))
		any = true;
	return any;
}

/* Returns true if an earlier WQE of the same stream has no result yet. */
static bool nic_stream_is_behind(struct nic_streams *streams, uint32_t k)
{
	uint16_t stream = nic_stream_at(streams, k)->stream;

	for (uint32_t i = 0; i < k; i++)
		if (!nic_stream_at(streams, i)->finished &&
		    nic_stream_at(streams, i)->stream == stream)
			return true;
	return false;
}

static void nic_stream_finish(struct nic_streams *streams, struct nic_pending *pending)
{
	pending->finished = true;
	streams->channel[pending->channel].waits--;
}

static void nic_stream_fail(struct mdl_qp *qp, struct nic_streams *streams,
			    struct nic_pending *pending, const struct nic_wqe *wqe)
{
	nic_dc_failed(qp, wqe);
	nic_sq_account(qp, wqe);
	nic_stream_finish(streams, pending);
	streams->errored[streams->errored_cnt++] = pending->stream;
}

static void nic_stream_execute(struct mdl_qp *qp, struct nic_streams *streams,
			       struct nic_pending *pending)
{
	uint8_t bytes[NIC_SQ_BYTES];
	enum nic_outcome outcome;
	struct nic_wqe wqe;

	nic_sq_decode(qp, pending->at, bytes, &wqe);
	nic_sq_begin(qp, &pending->attempts);
	pending->result = (struct nic_result){ 0 };
	outcome = nic_sq_execute(qp, &wqe, &pending->result);
	if (outcome == NIC_DONE) {
		nic_sq_account(qp, &wqe);
		nic_stream_finish(streams, pending);
	} else if (outcome == NIC_FAILED || !nic_sq_retry(qp, &pending->attempts, outcome,
							  &pending->result, &pending->due_ns)) {
		nic_stream_fail(qp, streams, pending, &wqe);
	}
}

/* Tries each WQE of the window whose turn it is. Returns true if one got its result. */
static bool nic_stream_try(struct mdl_qp *qp, struct nic_streams *streams)
{
	bool any = false;

	for (uint32_t k = 0; k < streams->cnt && !nic_stream_is_broken(streams); k++) {
		struct nic_pending *pending = nic_stream_at(streams, k);

		if (pending->finished || nic_stream_is_behind(streams, k))
			continue;
		if (nic_stream_is_errored(streams, pending->stream)) {
			nic_stream_finish(streams, pending);
			nic_stream_flushed(pending);
		} else if (!pending->due_ns || mdl_now_ns() >= pending->due_ns) {
			nic_stream_execute(qp, streams, pending);
		}
		any |= pending->finished;
	}
	return any;
}

static void nic_stream_complete(struct mdl_qp *qp, const struct nic_pending *pending)
{
	struct nic_wqe wqe = { .index = pending->at,
			       .blocks = pending->blocks,
			       .opcode = pending->opcode };

	if (pending->signalled || pending->result.syndrome != NIC_SYN_OK)
		nic_sq_complete(qp, &wqe, &pending->result);
	qp->nic_sq_ci += pending->blocks;
}

/*
 * Completes the WQEs at the beginning of the window that have their result, if WAIT only as long as
 * CQEs fit. Returns true if some were.
 */
static bool nic_stream_retire(struct mdl_qp *qp, struct nic_streams *streams, bool wait)
{
	uint32_t before = streams->cnt;

	while (streams->cnt && nic_stream_at(streams, 0)->finished &&
	       (!wait || nic_cq_has_room(qp->send_cq))) {
		nic_stream_complete(qp, nic_stream_at(streams, 0));
		streams->head = (streams->head + 1) % NIC_WINDOW;
		streams->cnt--;
	}
	return streams->cnt != before;
}

/* Asks for a call at the time at which the first waiting WQE is due. */
static void nic_stream_sleep(struct mdl_qp *qp, struct nic_streams *streams)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t k = 0; k < streams->cnt; k++) {
		const struct nic_pending *pending = nic_stream_at(streams, k);

		if (!pending->finished && pending->due_ns < due &&
		    !nic_stream_is_behind(streams, k))
			due = pending->due_ns;
	}
	if (due == UINT64_MAX)
		return;
	nic_qp_priv(qp)->stream_due_ns = due;
	__atomic_fetch_or(&qp->nic_stalled, NIC_WAIT_STREAM, __ATOMIC_RELEASE);
	krn_service_wake(qp->proc);
}

static bool nic_stream_may_run(struct mdl_qp *qp)
{
	return nic_qp_state(qp) == MDL_QPS_RTS && !nic_qp_has_failed(qp) &&
	       !(__atomic_load_n(&qp->nic_stalled, __ATOMIC_ACQUIRE) & NIC_WAIT_SQ);
}

bool nic_stream_run(struct mdl_qp *qp)
{
	struct nic_streams *streams = nic_streams_of(qp);
	bool more = true;

	if (!streams)
		return false;
	while (more && nic_stream_may_run(qp)) {
		more = nic_stream_admit(qp, streams);
		more |= nic_stream_try(qp, streams);
		more |= nic_stream_retire(qp, streams, false);
		if (nic_stream_is_broken(streams))
			nic_qp_break(qp, 0);
	}
	if (nic_stream_may_run(qp))
		nic_stream_sleep(qp, streams);
	return true;
}

bool nic_stream_flush(struct mdl_qp *qp)
{
	struct nic_streams *streams = nic_streams_of(qp);

	if (!streams)
		return true;
	for (uint32_t k = 0; k < streams->cnt; k++) {
		struct nic_pending *pending = nic_stream_at(streams, k);

		if (pending->finished)
			continue;
		nic_stream_finish(streams, pending);
		nic_stream_flushed(pending);
	}
	nic_stream_retire(qp, streams, true);
	return streams->cnt == 0;
}
