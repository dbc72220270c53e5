/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CM endpoint: its local addresses with a UDP socket each, the abstract socket, the cookie secret,
 * the peers, and accepted streams without a HELLO.
 *
 * Protected by the node's mutex, except node, ops, ctx, addr, the addresses of sockets, paths, inc
 * and uid, constant after open.
 *
 * Tested by test/unit/cm/test_cm_ep.c.
 */
#ifndef CM_EP_CM_EP_H
#define CM_EP_CM_EP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cm/base/cm.h"
#include "cm/base/cm_addr.h"
#include "cm/base/cm_mac.h"
#include "cm/base/cm_timer.h"
#include "cm/ep/cm_ended.h"
#include "cm/ep/cm_peer.h"
#include "cm/ep/cm_stranger.h"
#include "cm/node/cm_node.h"
#include "util/job_name.h"
#include "util/list.h"
#include "util/name.h"

/** Feature bits of this build (docs/handshake.md, section 2.2). */
#define CM_FEATURES                                                                                \
	(WIRE_CM_FEATURE_IDENTITY | WIRE_CM_FEATURE_NAME | WIRE_CM_FEATURE_MOVES |                 \
	 WIRE_CM_FEATURE_FAILBACK | WIRE_CM_FEATURE_RAILS | WIRE_CM_FEATURE_ROOM)

/** Counters of hosts; hosts that collide share one. */
#define CM_EP_HOSTS 1024u

struct cm_connreq;

/** One of the addresses of a CM endpoint, with the UDP socket that is bound to it. */
struct cm_ep_sock {
	struct cm_src src;
	struct cm_ep *cep;
	union cm_addr addr;
	unsigned prefix_len; /* bits that its network has in common; all if that is not known */
};

struct cm_ep {
	struct cm_node *node;
	const struct cm_ep_ops *ops;
	void *ctx;
	union cm_addr addr; /* the first one of its name */
	uint64_t inc;
	uid_t uid;
	struct cm_paths paths;
	uint32_t down_paths;                      /* cm_ep_set_down; atomic */
	struct util_job_name self;                /* identity that peers are sent */
	char name[WIRE_CM_NAME_LEN + 1];          /* name of the abstract socket */
	struct cm_ep_sock socks[UTIL_NAME_ADDRS]; /* the first one is at `addr` */
	uint32_t sock_cnt;
	struct cm_src listen;
	struct cm_timer listen_timer; /* ends a pause in accepting */
	uint32_t listen_pause_ms;     /* length of the last pause; 0: none */
	struct cm_timer tick_timer;   /* calls ops->tick */
	struct cm_cookie_jar jar;
	struct cm_peer_table peers;
	struct util_list conns;    /* cm_conn.cep_link: every conn not yet put */
	struct util_list incoming; /* cm_incoming.link, oldest first */
	uint32_t incoming_cnt;
	struct util_list req_queue;       /* cm_req.queue_link: requests without a slot */
	uint32_t req_slot_cnt;            /* requests being probed */
	struct util_list pending;         /* cm_conn.pending_link, oldest first */
	uint32_t pending_cnt;             /* conns without a stream in WELCOME_SENT */
	uint32_t zombie_cnt;              /* failed ones, not yet put (cm_pending.h) */
	struct cm_ended ended;            /* attempts whose HELLO is not accepted again */
	struct cm_stranger stranger;      /* limit on replies to senders without a proof */
	uint32_t watched_cnt;             /* conns without a stream in UP */
	uint32_t unused_cnt[CM_EP_HOSTS]; /* cm_unused.h, by host */
	uint32_t unused_max;
	uint32_t held_cnt[CM_EP_HOSTS]; /* cm_unused.h, by host */
	uint32_t held_max;
	uint64_t unused_sweep_ns; /* earliest time of the next sweep */
	bool is_private;          /* connects with `admitted` alone */
	union cm_addr admitted;   /* family 0: no peer */
	uint64_t admitted_inc;
	struct cm_connreq *connreq; /* msg/cm_msg.h; NULL: none */
	/* For msg: a connection is up (0), or a request failed with `err`. NULL: no connreq yet. */
	void (*on_result)(struct cm_ep *cep, int err);
	bool key_warned;                        /* the user was warned that keys differ */
	struct copyrpc_stats_handshakes *stats; /* own_stats until cm_ep_count_in */
	struct copyrpc_stats_handshakes own_stats;
};

/** Lets a private endpoint connect with this peer, or with none (NULL). Lock held. */
void cm_ep_admit(struct cm_ep *cep, const union cm_addr *addr, uint64_t inc);
bool cm_ep_admits(const struct cm_ep *cep, const union cm_addr *addr, uint64_t inc);
/** Returns the address of one of the sockets. */
static inline const union cm_addr *cm_ep_sock_addr(const struct cm_ep *cep, uint32_t sock)
{
	return sock ? &cep->socks[sock].addr : &cep->addr;
}

/**
 * Returns the counter index, below CM_EP_HOSTS, of the host of an address: an IPv4 address or an
 * IPv6 /64 network. Keyed, so that no sender can choose a collision.
 */
uint32_t cm_ep_host(const struct cm_ep *cep, const union cm_addr *addr);

/**
 * Returns 1 if `addr` is an address of this host, 0 if not, or -FI_E* if that is unknown. Asks the
 * kernel, a few microseconds.
 */
int cm_ep_find_local(const struct cm_ep *cep, const union cm_addr *addr);
/** Returns whether `addr` is known to be an address of this host: for the choice of routes. */
bool cm_ep_is_local(const struct cm_ep *cep, const union cm_addr *addr);
/**
 * Returns 1 if a peer at `addr` must prove its user by a stream, whatever the path: it is on this
 * host, and no job key proves that it belongs to the job. Returns 0 if not, or -FI_E* if that is
 * unknown; then nothing without a proof is accepted.
 */
int cm_ep_needs_proof(const struct cm_ep *cep, const union cm_addr *addr);
/** Returns those of `paths` whose device is not out, or all if none is left. */
uint32_t cm_ep_sound_paths(const struct cm_ep *cep, uint32_t paths);

#endif
