/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State that all mlx5 links of a process share.
 *
 *   One receive CQ and one shared receive queue: an arrival from any peer is one CQE here. An idle
 *   poll costs the same with 1 peer and with 1000.
 *
 *   Send CQs: each serves as many links as it has room for should all their WQEs fail at once, as
 *   an overrun of a CQ breaks all its links. An idle poll reads one of them, in turn.
 *
 * Threads: the control thread creates, connects and closes links while the polling thread polls.
 * They share, under `lock`: links that wait for attach, UARs, room of the send CQs, deferred frees,
 * the set of open tag lists.
 * The polling thread, which holds the domain's lock, owns the rest. It takes `lock` only for a CQE
 * of an unknown QP: of a link not yet attached (its immediate is kept for attach), or of a closed
 * one (the CQE is dropped and counted).
 *
 * Tests: test/unit/dev/mlx5/test_m5_dev.c; on the device model test/integ/dev/dev_link.
 */
#ifndef DEV_MLX5_M5_DEV_H
#define DEV_MLX5_M5_DEV_H

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "dev/ib/ib_async.h"
#include "dev/ib/ib_dev.h"
#include "dev/ib/ib_qpns.h"
#include "dev/mlx5/m5_cq.h"
#include "dev/mlx5/m5_dct.h"
#include "dev/mlx5/m5_srq.h"
#include "dev/mlx5/m5_uar.h"
#include "util/list.h"

/** Depths to request; the library rounds up. Tests set small ones before open. */
struct m5_tune {
	uint32_t srq;       /* receive WQEs for all links; the queue has one more place */
	uint32_t cq;        /* of the receive CQ, at least srq + 1, and of a send CQ */
	uint32_t sq_blocks; /* per link, and per DC initiator */
};

extern struct m5_tune m5_tune;

/** Send CQ, with its links. */
struct m5_scq {
	struct m5_cq cq; /* polling thread only */
	uint32_t attached_cnt;

	struct util_list in_dev; /* in m5_dev.scqs */
	uint32_t room;           /* WQEs that may still be assigned to links */
	uint32_t link_cnt;
	struct ibv_cq *obj;
};

/** Doorbell register. QPs that the library put on the same register share it. */
struct m5_reg {
	struct m5_uar uar; /* polling thread only */
	struct util_list in_dev;
};

struct m5_dev {
	/* Used by poll. */
	alignas(UTIL_CACHE_LINE) struct m5_cq rx;
	alignas(UTIL_CACHE_LINE) struct m5_srq srq;
	struct m5_scq **active; /* send CQs with attached links */
	uint32_t active_cnt;
	uint32_t active_cap;
	uint32_t cursor;
	struct ib_async async;
	/*
	 * Attached links with immediates from before attach, or with an error to report:
	 * ib_link.cold.
	 */
	struct util_list early;
	struct util_list uds; /* ib_ud.in_dev */
	struct ib_qpns qpns;  /* attached links */
	uint64_t stray_cnt;   /* CQEs of QPs that no longer exist: dropped */
	struct m5_dc dc;

	/* Rarely used. */
	struct ib_dev ib;
	struct ibv_comp_channel *chan;
	struct ibv_cq *rx_obj;
	struct ibv_srq *srq_obj;

	pthread_mutex_t lock;
	struct util_list waiting; /* known to the peer, not attached: ib_link.cold */
	uint32_t rc_cnt;          /* links with a queue pair */
	/* closed before attach, to be freed by the polling thread: ib_link.cold */
	struct util_list to_free;
	struct util_list scqs;
	struct util_list tms; /* m5_tm.in_dev, to be armed. Zero-filled is empty, too. */
	struct util_list regs;
};

/** Finds or makes a send CQ with room for `wqes` more. Called under the lock. */
int m5_scq_get(struct m5_dev *dev, uint32_t wqes, struct m5_scq **scq);
/** Returns the room of a link to its send CQ, and frees the CQ of the last link. Under the lock. */
void m5_scq_put(struct m5_scq *scq, uint32_t wqes);
/** Adds the send CQ to those polled, at the first attach. Returns 0 or -FI_ENOMEM. */
int m5_scq_activate(struct m5_dev *dev, struct m5_scq *scq);
/* Removes the send CQ from those polled, at the last detach. */
void m5_scq_deactivate(struct m5_dev *dev, struct m5_scq *scq);

/** Returns the state shared by all users of the doorbell register at `reg`. Under the lock. */
int m5_reg_get(struct m5_dev *dev, void *reg, uint32_t half, struct m5_uar **uar);
void m5_reg_put(struct m5_dev *dev, struct m5_uar *uar);

/**
 * Makes a CQ of `depth`, which the library rounds up, with events to chan under this context, and
 * fills cq from it. The context of a CQ on the device's channel is its struct m5_cq. Returns 0 or
 * an error.
 */
int m5_dev_make_cq(struct m5_dev *dev, uint32_t depth, void *context, struct ibv_comp_channel *chan,
		   struct ibv_cq **obj, struct m5_cq *cq);

/** Fills cq from a CQ of the library. Returns 0, or -FI_ENOSYS with a log line. */
int m5_dev_take_cq(struct m5_cq *cq, struct ibv_cq *obj);

/**
 * Fills srq from a new shared receive queue of the library, which a CQ of `cqes` serves, and posts
 * nothing. Returns 0 or an error, logged.
 */
int m5_dev_take_srq(struct m5_dev *dev, struct ibv_srq *obj, uint32_t cqes, struct m5_srq *srq);

/**
 * Fills *sq and makes *users for the send queue of a QP: at most `blocks`. Called under the lock.
 * Returns 0 or an error.
 */
int m5_dev_take_sq(struct m5_dev *dev, struct ibv_qp *qp, uint32_t blocks, struct m5_sq *sq,
		   struct m5_sparse *users);

/** Handles asynchronous events of the device: puts the links that they end into `early`. */
void m5_dev_event_cold(struct m5_dev *dev);

/** Frees links closed before attach. Called by the polling thread, or after polling has stopped. */
void m5_dev_defer_destroy(struct m5_dev *dev);

int m5_dev_probe(struct dev_about *about);
int m5_dev_open(struct dev **dev);
int m5_dev_open_beside(struct dev *other, struct dev **dev);
void m5_dev_close(struct dev *dev);
int m5_dev_mem_reg(struct dev *dev, const void *addr, size_t len, unsigned access,
		   struct dev_mem **mem);
void m5_dev_mem_dereg(struct dev *dev, struct dev_mem *mem);
uint32_t m5_dev_own_left(struct dev *dev);
int m5_dev_wait_fd(struct dev *dev);
int m5_dev_arm(struct dev *dev);
void m5_dev_disarm(struct dev *dev);
int m5_dev_health(struct dev *dev);

#endif
