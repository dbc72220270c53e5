/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moves of a link between a queue pair of its own and DC, while it is in use. Called by m5_link.c
 * and m5_poll.c.
 *
 * Both ways write the same ring at the same place, and both end in the one receive CQ of the peer.
 * So the order of writes holds if a sender has work in flight on one way at a time: it posts
 * nothing (-FI_EAGAIN), waits until all it has posted is acknowledged, and goes on by the other
 * way. No write is posted twice. Each end moves its own direction.
 *
 *   to a queue pair   OFFER {qpn, psn} ->   <- ACCEPT {qpn, psn}   READY ->     both move
 *                     OFFER and OFFER cross: each connects and sends READY
 *                     <- REFUSE: the peer has no queue pair free; the link stays
 *   to DC             the sender moves, then LEFT ->; the peer moves, then <- LEFT. An end that
 *                     has sent and received LEFT destroys its queue pair
 *
 * Messages travel over DC only, a byte in each immediate (m5_imm.h): a write of no bytes, in order
 * with the others of its link. A message of another state or of unknown kind ends the link.
 * m5_offers.h limits the offers of a peer.
 *
 * Work that is left (bytes without room, acknowledgements awaited) is tried by each poll, for the
 * links in m5_dev.early. Errors of either way end the link.
 *
 * Owner: the polling thread. Tests: test/unit/dev/mlx5/test_m5_move.c; on the device model
 * test/integ/dev/dev_link with "moves".
 */
#ifndef DEV_MLX5_M5_MOVE_H
#define DEV_MLX5_M5_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/ib/ib_desc.h"
#include "dev/mlx5/m5_cq.h"
#include "dev/mlx5/m5_offers.h"
#include "dev/mlx5/m5_sq.h"

#define M5_MOVE_BYTES   16u /* of messages that wait to be sent */
#define M5_MOVE_MSG_MAX 7u  /* bytes of a message */

struct m5_dev;
struct m5_link;

enum m5_move_state {
	M5_MOVE_NEVER,     /* one end cannot */
	M5_MOVE_ON_DC,     /* by DC, without a queue pair */
	M5_MOVE_OFFERED,   /* likewise; the peer was offered a queue pair */
	M5_MOVE_CONNECTED, /* the queue pair is connected; that of the peer may not be */
	M5_MOVE_TO_RC,     /* both are; the initiator is not idle yet */
	M5_MOVE_ON_RC,     /* by the queue pair */
	M5_MOVE_TO_DC,     /* the queue pair is not idle yet */
	M5_MOVE_LEFT,      /* by DC; the peer may still use the queue pair */
};

/** Part of a link that moves. */
struct m5_move {
	enum m5_move_state state;
	bool is_known;  /* the peer's version has moves */
	bool is_parked; /* m5_link.sq takes no writes; the queue pair's, if any, is here */
	bool is_marked; /* TO_DC: the last WQE reports */
	bool peer_left; /* LEFT was received */
	/* Offers crossed, and this end could not connect: one READY or REFUSE still comes */
	bool is_response_due;
	bool is_polled; /* the queue pair's send CQ is polled for it */
	uint8_t tx_cnt; /* bytes that wait to be sent */
	uint8_t rx_cnt; /* bytes of an incomplete message */
	uint32_t cnt;   /* moves of local writes so far */
	uint8_t tx[M5_MOVE_BYTES];
	uint8_t rx[M5_MOVE_MSG_MAX];
	struct m5_sq sq;     /* is_parked: send queue of the queue pair */
	struct ib_desc peer; /* to connect a queue pair later */
	struct m5_offers offers;
};

/** Implements dev_link_ops.move. */
struct dev_link;
int m5_link_move(struct dev_link *base, bool own);

/** Takes the place of the link's send queue: one without room, whose WQEs are none of the other. */
void m5_move_park(struct m5_link *link);

/** Takes a byte of the peer. */
void m5_move_receive(struct m5_link *link, uint8_t byte);

/**
 * Does the work that is left, if it is possible now. Called by polls while the link is in
 * m5_dev.early.
 */
void m5_move_work(struct m5_link *link);
/** Returns true while work is left. */
bool m5_move_is_due(const struct m5_link *link);
/** Returns true if a completion will come before there is anything to do. */
bool m5_move_may_sleep(const struct m5_link *link);

/** Retires a WQE of a queue pair whose send queue is parked. Returns false if there is none. */
bool m5_move_retire(struct m5_link *link, const struct m5_cqe *cqe);

/** Lets the link post to its queue pair again, whose WQE has failed. */
void m5_move_unpark(struct m5_link *link);

#endif
