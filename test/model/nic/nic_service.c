/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work that waits for time.
 *
 * The service thread of each process calls nic_service(), which checks that process's own QPs:
 * those that wait (RNR, no reply, a doorbell that poll mode processes late, a delayed datagram,
 * streams of a DCI, a rendezvous), those in error whose queues may get more WQEs to flush, and
 * those whose doorbell record advanced without a doorbell.
 *
 * It also ends a process whose broken rule another process detected (nic_blame). The process that
 * detected it continues.
 */
#include "model/nic/nic_service.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/nic/nic_be.h"
#include "model/nic/nic_own.h"
#include "model/nic/nic_rndv.h"
#include "model/nic/nic_sq.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_ud.h"

static const uint64_t nic_flush_look_ns = 1000000;
static const uint64_t nic_record_look_ns = 500000000;
enum { NIC_RECORD_LOOKS = 6 };

void nic_blame(uint32_t proc, const char *format, ...)
{
	struct nic_seg_priv *priv = nic_seg_priv();
	uint32_t none = 0;
	char text[sizeof(priv->blame)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (nic_is_ours(proc))
		mdl_fatal("%s", text);
	if (!__atomic_compare_exchange_n(&priv->blamed, &none, ~0u, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	memcpy(priv->blame, text, sizeof(text));
	__atomic_store_n(&priv->blamed, proc + 1, __ATOMIC_RELEASE);
	krn_service_wake(proc);
}

static void nic_service_blame(void)
{
	struct nic_seg_priv *priv = nic_seg_priv();
	char text[sizeof(priv->blame)];

	if (__atomic_load_n(&priv->blamed, __ATOMIC_ACQUIRE) != mdl_self.slot + 1)
		return;
	memcpy(text, priv->blame, sizeof(text));
	__atomic_store_n(&priv->blamed, 0, __ATOMIC_RELEASE);
	mdl_fatal("%s", text);
}

static uint64_t nic_service_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Reports a record that stays ahead of the doorbells: the driver omitted a doorbell or delays it
 * too long. Requires several checks, because the process may have been stopped between the two.
 */
static uint64_t nic_service_record(struct mdl_qp *qp, uint64_t now)
{
	struct nic_qp_priv *priv = nic_qp_priv(qp);
	uint16_t record;

	if (nic_qp_state(qp) != MDL_QPS_RTS || !qp->sq_cnt)
		return UINT64_MAX;
	record = nic_record_get((uint32_t *)mdl_at(qp->dbrec) + 1);
	if (record == (uint16_t)qp->nic_sq_pi || record != priv->record_seen) {
		priv->record_seen = record;
		priv->record_seen_cnt = 0;
		priv->record_seen_ns = now;
		return now + nic_record_look_ns;
	}
	if (now - priv->record_seen_ns >= nic_record_look_ns) {
		priv->record_seen_cnt++;
		priv->record_seen_ns = now;
	}
	if (priv->record_seen_cnt >= NIC_RECORD_LOOKS)
		mdl_fatal("QP 0x%x: its send record has been %u for 3 seconds, but no doorbell "
			  "was rung since it said %u. The adapter does not look at records by "
			  "itself.",
			  qp->number, record, qp->nic_sq_pi & 0xffff);
	return now + nic_record_look_ns;
}

static uint64_t nic_service_streams(struct mdl_qp *qp, uint64_t now)
{
	const struct nic_qp_priv *priv = nic_qp_priv(qp);

	if (now >= priv->stream_due_ns) {
		__atomic_fetch_and(&qp->nic_stalled, ~(uint32_t)NIC_WAIT_STREAM, __ATOMIC_RELEASE);
		nic_sq_run(qp);
	}
	return __atomic_load_n(&qp->nic_stalled, __ATOMIC_ACQUIRE) & NIC_WAIT_STREAM
		       ? priv->stream_due_ns
		       : UINT64_MAX;
}

static uint64_t nic_service_rndv(struct mdl_qp *qp, uint64_t now)
{
	const struct nic_qp_priv *priv = nic_qp_priv(qp);

	if (now >= priv->rndv_due_ns)
		nic_sq_run(qp);
	return __atomic_load_n(&qp->nic_stalled, __ATOMIC_ACQUIRE) & NIC_WAIT_RNDV
		       ? priv->rndv_due_ns
		       : UINT64_MAX;
}

static uint64_t nic_service_stalled(struct mdl_qp *qp, uint64_t now)
{
	struct nic_qp_priv *priv = nic_qp_priv(qp);
	uint64_t next = UINT64_MAX;
	uint32_t waits = __atomic_load_n(&qp->nic_stalled, __ATOMIC_ACQUIRE);

	if (waits & NIC_WAIT_UD) {
		if (now >= priv->ud_due_ns) {
			__atomic_fetch_and(&qp->nic_stalled, ~(uint32_t)NIC_WAIT_UD,
					   __ATOMIC_RELEASE);
			nic_ud_late_flush(qp);
		} else {
			next = priv->ud_due_ns;
		}
	}
	if (waits & NIC_WAIT_STREAM)
		next = nic_service_earlier(next, nic_service_streams(qp, now));
	if (waits & NIC_WAIT_RNDV)
		next = nic_service_earlier(next, nic_service_rndv(qp, now));
	if (waits & NIC_WAIT_FLUSH && nic_qp_state(qp) <= MDL_QPS_SQD) {
		__atomic_fetch_and(&qp->nic_stalled, ~(uint32_t)NIC_WAIT_FLUSH, __ATOMIC_RELEASE);
	} else if (waits & NIC_WAIT_FLUSH) {
		nic_sq_run(qp);
		return nic_service_earlier(next, now + nic_flush_look_ns);
	}
	if (waits & NIC_WAIT_SQ && now < priv->due_ns)
		return nic_service_earlier(next, priv->due_ns);
	if (waits & NIC_WAIT_SQ) {
		__atomic_fetch_and(&qp->nic_stalled, ~(uint32_t)NIC_WAIT_SQ, __ATOMIC_RELEASE);
		nic_sq_run(qp);
		if (__atomic_load_n(&qp->nic_stalled, __ATOMIC_ACQUIRE) & NIC_WAIT_SQ)
			next = nic_service_earlier(next, priv->due_ns);
	}
	return next;
}

/* Time and result of the current nic_service(), which one thread of a process calls. */
static uint64_t nic_service_now, nic_service_next;

static void nic_service_qp(struct mdl_qp *qp, const struct nic_register *unused)
{
	uint64_t next = UINT64_MAX;

	mdl_lock(&qp->sq_lock);
	if (mdl_table_is_own(qp)) {
		next = nic_service_stalled(qp, nic_service_now);
		nic_rndv_check_sender(qp);
		next = nic_service_earlier(next, nic_service_record(qp, nic_service_now));
	}
	mdl_unlock(&qp->sq_lock);
	nic_service_next = nic_service_earlier(nic_service_next, next);
}

uint64_t nic_service(uint64_t now_ns)
{
	nic_service_blame();
	nic_service_now = now_ns;
	nic_service_next = UINT64_MAX;
	nic_own_qps(nic_service_qp, NULL);
	return nic_service_next;
}
