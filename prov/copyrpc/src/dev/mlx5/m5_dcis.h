/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pool of DC initiators, and which link posts to which. Called by m5_dlink.c and m5_poll.c.
 *
 * An initiator (DCI) is a send queue that reaches any target, one after the other. It belongs to
 * one link from the link's first post until another link takes it, which happens only while it is
 * idle: while the device has executed all that was posted to it. So the WQEs of a link are executed
 * in order, and an error of a DCI concerns one link.
 *
 *   no more links than DCIs   each keeps its own: no target is ever left, and few WQEs report
 *   more                      each WQE reports, so that it is known when a DCI is idle; one is
 *                             taken whose link is expected to post last, since to change the target
 *                             costs two packets
 *
 * Links are expected to post last in this order: one that did not in the last M5_DCI_RECENT posts;
 * of those with one post since they got their DCI the one that posted last, because links that post
 * in turn come back in order; of those that post often the one that did not for longest.
 *
 * A link that finds none idle waits, in order. A DCI that becomes idle goes to the first that
 * waits, and is reserved until its next post, but not for ever: refusals of others end that,
 * M5_DCI_RESERVED of them and M5_DCI_TURNS per link that waits. All of those try in turn, so the
 * order holds however many there are. A link that others wait for gets no more than M5_DCI_QUOTA
 * posts in a row.
 *
 * Runs in the polling thread, but for the creation. Pure but for NOPs that it posts. Tests:
 * test/unit/dev/mlx5/test_m5_dcis.c.
 */
#ifndef DEV_MLX5_M5_DCIS_H
#define DEV_MLX5_M5_DCIS_H

#include <infiniband/verbs.h>

#include "dev/mlx5/m5_sq.h"
#include "dev/mlx5/m5_table.h"
#include "util/list.h"

#define M5_DCIS_MAX     64u
#define M5_DCI_QUOTA    32u
#define M5_DCI_RECENT   64u
#define M5_DCI_RESERVED 64u
#define M5_DCI_TURNS    4u

struct m5_scq;
struct m5_dlink;

/** DC initiator. */
struct m5_dci {
	struct m5_sq sq;
	struct m5_sparse users; /* user words, like those of a link (m5_link.h) */
	struct m5_dlink *owner; /* link that posted last, or may post next; NULL: none */
	uint32_t used;          /* posts since the owner got it */
	uint32_t reserved;      /* refusals of others until an owner that does not post loses it */
	uint64_t last;          /* value of the pool's clock at the last post */
	bool broken;            /* did not start after a reset; tried again (m5_dct_restart) */

	/* Rarely used. */
	struct ibv_qp *qp;
	struct m5_scq *scq;
	uint32_t sq_blocks;
};

struct m5_dcis {
	struct m5_dci dci[M5_DCIS_MAX];
	uint32_t cnt;
	uint32_t link_cnt; /* attached links */
	uint64_t clock;
	uint32_t waiting_cnt;
	struct util_list waiting; /* m5_dlink.waits */
};

/** Part of a link that posts to DCIs. */
struct m5_dlink {
	struct m5_dci *dci;     /* NULL: none */
	struct util_list waits; /* in m5_dcis.waiting, while it waits for a DCI */
};

void m5_dcis_init(struct m5_dcis *pool);
static inline void m5_dlink_init(struct m5_dlink *link)
{
	link->dci = NULL;
	util_list_init(&link->waits);
}

/** Returns true if the device has executed everything that was posted. */
static inline bool m5_dci_is_idle(const struct m5_dci *dci)
{
	return dci->sq.ci == dci->sq.pi;
}

/** Returns a DCI to which the link may post now, or NULL: it waits for one. */
struct m5_dci *m5_dcis_take_cold(struct m5_dcis *pool, struct m5_dlink *link);

static inline struct m5_dci *m5_dcis_take(struct m5_dcis *pool, struct m5_dlink *link)
{
	struct m5_dci *dci = link->dci;

	if (UTIL_UNLIKELY(!dci) ||
	    (UTIL_UNLIKELY(!util_list_is_empty(&pool->waiting)) && dci->used >= M5_DCI_QUOTA))
		return m5_dcis_take_cold(pool, link);
	return dci;
}

/** Counts a post of the DCI's owner. */
static inline void m5_dcis_posted(struct m5_dcis *pool, struct m5_dci *dci)
{
	dci->last = ++pool->clock;
	dci->used++;
	dci->reserved = 0;
}

/** Returns true if there are more links than DCIs. */
static inline bool m5_dcis_are_shared(const struct m5_dcis *pool)
{
	return pool->link_cnt > pool->cnt;
}

/** Returns M5_CTRL_SIGNAL if the next WQE, of `bb` blocks, must report, otherwise 0. */
static inline uint8_t m5_dcis_signal(const struct m5_dcis *pool, const struct m5_dci *dci,
				     uint16_t bb)
{
	return m5_dcis_are_shared(pool) ? M5_CTRL_SIGNAL : m5_sq_signal(&dci->sq, bb);
}

/** Lets the last WQE's completion be reported, if nothing behind it is and there is room. */
void m5_dcis_report(struct m5_dci *dci);

/** Gives an idle DCI to the first link that waits, if one does. Called when it becomes idle. */
void m5_dcis_pass_on(struct m5_dcis *pool, struct m5_dci *dci);

/** Ends a link's use of the pool. Its DCI, if it has one, is idle, or was reset. */
void m5_dcis_leave(struct m5_dcis *pool, struct m5_dlink *link);

/** Returns the DCI with this number, or NULL. */
struct m5_dci *m5_dcis_find(struct m5_dcis *pool, uint32_t qpn);

#endif
