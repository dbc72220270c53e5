/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What do all links of a process share?
 *
 *   one receive CQ and one shared receive queue: an arrival from any peer is one CQE here, so an
 *   idle poll costs the same with 1 peer and with 1000
 *
 *   send CQs, one for as many links as it has room for should all of their WQEs fail at once: a
 *   CQ that overruns takes every link down. An idle poll looks at one of them, in turn.
 *
 * Threads. Links are created, connected and closed by the control thread while another polls. What
 * they share is under `lock`: the links that wait for attach, the UARs, who has which send CQ, the
 * graves. All the rest belongs to who polls (the holder of the domain). Polling takes the lock only
 * for a CQE of a QP that it does not know: of a link that is not attached yet (its immediate is
 * kept for attach), or no longer (dropped and counted).
 *
 * Shown by test/unit/dev/mlx5/test_m5_dev.c; on the device model by test/integ/dev_link.
 */
#ifndef M5_M5_DEV_H
#define M5_M5_DEV_H

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "dev/ib/ib_async.h"
#include "dev/ib/ib_dev.h"
#include "dev/ib/ib_qpns.h"
#include "dev/mlx5/m5_cq.h"
#include "dev/mlx5/m5_srq.h"
#include "dev/mlx5/m5_uar.h"
#include "util/list.h"

/** Depths to ask the library for; it rounds up. A test makes them small before open. */
struct m5_tune {
	uint32_t srq;       /* receive WQEs for all links; one place more is made */
	uint32_t cq;        /* of the receive CQ, at least srq + 1; and of a send CQ */
	uint32_t sq_blocks; /* per link */
	bool zip;           /* CQEs may be compressed: fewer bytes on the bus, more to do here */
};

extern struct m5_tune m5_tune;

/** A send CQ and the links on it. */
struct m5_scq {
	struct m5_cq cq; /* who polls */
	uint32_t attached_cnt;

	struct util_list in_dev; /* in m5_dev.scqs */
	uint32_t room;           /* WQEs that may still be given to links */
	uint32_t link_cnt;
	struct ibv_cq *obj;
};

/** A doorbell register; QPs that the library put on the same one share it. */
struct m5_reg {
	struct m5_uar uar; /* who polls */
	struct util_list in_dev;
};

struct m5_dev {
	/* Polling. */
	alignas(UTIL_CACHE_LINE) struct m5_cq rx;
	alignas(UTIL_CACHE_LINE) struct m5_srq srq;
	struct m5_scq **active; /* with attached links */
	uint32_t active_cnt;
	uint32_t active_cap;
	uint32_t cursor;
	struct ib_async async;
	/* Attached links with immediates from before, or at their end: m5_link.cold */
	struct util_list early;
	struct util_list uds; /* m5_ud.in_dev */
	struct ib_qpns qpns;  /* attached links */
	uint64_t stray_cnt;   /* CQEs of QPs that are gone: dropped */

	/* Seldom. */
	struct ib_dev ib;
	struct ibv_comp_channel *chan;
	struct ibv_cq *rx_obj;
	struct ibv_srq *srq_obj;

	pthread_mutex_t lock;
	struct util_list waiting; /* connected, not attached: m5_link.cold */
	struct util_list graves;  /* closed without having been attached: m5_link.cold */
	struct util_list scqs;
	struct util_list regs;
};

/** A send CQ with room for `wqes` more: finds one or makes one. Under the lock. */
int m5_scq_get(struct m5_dev *dev, uint32_t wqes, struct m5_scq **scq);
/** Gives it back; the last link's frees it. Under the lock. */
void m5_scq_put(struct m5_scq *scq, uint32_t wqes);
/** A link of it was attached, or leaves. By who polls. 0 or -FI_ENOMEM. */
int m5_scq_activate(struct m5_dev *dev, struct m5_scq *scq);
void m5_scq_deactivate(struct m5_dev *dev, struct m5_scq *scq);

/** The register at `reg`, with the state that all its users share. Under the lock. */
int m5_reg_get(struct m5_dev *dev, void *reg, uint32_t half, struct m5_uar **uar);
void m5_reg_put(struct m5_dev *dev, struct m5_uar *uar);

/**
 * Makes a CQ of `depth`, whose events go to chan with this context, and fills cq from it. 0 or
 * -FI_E*.
 */
int m5_dev_make_cq(struct m5_dev *dev, uint32_t depth, void *context, struct ibv_comp_channel *chan,
		   struct ibv_cq **obj, struct m5_cq *cq);

/** What the device says of itself: links that end by it are in `early` then. By who polls. */
void m5_dev_event_cold(struct m5_dev *dev);

/** Buries what was closed without having been attached. By who polls, or when nobody does. */
void m5_dev_defer_destroy(struct m5_dev *dev);

int m5_dev_probe(struct dev_about *about);
int m5_dev_open(struct dev **dev);
void m5_dev_close(struct dev *dev);
int m5_dev_mem_reg(struct dev *dev, const void *addr, size_t len, unsigned access,
		   struct dev_mem **mem);
void m5_dev_mem_dereg(struct dev *dev, struct dev_mem *mem);
int m5_dev_wait_fd(struct dev *dev);
int m5_dev_arm(struct dev *dev);
void m5_dev_disarm(struct dev *dev);

#endif
