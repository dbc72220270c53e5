/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is a datagram endpoint (FI_EP_DGRAM)?
 *
 * A datagram of the device is a message, without a byte of ours: it comes whole, once or twice or not at all,
 * in any order. There is no handshake and no peer; an address that is used is resolved once.
 *
 * Sending (dgram_tx.c): what the device copies goes as it is; the rest goes by slots, buffers of
 * ours that the device may read, so that a user's buffer is always free on return and a send has
 * ended when the device has it. With FI_MORE datagrams gather, and ring once.
 *
 * Receiving (dgram_rx.c): datagrams go into posted receives, oldest first, with one copy. With none
 * posted they stay in the device's buffers, rx_cnt of them, and go to the receives posted next; the
 * device drops what finds no buffer.
 *
 * Owner: whoever holds the domain. Shown by test/unit/dgram/test_dgram_ep.c, _tx.c and _rx.c.
 */
#ifndef DGRAM_EP_H
#define DGRAM_EP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/core_ep.h"
#include "dgram/dgram_av.h"
#include "dgram/dgram_engine.h"
#include "util/bits.h"
#include "util/pool.h"

#define DGRAM_BURST   16u  /* datagrams that gather, and that one poll takes */
#define DGRAM_TX_CNT  256u /* on their way, a power of two */
#define DGRAM_RX_CNT  512u /* buffers of the device */
#define DGRAM_IOV_MAX 4u
#define DGRAM_PREFIX  40u /* FI_MSG_PREFIX: a global route header, which comes in front over UD */

/** How an endpoint is opened: ofi/ fills it in. */
struct dgram_conf {
	const struct sockaddr *local; /* IP devices: where; concrete, port 0: any. Others: NULL */
	const struct dgram_av *av;
	uint64_t av_end;      /* numbers in use there are below */
	struct core_comp *tx; /* where completions go; they live as long as the endpoint */
	struct core_comp *rx;
	const size_t *min_multi_recv;
	uint32_t prefix; /* bytes in front of each message in users' buffers: 0 or DGRAM_PREFIX */
	bool source;     /* completions name the sender */
};

/** A posted receive. */
struct dgram_recv {
	struct util_list link;
	void *context;
	uint64_t flags; /* FI_COMPLETION */
	bool is_multi;  /* FI_MULTI_RECV: iov[0] is what is left */
	bool used;      /* multi: a datagram went into it */
	size_t len;
	size_t iov_cnt;
	struct iovec iov[DGRAM_IOV_MAX];
};

struct dgram_ep {
	struct dev_dgram *dg;
	const struct dev_dgram_ops *ops;
	struct core_comp *tx;
	struct core_comp *rx;
	struct dev_dgram_ah **ahs; /* by number; NULL: not resolved */
	uint64_t ah_cnt;
	int err; /* what ended the device's endpoint, or 0 */

	uint32_t burst_cnt; /* gathered */
	uint32_t slot_len;
	uint8_t *slots; /* DGRAM_TX_CNT of them; of datagram n: n % DGRAM_TX_CNT */
	struct dev_mem *slot_mem;
	struct dev_dgram_out burst[DGRAM_BURST];

	struct util_list posted; /* dgram_recv.link, oldest first */
	struct util_pool recvs;
	struct dev_dgram_in *held; /* datagrams for receives to come: a ring */
	uint32_t held_at;
	uint32_t held_cnt;
	uint32_t held_mask;
	uint32_t prefix; /* does not travel, counts in lengths; of a receive, iov[0] has it */
	bool source;
	const size_t *min_multi_recv;

	/* Seldom. */
	struct util_list link; /* dgram_engine.eps */
	struct dgram_engine *engine;
	const struct dgram_av *av;
	struct dgram_map senders;   /* dev_dgram_id -> number; with `source` */
	struct dev_dgram_ah **gone; /* of removed numbers, until close */
	uint32_t gone_cnt;
	struct dev_dgram_ah *self; /* see dgram_ep_is_busy */
	uint32_t self_number;
	bool self_sent;
	bool closing;                 /* nothing is received any more */
	struct sockaddr_storage name; /* as users write it */
	size_t name_len;
};

/** A send; a receive: as fi_sendmsg and fi_recvmsg state them. */
struct dgram_send {
	fi_addr_t dest;
	const struct iovec *iov;
	size_t iov_cnt; /* <= DGRAM_IOV_MAX */
	size_t len;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_MORE */
	bool silent;    /* injected: no completion if it goes well */
};

struct dgram_post {
	const struct iovec *iov;
	size_t iov_cnt;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_MULTI_RECV */
};

/** Opens one on the engine's device. 0 or -FI_E*, logged. */
int dgram_ep_open(struct dgram_engine *engine, const struct dgram_conf *conf, struct dgram_ep **ep);
/** Posted receives are dropped, and what is held. */
void dgram_ep_close(struct dgram_ep *ep);
/**
 * True while the device has not sent all that it was given: for who is about to close. Where a
 * device reports seldom, the first call sends it something that it has to report.
 */
bool dgram_ep_is_busy(struct dgram_ep *ep);

void dgram_ep_progress(struct dgram_ep *ep);
int dgram_ep_arm(struct dgram_ep *ep);
void dgram_ep_disarm(struct dgram_ep *ep);

/** The AV has a new number / has it no longer. 0 or -FI_ENOMEM. */
int dgram_ep_inserted(struct dgram_ep *ep, uint64_t number);
void dgram_ep_removed(struct dgram_ep *ep, uint64_t number);
/**
 * The way to a number: 0 and *ah, -FI_EINVAL (not in use), -FI_EHOSTUNREACH or -FI_ENOMEM.
 */
int dgram_ep_resolve(struct dgram_ep *ep, uint64_t number, struct dev_dgram_ah **ah);
/** Who sent it: a number, or DGRAM_NONE. */
uint64_t dgram_ep_sender(const struct dgram_ep *ep, const struct dev_dgram_in *in);
/** The device's endpoint has ended: so do all receives. */
void dgram_ep_fail(struct dgram_ep *ep, int err);

/**
 * 0: taken, and its buffers are the user's again; -FI_EAGAIN: no room; -FI_EMSGSIZE: longer than
 * the way there allows; -FI_EINVAL: iov[0] has no room for the prefix; as dgram_ep_resolve; or what
 * ended the endpoint.
 */
int dgram_tx_send(struct dgram_ep *ep, const struct dgram_send *s);
/** What was gathered leaves, as far as there is room: 0, -FI_EAGAIN, or what ended the endpoint. */
int dgram_tx_flush(struct dgram_ep *ep);

/** 0, -FI_ENOMEM, or -FI_EINVAL: iov[0] has no room for the prefix. */
int dgram_rx_post(struct dgram_ep *ep, const struct dgram_post *p);
/** The oldest receive with this context: 0 (its completion is FI_ECANCELED), or -FI_ENOENT. */
int dgram_rx_cancel(struct dgram_ep *ep, void *context);
/** Takes in what has come. */
void dgram_rx_poll(struct dgram_ep *ep);
/** All receives end with an error completion. */
void dgram_rx_fail(struct dgram_ep *ep, int err);

#endif
