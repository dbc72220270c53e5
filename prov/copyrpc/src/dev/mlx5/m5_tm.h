/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching by the device: receives in a list of its own, and rendezvous without the receiver's
 * processor (docs/mlx5.md, section 10). InfiniBand only. Called by ring/ring_mlx5_tags.c.
 *
 *   struct m5_tm        a shared receive queue with a list of tags (XRQ), its CQ, and a command
 *                       queue pair, connected to itself, that carries operations on the list
 *   struct m5_tm_peer   two queue pairs, both on the XRQ: `tx` for what software sends, connected
 *                       to the peer's `rx`, whose send queue is the device's
 *
 *     sender                                       receiver
 *     m5_tm_send     tx --- request --------> rx   the oldest receive with this tag: MATCHED
 *                    tx <-- READs ----------- rx   by the device
 *     SENT           tx <-- FIN ------------- rx   RECEIVED
 *                    tx --- request --------> rx   no receive: UNEXPECTED
 *                    tx' <-- READ ----------- tx   m5_tm_fetch, RECEIVED
 *     SENT           rx' <-- FIN ------------ tx   likewise, or m5_tm_finish without a READ
 *     KEPT           rx' <-- no tag --------- tx   m5_tm_keep, before one of these
 *
 * A tag matches if (message's tag & mask) == receive's tag. The rest of matching is the caller's:
 *
 *   - It appends a receive only if no older one outside of the list could take the same message,
 *     and no message outside (kept, or of another path) matches it.
 *   - It gives an UNEXPECTED request to the oldest receive that matches, before the next call of
 *     m5_tm_append or m5_tm_poll. A listed one it removes first, with `is_sure`: the device had not
 *     taken it in when the request came, and does not match it before it knows that software has
 *     handled the request (below).
 *   - It gives a message of another path to a listed receive after REMOVED. A REMOVE that comes too
 *     late has no event: MATCHED came before.
 *
 * Phases: the device counts unexpected requests, and software those that it has handled, which each
 * operation on the list states. While the counts differ, new entries are stored and match nothing.
 * A poll that finds nothing more brings them together.
 *
 * Remote CQ data travel in the header's context. The bytes behind its opcode, which devices leave
 * alone, name the send and tell whether there are data.
 *
 * Sleeping: m5_dev_arm arms the CQ of each open list, too (m5_tm_arm).
 *
 * Runs in the polling thread; open and close in any, while none polls. Bytes of peers are
 * validated, and a peer that breaks the rules is ended (DOWN). A peer may state any tag.
 *
 * Tests: test/unit/dev/mlx5/test_m5_tm.c, test_m5_tm_poll.c; on the device model
 * test/integ/dev/dev_tag.
 */
#ifndef DEV_MLX5_M5_TM_H
#define DEV_MLX5_M5_TM_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/ib/ib_desc.h"
#include "dev/ib/ib_mem.h"
#include "dev/ib/ib_qpns.h"
#include "dev/mlx5/m5_cq.h"
#include "dev/mlx5/m5_sq.h"
#include "dev/mlx5/m5_srq.h"
#include "dev/mlx5/m5_table.h"
#include "dev/mlx5/m5_tags.h"
#include "util/idmap.h"
#include "util/list.h"

#define M5_TM_LEN_MAX  (1u << 30)
#define M5_TM_REQUEST  32u /* bytes of a request, and least length of a receive's buffer */
#define M5_TM_BUF      64u /* bytes of a receive WQE: the longest request that the device knows */
#define M5_TM_ID_BITS  23u /* of a send's id on the wire */
#define M5_TM_UNSYNCED 0x4000u /* unexpected requests after which the device must know */

struct m5_dev;
struct m5_tm_peer;

/** Receive, embedded by the caller. The fields are m5_tm's until its end. */
struct m5_tm_recv {
	const uint8_t *buf;
	uint64_t tag; /* of the message, after MATCHED, RECEIVED or TOO_LONG */
	uint32_t len; /* of a fetch */
	uint16_t entry;
};

/** Send, likewise. */
struct m5_tm_send {
	struct m5_tm_peer *peer;
	struct util_list in_peer;
	uint32_t id; /* of M5_TM_ID_BITS */
};

/** Request that software finishes, by m5_tm_fetch or m5_tm_finish. */
struct m5_tm_request {
	struct m5_tm_peer *peer;
	uint64_t tag;
	uint64_t addr;
	uint32_t rkey;
	uint32_t len;
	uint32_t id;   /* m5_tm_send.id, at the sender */
	uint32_t data; /* 0 without has_data */
	bool has_data;
};

enum m5_tm_event_kind {
	M5_TM_MATCHED,    /* recv has a message of recv->tag, whose bytes are to come */
	M5_TM_RECEIVED,   /* recv has ended: `len` bytes, or status. It may be without MATCHED */
	M5_TM_TOO_LONG,   /* recv has ended: `request` is longer than its buffer */
	M5_TM_REMOVED,    /* recv has ended without a message */
	M5_TM_UNEXPECTED, /* `request` matches no active receive */
	M5_TM_SENT,       /* the peer has the bytes of `send` */
	M5_TM_KEPT,       /* the peer will fetch or finish `send` later */
	/*
	 * peer has failed: its sends and fetches get no event. NULL: all has failed. The death of a
	 * peer is noticed only by what is sent to it afterwards.
	 */
	M5_TM_DOWN,
};

struct m5_tm_event {
	enum m5_tm_event_kind kind;
	int status;
	uint32_t len;
	struct m5_tm_recv *recv;
	struct m5_tm_send *send;
	/*
	 * Peer that the event concerns. MATCHED, RECEIVED without MATCHED: the sender, NULL if
	 * closed. RECEIVED after MATCHED: NULL.
	 */
	struct m5_tm_peer *peer;
	/* Remote CQ data, of MATCHED, of RECEIVED without MATCHED, and of TOO_LONG. */
	bool has_data;
	uint32_t data;
	struct m5_tm_request request;
};

struct m5_tm {
	struct m5_cq cq;
	uint32_t published; /* consumer index that the device knows */
	struct m5_srq srq;
	struct m5_sq sq; /* of the command queue pair */
	struct m5_tags tags;
	uint16_t handled;    /* unexpected requests so far */
	uint16_t advertised; /* number of these that the device knows of */
	int err;             /* all has failed */
	bool is_down_notified;
	struct util_list failed;  /* m5_tm_peer.in_tm: DOWN is due */
	struct util_list closing; /* likewise: closed; the CQ may have completions */
	struct util_idmap sends;  /* looked up by slot: m5_tm_find */
	struct ib_qpns peers;     /* by the numbers of their queue pairs */
	uint32_t room;            /* blocks of send queues that may still be assigned to peers */

	struct m5_dev *dev;
	struct util_list in_dev; /* in m5_dev.tms */
	struct ib_mem mem;       /* buffers of receive WQEs */
	struct ibv_cq_ex *cq_obj;
	struct ibv_srq *srq_obj;
	struct ibv_qp *qp;
	struct m5_sparse users;
};

struct m5_tm_peer {
	struct m5_sq sq; /* of tx */
	struct m5_sparse users;
	struct m5_tm *tm;
	struct util_list in_tm;
	struct util_list sends; /* m5_tm_send.in_peer */
	int err;
	bool is_closed;
	struct ibv_qp *tx, *rx;
	uint32_t tx_psn, rx_psn;
	uint32_t room; /* blocks, of m5_tm.room */
	void *user;
};

/** Returns the most receives that a list of the device can have; 0: there are no lists. */
uint32_t m5_tm_most(const struct m5_dev *dev);

/**
 * Opens a list for `tags` receives. Returns 0, -FI_EOPNOTSUPP if the port or the device has none,
 * or another error, logged.
 */
int m5_tm_open(struct m5_dev *dev, uint32_t tags, struct m5_tm **out);
/** Closes it. All peers are closed. Receives that are listed end without events. */
void m5_tm_close(struct m5_tm *tm);

/** Makes the local half of a peer. Returns 0, -FI_ENOSPC if there are too many, or an error. */
int m5_tm_peer_open(struct m5_tm *tm, void *user, struct m5_tm_peer **out);
/** Describes its two queue pairs, for the peer's connect. */
void m5_tm_peer_describe(const struct m5_tm_peer *peer, struct ib_desc *tx, struct ib_desc *rx);
/** Connects it, by the descriptions of the peer. Returns 0 or an error, logged. */
int m5_tm_peer_connect(struct m5_tm_peer *peer, const struct ib_desc *tx, const struct ib_desc *rx);
/**
 * Closes it: nothing is executed for it any more, and its sends and fetches get no event. Receives
 * that were matched by its messages end, at the latest by the next poll that finds nothing more.
 */
void m5_tm_peer_close(struct m5_tm_peer *peer);

/**
 * Returns true if an operation leaves half of the command queue. That is room for a removal of each
 * receive, so those that are sure always find room.
 */
static inline bool m5_tm_leaves_half(const struct m5_tm *tm)
{
	return m5_sq_in_flight(&tm->sq) < (tm->sq.mask + 1u) / 2;
}

/** Returns true if a receive can be appended. */
static inline bool m5_tm_has_room(const struct m5_tm *tm)
{
	return m5_tags_has_room(&tm->tags) && m5_tm_leaves_half(tm);
}

/**
 * Appends a receive of `len` bytes at buf. Returns 0, -FI_EAGAIN without room, -FI_EINVAL if it is
 * shorter than M5_TM_REQUEST, or an error. `more`: the device need not see it before the next
 * operation on the list, or the next poll that finds nothing.
 */
int m5_tm_append(struct m5_tm *tm, struct m5_tm_recv *recv, uint64_t tag, uint64_t mask, void *buf,
		 uint32_t len, uint32_t lkey, bool more);
/**
 * Removes a listed receive: at once if `is_sure` (see above), otherwise REMOVED or MATCHED tells.
 * Returns 0, -FI_EAGAIN without room, which one that is sure has, -FI_EALREADY if it has a match or
 * is being removed.
 */
int m5_tm_remove(struct m5_tm *tm, struct m5_tm_recv *recv, bool is_sure);

/**
 * Sends `len` bytes at addr, which are registered for remote reads under rkey, by a rendezvous, and
 * `data` if has_data. The bytes may not change before SENT. Returns 0, -FI_EAGAIN without room, or
 * an error.
 */
int m5_tm_send(struct m5_tm_peer *peer, struct m5_tm_send *send, uint64_t tag, bool has_data,
	       uint32_t data, uint64_t addr, uint32_t rkey, uint32_t len);
/** Returns the open send of this peer whose id the other side knows as `id`, or NULL. */
struct m5_tm_send *m5_tm_find(struct m5_tm_peer *peer, uint32_t id);
/**
 * Reads the first `len` bytes of a request, at most all of them, into buf, and tells its sender.
 * RECEIVED follows. Returns 0, -FI_EAGAIN without room, or an error.
 */
int m5_tm_fetch(const struct m5_tm_request *request, struct m5_tm_recv *recv, void *buf,
		uint32_t len, uint32_t lkey);
/**
 * Notifies the sender of a request that it may end, without a READ. No event follows. Returns 0,
 * -FI_EAGAIN without room, or an error.
 */
int m5_tm_finish(const struct m5_tm_request *request);
/** Notifies the sender that a request will be handled later. Returns like m5_tm_finish. */
int m5_tm_keep(const struct m5_tm_request *request);

/** Returns one event, if there is one. */
bool m5_tm_poll(struct m5_tm *tm, struct m5_tm_event *ev);

/** Lets the peer be DOWN by the next poll that finds nothing else. */
void m5_tm_peer_fail(struct m5_tm_peer *peer, int err);

#endif
