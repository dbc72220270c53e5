/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoint (FI_EP_DGRAM). Called by ofi/ and by the datagram engine.
 *
 * A message is a datagram of the device, without added bytes: it arrives whole, in any order, once,
 * twice or not at all. There is no handshake and no peer; an address is resolved once.
 *
 * Send side (dgram_tx.c): datagrams that the device copies are sent from the user's buffer, others
 * from a slot, a buffer that the device may read. The user's buffer is therefore free on return,
 * and a send is complete when the device has it. With FI_MORE datagrams gather and share a
 * doorbell.
 *
 * Receive side (dgram_rx.c): datagrams go into posted receives, oldest first, with one copy.
 * Without a posted receive they stay in the device's buffers, rx_cnt of them, until one is posted.
 * The device drops datagrams for which it has no buffer.
 *
 * A device that fails ends the endpoint, until it is back (dgram_outage.h).
 *
 * Owner: the thread that holds the domain. Tested by test/unit/dgram/test_dgram_ep.c, _tx.c and
 * _rx.c.
 */
#ifndef DGRAM_DGRAM_EP_H
#define DGRAM_DGRAM_EP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/core_ep.h"
#include "dgram/dgram_av.h"
#include "dgram/dgram_engine.h"
#include "util/bits.h"
#include "util/pool.h"

#define DGRAM_BURST   16u  /* Datagrams per burst and per poll */
#define DGRAM_TX_CNT  256u /* Datagrams in flight, a power of two */
#define DGRAM_RX_CNT  512u /* Buffers of the device */
#define DGRAM_IOV_MAX 4u
#define DGRAM_PREFIX  40u /* FI_MSG_PREFIX: global route header, in front of the message over UD */

/** Parameters of an endpoint, filled in by ofi/. */
struct dgram_conf {
	const struct sockaddr *local; /* IP devices: concrete address, port 0: any. Others: NULL */
	const struct dgram_av *av;
	struct core_comp *tx; /* Destinations of completions; they outlive the endpoint */
	struct core_comp *rx;
	const size_t *min_multi_recv;
	uint32_t prefix; /* Bytes in front of each message in users' buffers: 0 or DGRAM_PREFIX */
	bool source;     /* Completions name the sender */
};

/** Posted receive. */
struct dgram_recv {
	struct util_list link;
	void *context;
	uint64_t flags; /* FI_COMPLETION */
	bool is_multi;  /* FI_MULTI_RECV: iov[0] is the unused rest */
	bool used;      /* Multi-receive: a datagram was received into the buffer */
	size_t len;
	size_t iov_cnt;
	struct iovec iov[DGRAM_IOV_MAX];
};

/** Address handle of a removed number. */
struct dgram_gone {
	struct dev_dgram_ah *ah;
	uint32_t end; /* Datagrams before this number may use it */
};

struct dgram_ep {
	struct dev_dgram *dg;
	const struct dev_dgram_ops *ops;
	struct core_comp *tx;
	struct core_comp *rx;
	struct dev_dgram_ah **ahs; /* By number; NULL: not resolved */
	uint64_t ah_cnt;
	int err; /* Error that ended the device's endpoint, until that is made anew; or 0 */

	uint32_t burst_cnt; /* Gathered datagrams */
	uint32_t slot_len;
	uint8_t *slots; /* DGRAM_TX_CNT slots; datagram n uses slot n % DGRAM_TX_CNT */
	struct dev_mem *slot_mem;
	struct dev_dgram_out burst[DGRAM_BURST];

	struct util_list posted; /* dgram_recv.link, oldest first */
	struct util_pool recvs;
	struct dev_dgram_in *queued; /* Ring of received datagrams without a posted receive */
	uint32_t queued_head;
	uint32_t queued_cnt;
	uint32_t queued_mask;
	/* Not transmitted, but counted in lengths; iov[0] of a receive includes it */
	uint32_t prefix;
	bool source;
	const size_t *min_multi_recv;

	/* Rarely used. */
	struct util_list link; /* dgram_engine.eps */
	struct dgram_engine *engine;
	const struct dgram_av *av;
	struct dgram_map senders; /* dev_dgram_id -> number; used with `source` */
	/* Handles of removed numbers, oldest first; freed at changes of the AV and at close */
	struct dgram_gone *removed;
	uint32_t removed_cnt;
	struct dev_dgram_ah *self; /* Handle of this endpoint: see dgram_ep_is_busy */
	uint32_t self_number;
	bool self_sent;
	bool closing;                 /* Nothing is received any more */
	struct sockaddr_storage name; /* Address as users write it */
	size_t name_len;
};

/** Arguments of a send and of a receive, as in fi_sendmsg and fi_recvmsg. */
struct dgram_send {
	fi_addr_t dest;
	const struct iovec *iov;
	size_t iov_cnt; /* <= DGRAM_IOV_MAX */
	size_t len;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_MORE */
	bool silent;    /* Injected: no completion on success */
};

struct dgram_post {
	const struct iovec *iov;
	size_t iov_cnt;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_MULTI_RECV */
};

/** Opens an endpoint on the engine's device. Returns 0 or -FI_E*, logged. */
int dgram_ep_open(struct dgram_engine *engine, const struct dgram_conf *conf, struct dgram_ep **ep);
/** Closes the endpoint. Drops posted receives and queued datagrams. */
void dgram_ep_close(struct dgram_ep *ep);
/**
 * Closes what an endpoint has on the device: its queue pair, addresses, datagrams. Only
 * dgram_ep_remake and dgram_ep_close may follow.
 */
void dgram_ep_unmake(struct dgram_ep *ep);
/**
 * Makes it anew, which gives the endpoint another address. Returns 0 and ends the failure, or
 * -FI_E*.
 */
int dgram_ep_remake(struct dgram_ep *ep);
/**
 * Returns true while the device has unsent datagrams; called before close. Where the device reports
 * seldom, the first call sends a datagram with a reported completion.
 */
bool dgram_ep_is_busy(struct dgram_ep *ep);

void dgram_ep_progress(struct dgram_ep *ep);
int dgram_ep_arm(struct dgram_ep *ep);
void dgram_ep_disarm(struct dgram_ep *ep);

/** Handle an address inserted into or removed from the AV. inserted returns 0 or -FI_ENOMEM. */
int dgram_ep_inserted(struct dgram_ep *ep, uint64_t number);
void dgram_ep_removed(struct dgram_ep *ep, uint64_t number);
/**
 * Resolves a number. Returns 0 and *ah, -FI_EINVAL if the number is unused, -FI_EHOSTUNREACH or
 * -FI_ENOMEM.
 */
int dgram_ep_resolve(struct dgram_ep *ep, uint64_t number, struct dev_dgram_ah **ah);
/** Returns the number of the sender, or DGRAM_NONE. */
uint64_t dgram_ep_sender(const struct dgram_ep *ep, const struct dev_dgram_in *in);
/** Marks the endpoint as failed: ends all receives with an error, until dgram_ep_remake. */
void dgram_ep_fail(struct dgram_ep *ep, int err);

/**
 * Returns 0 if the message was accepted and its buffers are free again, -FI_EAGAIN if the device
 * has no space, -FI_EMSGSIZE if the message exceeds the route's MTU, -FI_EINVAL if iov[0] is
 * shorter than the prefix, an error of dgram_ep_resolve, or the error that ended the endpoint.
 */
int dgram_tx_send(struct dgram_ep *ep, const struct dgram_send *s);
/**
 * Sends the gathered datagrams as far as the device has space. Returns 0, -FI_EAGAIN, or the error
 * that ended the endpoint.
 */
int dgram_tx_flush(struct dgram_ep *ep);

/** Returns 0, -FI_ENOMEM, or -FI_EINVAL if iov[0] is shorter than the prefix. */
int dgram_rx_post(struct dgram_ep *ep, const struct dgram_post *p);
/**
 * Cancels the oldest receive with this context. Returns 0 (it completes with FI_ECANCELED), or
 * -FI_ENOENT.
 */
int dgram_rx_cancel(struct dgram_ep *ep, void *context);
/** Receives arrived datagrams. */
void dgram_rx_poll(struct dgram_ep *ep);
/** Ends all receives with an error completion. */
void dgram_rx_fail(struct dgram_ep *ep, int err);

#endif
