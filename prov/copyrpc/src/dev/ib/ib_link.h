/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links of RDMA devices: memory, peer, and arrivals before attach. Embedded by m5_link and vb_link,
 * which make the queue pair and post to it.
 *
 *   make_memory -> the device makes qp -> describe -> connect -> attached
 *
 * A link belongs to the polling thread from attach to detach, to the control thread before and
 * after. Tests: test/unit/dev/verbs/test_vb_link.c, on the device model test/integ/dev/dev_link.
 */
#ifndef DEV_IB_IB_LINK_H
#define DEV_IB_IB_LINK_H

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#include "dev/dev.h"
#include "dev/ib/ib_desc.h"
#include "dev/ib/ib_dev.h"
#include "dev/ib/ib_early.h"
#include "dev/ib/ib_mem.h"
#include "util/list.h"

#define IB_LINK_PAGE 4096u /* of tx, in front of the send ring */

struct ib_link {
	struct dev_link base;

	/* Used by writes. */
	struct ibv_qp *qp;
	uint64_t peer_ring;
	uint32_t peer_rkey;
	uint32_t tx_lkey;
	bool dead;    /* no more posts; DEV_EV_DOWN was given or will be */
	bool reading; /* a READ of the consumer word is in flight */
	uint8_t reads_out;
	uint8_t reads_max;
	uint32_t peer_word_rkey;
	uint64_t peer_word;

	/* Rarely used. */
	struct ib_dev *dev;
	struct ib_link *first; /* link of another device whose memory this one uses, or NULL */
	uint32_t qpn;
	uint32_t psn;
	uint32_t peer_qpn;
	bool attached;
	int err;          /* status of the DEV_EV_DOWN to give, after the early immediates, or 0 */
	struct ib_mem rx; /* ring that the peer writes */
	struct ib_mem word; /* a page of its own: all that the peer may read */
	struct ib_mem tx;   /* a page for the peer's consumer word, then the send ring */

	/* Protected by the device's lock while not attached. */
	struct util_list cold; /* in a list of the device: waiting, early, or for links to end */
	struct ib_early early; /* arrivals before attach */
};

static_assert(offsetof(struct ib_link, base) == 0, "devices embed dev_link first");

/** Allocates the local ring and word. Returns 0, -FI_EINVAL for an illegal length, or an error. */
int ib_link_make_memory(struct ib_link *link, struct ib_dev *dev, uint64_t rx_len);
/** Registers the local ring and word of `first`, for make_memory. Returns 0 or an error. */
int ib_link_share_memory(struct ib_link *link, struct ib_dev *dev, struct ib_link *first);
/** Implements dev_link_ops.adopt. */
void ib_link_adopt(struct dev_link *link, struct dev_link *first);
/** Frees all memory. The queue pair is destroyed before. */
void ib_link_fini(struct ib_link *link);
/** Moves a new queue pair to INIT. */
int ib_link_init_qp(struct ib_link *link, struct ibv_qp *qp);

/** Implements dev_link_ops.describe. */
int ib_link_describe(struct dev_link *base, struct dev_desc *desc);
/** Makes or shares the send ring, and keeps the peer's addresses. Returns 0 or an error. */
int ib_link_make_tx(struct ib_link *link, const struct ib_desc *peer);
/**
 * Makes the send ring, puts the link into `waiting`, whose links keep arrivals, and connects the
 * queue pair. After an error the link can only be closed.
 */
int ib_link_connect(struct ib_link *link, const struct ib_desc *peer, pthread_mutex_t *lock,
		    struct util_list *waiting);
/** Returns the waiting link with this queue pair number, or NULL. Called under the lock. */
struct ib_link *ib_link_find(struct util_list *waiting, uint32_t qpn);
/** Moves a link from `waiting` to `early`, if it has arrivals or an error to report. */
void ib_link_attached(struct ib_link *link, pthread_mutex_t *lock, struct util_list *early);

#endif
