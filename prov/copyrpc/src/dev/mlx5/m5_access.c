/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs of simple accesses: see m5_access.h. */
#include "dev/mlx5/m5_access.h"

void m5_link_end_run(struct m5_link *link)
{
	struct m5_sq *sq = &link->sq;
	struct m5_ctrl *ctrl = m5_sq_at(sq, link->access_last);

	if (link->run.due) {
		ctrl->fm_ce_se |= M5_CTRL_SIGNAL;
		sq->since_bb = sq->since_wqes = 0;
		link->access_quiet = false;
	}
	link->run.is_open = 0;
}

/** Returns the blocks that a run may take from pi on. */
static uint16_t m5_access_run_len(const struct m5_sq *sq)
{
	uint32_t size = (uint32_t)sq->mask + 1, built = (uint16_t)(sq->pi - sq->rung);
	uint32_t most = built < M5_ACCESS_RUN_BB ? M5_ACCESS_RUN_BB - built : 0;
	uint32_t lap = size - (sq->pi & sq->mask), room = size - m5_sq_in_flight(sq);

	most = most < sq->sig_limit ? most : sq->sig_limit;
	most = most < lap ? most : lap;
	return (uint16_t)(most < room ? most : room);
}

int m5_access_begin_run(struct m5_link *link, uint16_t bb)
{
	struct m5_sq *sq = &link->sq;
	uint16_t len;

	if (link->ib.dead)
		return -FI_EAGAIN;
	/* A run that only the end of the queue divides goes on. */
	if ((uint16_t)(sq->pi - sq->rung) + bb > M5_ACCESS_RUN_BB || !m5_sq_has_room(sq, bb))
		m5_link_ring(link);
	if (!m5_sq_has_room(sq, bb))
		return -FI_EAGAIN;
	m5_sq_reserve(sq, bb);
	len = m5_access_run_len(sq);
	link->run.left = len < bb ? bb : len;
	/* An upper limit, also of the WQEs: each takes a block at least. */
	link->run.due |= m5_sq_signal(sq, link->run.left) ||
			 sq->since_wqes + link->run.left >= M5_SQ_SIG_WQES;
	sq->since_bb = (uint16_t)(sq->since_bb + link->run.left);
	sq->since_wqes = (uint16_t)(sq->since_wqes + link->run.left);
	return 0;
}

/** Builds a NOP that reports the simple accesses before it. The caller checked the room. */
static void m5_access_post_nop(struct m5_link *link)
{
	struct m5_wqe wqe;

	m5_wqe_begin(&wqe, m5_sq_reserve(&link->sq, 1));
	wqe.end = (uint8_t *)wqe.ctrl + M5_BB;
	m5_wqe_end(&wqe, link->sq.pi, M5_OP_NOP, link->sq.qpn, M5_CTRL_SIGNAL, 0);
	m5_link_commit(link, 1, M5_CTRL_SIGNAL, m5_user_access(link->ib.base.access_cnt));
}

int m5_link_settle(struct dev_link *base)
{
	struct m5_link *link = (struct m5_link *)base;

	if (link->ib.dead || !m5_sq_has_room(&link->sq, 1))
		return -FI_EAGAIN;
	m5_link_ring(link);
	if (!link->access_quiet)
		return 0;
	m5_access_post_nop(link);
	link->access_quiet = false;
	m5_sq_ring(&link->sq);
	return 0;
}

/**
 * Returns false if the word at block `at` is of an earlier lap for sure: more accesses followed it
 * than there are blocks behind it. Modulo 2^32 nothing else shows how old it is.
 */
static bool m5_access_is_recent(const struct m5_link *link, uint16_t at, uint32_t cnt)
{
	return link->ib.base.access_cnt - cnt < (uint16_t)(link->sq.pi - at);
}

/**
 * Words that other WQEs left in place belong to accesses of an earlier lap, which have ended, too.
 */
bool m5_link_accessed(const struct m5_link *link, uint16_t counter, uint32_t *cnt)
{
	bool found = false;

	for (uint16_t at = link->sq.ci; at != counter; at++) {
		uint64_t user = link->users.user[at & link->users.mask];
		uint32_t here = m5_user_access_cnt(user);

		if (!m5_user_is_access(user) || !m5_access_is_recent(link, at, here) ||
		    (found && (int32_t)(here - *cnt) <= 0))
			continue;
		*cnt = here;
		found = true;
	}
	return found;
}
