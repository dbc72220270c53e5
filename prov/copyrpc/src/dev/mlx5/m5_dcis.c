/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Policy of the pool of DC initiators (m5_dcis.h). */
#include "dev/mlx5/m5_dcis.h"

void m5_dcis_init(struct m5_dcis *pool)
{
	memset(pool, 0, sizeof(*pool));
	util_list_init(&pool->waiting);
}

struct m5_dci *m5_dcis_find(struct m5_dcis *pool, uint32_t qpn)
{
	/* Acquire: the control thread makes the pool while others' completions are polled. */
	uint32_t cnt = __atomic_load_n(&pool->cnt, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < cnt; i++)
		if (pool->dci[i].sq.qpn == qpn)
			return &pool->dci[i];
	return NULL;
}

static void m5_dcis_wait(struct m5_dcis *pool, struct m5_dlink *link)
{
	if (!util_list_is_empty(&link->waits))
		return;
	util_list_push_back(&pool->waiting, &link->waits);
	pool->waiting_cnt++;
}

static void m5_dcis_end_wait(struct m5_dcis *pool, struct m5_dlink *link)
{
	if (util_list_is_empty(&link->waits))
		return;
	util_list_remove(&link->waits);
	pool->waiting_cnt--;
}

static void m5_dcis_assign(struct m5_dcis *pool, struct m5_dci *dci, struct m5_dlink *link)
{
	if (dci->owner)
		dci->owner->dci = NULL;
	dci->owner = link;
	dci->used = 0;
	dci->reserved = 0;
	link->dci = dci;
	m5_dcis_end_wait(pool, link);
}

void m5_dcis_pass_on(struct m5_dcis *pool, struct m5_dci *dci)
{
	struct util_list *it, *tmp;

	UTIL_LIST_FOREACH_SAFE (it, tmp, &pool->waiting) {
		struct m5_dlink *link = UTIL_CONTAINER_OF(it, struct m5_dlink, waits);

		/* One over its quota may not leave its initiator, which is busy. */
		if (dci->broken || (link->dci && link->dci != dci))
			continue;
		m5_dcis_assign(pool, dci, link);
		dci->reserved = M5_DCI_RESERVED + M5_DCI_TURNS * pool->waiting_cnt;
		return;
	}
}

void m5_dcis_report(struct m5_dci *dci)
{
	struct m5_wqe wqe;

	if (!dci->sq.since_wqes || !m5_sq_has_room(&dci->sq, 1))
		return;
	m5_wqe_begin(&wqe, m5_sq_reserve(&dci->sq, 1));
	wqe.end = (uint8_t *)wqe.ctrl + M5_BB;
	m5_wqe_end(&wqe, dci->sq.pi, M5_OP_NOP, dci->sq.qpn, M5_CTRL_SIGNAL, 0);
	m5_sparse_put(&dci->users, dci->sq.pi, 0);
	m5_sq_commit(&dci->sq, 1, M5_CTRL_SIGNAL);
	m5_sq_ring(&dci->sq);
}

/* Returns how likely the owner of an idle DCI is to post soon: 0 hardly, 1 in its turn, 2 often. */
static int m5_dcis_worth(const struct m5_dcis *pool, const struct m5_dci *dci)
{
	if (!dci->owner || pool->clock - dci->last > M5_DCI_RECENT)
		return 0;
	return dci->used > 1 ? 2 : 1;
}

/*
 * Returns true if a change of DCI a's target costs less than one of b's. Of links that post in turn
 * the last one is the last to post again.
 */
static bool m5_dcis_is_worth_less(const struct m5_dcis *pool, const struct m5_dci *a,
				  const struct m5_dci *b)
{
	int worth = m5_dcis_worth(pool, a);

	if (worth != m5_dcis_worth(pool, b))
		return worth < m5_dcis_worth(pool, b);
	return worth == 1 ? a->last > b->last : a->last < b->last;
}

/* Returns the idle DCI whose link is missed least, or NULL. Counts refusals of reserved ones. */
static struct m5_dci *m5_dcis_idle(struct m5_dcis *pool)
{
	struct m5_dci *best = NULL;

	for (uint32_t i = 0; i < pool->cnt; i++) {
		struct m5_dci *dci = &pool->dci[i];

		if (dci->broken || !m5_dci_is_idle(dci))
			continue;
		if (dci->reserved)
			dci->reserved--;
		else if (!best || m5_dcis_is_worth_less(pool, dci, best))
			best = dci;
	}
	return best;
}

struct m5_dci *m5_dcis_take_cold(struct m5_dcis *pool, struct m5_dlink *link)
{
	struct m5_dci *dci = link->dci ? NULL : m5_dcis_idle(pool);

	if (dci) {
		m5_dcis_assign(pool, dci, link);
		return dci;
	}
	m5_dcis_wait(pool, link);
	/* Over its quota: no completion follows that would pass an idle initiator on. */
	if (link->dci && m5_dci_is_idle(link->dci)) {
		m5_dcis_pass_on(pool, link->dci);
		if (link->dci)
			return link->dci;
	}
	for (uint32_t i = 0; i < pool->cnt; i++)
		m5_dcis_report(&pool->dci[i]);
	return NULL;
}

void m5_dcis_leave(struct m5_dcis *pool, struct m5_dlink *link)
{
	struct m5_dci *dci = link->dci;

	m5_dcis_end_wait(pool, link);
	link->dci = NULL;
	if (!dci)
		return;
	dci->owner = NULL;
	dci->reserved = 0;
	m5_dcis_pass_on(pool, dci);
}
