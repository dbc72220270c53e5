/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What belongs to one address of ours?
 *
 * The agent: two sockets (UDP for strangers, abstract for those who were invited), the secret
 * behind its cookies, the peers it deals with, and the callers that have not said who they are.
 * All of it under the node's mutex, but for what is fixed at open (node, ops, ctx, addr, paths, inc, uid).
 *
 * Shown by test/unit/cm/test_cm_ep.c.
 */
#ifndef CM_CM_AGENT_H
#define CM_CM_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cm/cm.h"
#include "cm/base/cm_addr.h"
#include "cm/base/cm_mac.h"
#include "cm/node/cm_node.h"
#include "cm/req/cm_peer.h"
#include "cm/base/cm_timer.h"
#include "util/list.h"

/** What this build speaks (docs/handshake.md, section 2.2). */
#define CM_FEATURES 0ull

struct cm_connreq;

struct cm_ep {
	struct cm_node *node;
	const struct cm_ep_ops *ops;
	void *ctx;
	union cm_addr addr;
	uint64_t inc;
	uid_t uid;
	struct cm_paths paths;
	char name[WIRE_CM_NAME_LEN + 1]; /* of the abstract socket */
	struct cm_src udp;
	struct cm_src listen;
	struct cm_timer listen_timer; /* accepting is paused until then */
	uint32_t listen_pause_ms;     /* length of the last pause; 0: all is well */
	struct cm_cookie_jar jar;
	struct cm_peer_table peers;
	struct util_list conns;   /* cm_conn.cep_link: every one that was not put */
	struct util_list callers; /* cm_caller.link, oldest first */
	uint32_t caller_cnt;
	struct util_list req_queue; /* cm_req.queue_link: no slot yet */
	uint32_t req_slot_cnt;      /* requests that are being probed */
	struct util_list pending;   /* cm_conn.pending_link, oldest first */
	uint32_t pending_cnt;       /* conns without a stream that are INVITED, */
	uint32_t zombie_cnt;        /* that came to nothing (cm_pending.h), */
	uint32_t watched_cnt;       /* and UP */
	bool is_private;            /* connects with nobody but ... */
	union cm_addr only;         /* family 0: nobody */
	uint64_t only_inc;
	struct cm_connreq *connreq; /* cm_msg.h; NULL: none */
	bool key_told;              /* the user knows that keys differ */
	struct cm_stats stats;
};

/** A private agent may be connected with this one, or with nobody (NULL). */
void cm_ep_admit(struct cm_ep *cep, const union cm_addr *addr, uint64_t inc);
bool cm_ep_admits(const struct cm_ep *cep, const union cm_addr *addr, uint64_t inc);
/** cm_connect and cm_connect_cancel with the lock held. */
int cm_ep_connect(struct cm_ep *cep, const union cm_addr *to);
void cm_ep_forget(struct cm_ep *cep, const union cm_addr *to);

#endif
