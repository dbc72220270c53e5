/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs and completion queues of this process.
 *
 * Lists of indices, so that no thread walks the fabric's tables for the few objects of its process.
 * A slot is taken and freed by compare and swap, because any thread creates objects. A callback may
 * get an object that is being destroyed, and checks its number under its lock.
 */
#include "model/nic/nic_own.h"

#include "model/nic/nic_state.h"

/* index + 1 of an object; 0: free. end: all slots from there on were never used. */
static uint32_t nic_own_qp[MDL_QP_MAX], nic_own_qp_end;
static uint32_t nic_own_cq[MDL_CQ_MAX], nic_own_cq_end;

static void nic_own_extend(uint32_t *end, uint32_t to)
{
	uint32_t now = __atomic_load_n(end, __ATOMIC_RELAXED);

	while (now < to && !__atomic_compare_exchange_n(end, &now, to, true, __ATOMIC_RELEASE,
							__ATOMIC_RELAXED))
		;
}

static void nic_own_add(uint32_t *list, uint32_t size, uint32_t *end, uint32_t entry)
{
	for (uint32_t i = 0; i < size; i++) {
		uint32_t none = 0;

		if (!__atomic_compare_exchange_n(&list[i], &none, entry, false, __ATOMIC_RELEASE,
						 __ATOMIC_RELAXED))
			continue;
		nic_own_extend(end, i + 1);
		return;
	}
}

void nic_own_add_qp(struct mdl_qp *qp)
{
	nic_own_add(nic_own_qp, MDL_QP_MAX, &nic_own_qp_end, qp - mdl_self.seg->qp + 1);
}

void nic_own_remove_qp(struct mdl_qp *qp)
{
	uint32_t entry = qp - mdl_self.seg->qp + 1;
	uint32_t end = __atomic_load_n(&nic_own_qp_end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < end; i++)
		if (__atomic_load_n(&nic_own_qp[i], __ATOMIC_RELAXED) == entry)
			__atomic_store_n(&nic_own_qp[i], 0, __ATOMIC_RELEASE);
}

/* Counts CQs without a number yet as well. */
static bool nic_own_is_taken(const struct mdl_cq *cq)
{
	return __atomic_load_n(&cq->claimed, __ATOMIC_ACQUIRE) &&
	       nic_is_ours(__atomic_load_n(&cq->proc, __ATOMIC_RELAXED));
}

/* Drops the entries of CQs that are gone, as the border does not report their destruction. */
static void nic_own_drop_cqs(void)
{
	uint32_t end = __atomic_load_n(&nic_own_cq_end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < end; i++) {
		uint32_t entry = __atomic_load_n(&nic_own_cq[i], __ATOMIC_ACQUIRE);
		const struct mdl_cq *cq = entry ? &mdl_self.seg->cq[entry - 1] : NULL;

		if (cq && !nic_own_is_taken(cq))
			__atomic_compare_exchange_n(&nic_own_cq[i], &entry, 0, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void nic_own_add_cq(struct mdl_cq *cq)
{
	uint32_t entry = cq - mdl_self.seg->cq + 1;
	uint32_t end = __atomic_load_n(&nic_own_cq_end, __ATOMIC_ACQUIRE);

	nic_own_drop_cqs();
	for (uint32_t i = 0; i < end; i++)
		if (__atomic_load_n(&nic_own_cq[i], __ATOMIC_RELAXED) == entry)
			return;
	nic_own_add(nic_own_cq, MDL_CQ_MAX, &nic_own_cq_end, entry);
}

void nic_own_qps(void (*each)(struct mdl_qp *qp, const struct nic_register *which),
		 const struct nic_register *which)
{
	uint32_t end = __atomic_load_n(&nic_own_qp_end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < end; i++) {
		uint32_t entry = __atomic_load_n(&nic_own_qp[i], __ATOMIC_ACQUIRE);

		if (entry)
			each(&mdl_self.seg->qp[entry - 1], which);
	}
}

void nic_own_cqs(void (*each)(struct mdl_cq *cq))
{
	uint32_t end = __atomic_load_n(&nic_own_cq_end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < end; i++) {
		uint32_t entry = __atomic_load_n(&nic_own_cq[i], __ATOMIC_ACQUIRE);
		struct mdl_cq *cq = entry ? &mdl_self.seg->cq[entry - 1] : NULL;

		if (cq && mdl_table_is_own(cq))
			each(cq);
	}
}
