/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two datagram endpoints over a simulated network, a session between them, and two users who say what they
 * like to each other and check what they hear.
 *
 * Each message, call, answer and fetched byte follows from its number, so nothing needs to be
 * remembered to be checked; one-way messages and calls of an end share one row of numbers, because
 * they share one order. A broken promise ends the test by an assertion of Criterion.
 * Shared by the tests of erpc/.
 */
#ifndef ERPC_PAIR_H
#define ERPC_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "erpc/erpc_ep.h"
#include "erpc/erpc_session.h"
#include "support/fake_net.h"
#include "support/rng.h"

#define PAIR_RESP_MAX    3000u /* of each call */
#define PAIR_PENDING_MAX 4096u
#define PAIR_GET_MAX     4u
#define PAIR_GET_LEN     (600u << 10)

/** A call that was taken and not answered. */
struct pair_call_ref {
	struct core_call_ref ref;
	uint32_t number;
	bool retained; /* its bytes stay until it is answered */
	core_retain_t retain;
};

/** Bytes that were not given back. */
struct pair_retained {
	core_retain_t retain;
	const uint8_t *data;
	uint32_t len;
	uint32_t number;
	bool is_reply;
};

struct pair_get {
	struct core_get get;
	struct core_exposure exposure; /* of the other end's memory */
	uint8_t *buf;
	struct iovec iov[2];
	size_t off;
	bool open;
};

struct pair_end {
	struct erpc_ep *ep;
	struct erpc_session *s;
	struct pair_end *peer;
	struct rng *rng;
	uint32_t sent;       /* messages and calls: the number of the next one */
	uint32_t received;   /* of the peer's: the number expected next */
	uint32_t calls_sent; /* calls */
	uint32_t replies;    /* of them */
	uint64_t acked;      /* position last told */
	uint32_t gets_done;
	uint32_t gets_refused;
	struct pair_call_ref pending[PAIR_PENDING_MAX];
	uint32_t pending_cnt;
	struct pair_retained retained[PAIR_PENDING_MAX];
	uint32_t retained_cnt;
	struct pair_get gets[PAIR_GET_MAX];
	uint8_t *memory; /* PAIR_GET_LEN bytes to lend */
	int down;        /* on_down came with it */
	/* What it does: chances in percent, and sizes. */
	unsigned retain_chance, defer_chance, retain_reply_chance;
	unsigned
		retain_call_chance; /* of calls that are answered late: their bytes are held until then */
	uint32_t len_max;
	uint32_t len_exact; /* not 0: of each message and call */
	size_t get_max;
	size_t get_exact;    /* not 0: of each get, from the beginning of the memory */
	unsigned get_pieces; /* that fetched bytes go to: 1 or 2; 0: by chance */
};

struct erpc_pair {
	struct fake_net net;
	double pace_rate; /* erpc_ep_attr.link_rate of endpoints opened from now on */
	struct rng rng;
	struct pair_end end[2];
};

/** As the network is set up: mtu, inline_max, faults may be set in between. */
void erpc_pair_init(struct erpc_pair *p, uint64_t seed);
void erpc_pair_open(struct erpc_pair *p);
/** Closes sessions and endpoints. */
void erpc_pair_fini(struct erpc_pair *p);

/** init and open, with datagrams of that many bytes. */
void erpc_pair_start(struct erpc_pair *p, uint64_t seed, uint32_t mtu);
/** End 0 says some messages of 100 bytes: how long a round trip takes is known. */
void erpc_pair_warm(struct erpc_pair *p);
/** settle, check and fini. */
void erpc_pair_end(struct erpc_pair *p);

/** Of a packet on its way, for hooks of the network. */
struct wire_erpc_hdr erpc_pair_hdr(const struct fake_pkt *pkt);

/** Joins two sessions of endpoints. */
void erpc_pair_join(struct erpc_ep *a, struct erpc_ep *b, struct erpc_session **sa,
		    struct erpc_session **sb);

/** Says something, of a length by chance: 0, or what the session said (-FI_EAGAIN). */
int pair_send(struct pair_end *e, unsigned flags);
/** The same with a call whose allowance is PAIR_ALLOW; flags as those of call_buf. */
int pair_call(struct pair_end *e, unsigned flags);
/** Fetches from the peer's memory; false: as much as possible is under way. */
bool pair_get(struct pair_end *e);
/** Answers a call that waits, releases something that is held; false: nothing to do. */
bool pair_reply_one(struct pair_end *e);
bool pair_release(struct pair_end *e);

/** Moves time by up to ns, and both ends with it. */
void erpc_pair_run(struct erpc_pair *p, uint64_t ns);
/** Answers, releases, moves time until nothing is open any more; asserts that it ends. */
void erpc_pair_settle(struct erpc_pair *p);
/** All that was said was heard, answered and arrived. */
void erpc_pair_check(struct erpc_pair *p);

#endif
