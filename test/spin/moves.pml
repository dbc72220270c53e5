/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moves of a connection between a queue pair of its own and DC, while both ends write (docs/mlx5.md, section 6;
 * prov/copyrpc/src/dev/mlx5/m5_move.c, whose functions the inlines are named after).
 *
 * Two ends, WRITES writes from each, MOVES wishes of each to move, FAILS failures in all: a queue pair that cannot be made
 * or connected, or initiators that cannot. Each direction has two ways, between which nothing is ordered, and one
 * completion queue at the receiver. A write is acknowledged when it is in that queue.
 *
 * Properties:
 *   ORDER	writes are received in the order in which they were sent
 *   THERE	a write by a queue pair finds that of the receiver connected, and not yet destroyed
 *   RULES	no end that keeps the rules is taken for one that breaks them
 *   LIVE	in the end all writes are there, and both ends use the same way
 */
#ifndef WRITES
#define WRITES 3
#endif
#ifndef MOVES
#define MOVES 2
#endif
#ifndef FAILS
#define FAILS 1
#endif

byte ORDER, THERE, RULES, LIVE;	/* constants 0 that show their names when an assertion fails */

/* States of enum m5_move_state, in its order. */
#define ON_DC 0
#define OFFERED 1
#define CONNECTED 2
#define TO_RC 3
#define ON_RC 4
#define TO_DC 5
#define HAS_LEFT 6

/* Messages, and a write. */
#define OFFER 1
#define ACCEPT 2
#define READY 3
#define REFUSE 4
#define LEFT 5
#define WRITE 6

typedef end_of {
	byte state;
	bit is_made;		/* there is a queue pair */
	bit is_connected;	/* it is connected */
	byte number;		/* of it, modulo 4 */
	byte peer_number;	/* of the peer's, to which it is connected */
	bit peer_left;
	bit is_response_due;
	byte sent, received;	/* writes */
	byte moves;
};

end_of e[2];
byte fails = FAILS;
chan tx[2] = [3] of { byte, byte };	/* messages that wait to be posted, with the number of a queue pair */
chan dc[2] = [3] of { byte, byte };	/* under way from an end by DC */
chan qp[2] = [2] of { byte, byte };	/* likewise by its queue pair: write, number of the receiver's */
chan cq[2] = [4] of { byte, byte, bit, byte };	/* at an end: kind, write or number, by the queue pair, its number */

#define OTHER (1 - i)
#define uses_dc (e[i].state == ON_DC || e[i].state == OFFERED || e[i].state == CONNECTED || e[i].state == HAS_LEFT)

inline send(kind) { assert(LIVE || nfull(tx[i])); tx[i]!kind, e[i].number }

inline make_qp()
{
	e[i].is_made = 1;
	e[i].is_connected = 0;
	e[i].number = (e[i].number + 1) % 4
}

inline drop_qp()
{
	e[i].is_made = 0;
	e[i].is_connected = 0;
	e[i].peer_left = 0;
	e[i].state = ON_DC
}

/* Sets `ok`: a step that may fail. */
inline try()
{
	if
	:: ok = 1
	:: fails > 0 -> fails--; ok = 0
	fi
}

inline connect()
{
	try();
	if
	:: ok -> e[i].is_connected = 1; e[i].peer_number = arg
	:: else
	fi
}

inline accept()
{
	try();
	if
	:: ok ->
		make_qp();
		connect();
		if
		:: ok ->
			e[i].state = CONNECTED; send(ACCEPT);
#ifdef MUT_ACCEPTS_AND_MOVES
			e[i].state = TO_RC
#endif
		:: else -> drop_qp(); send(REFUSE)
		fi
	:: else -> send(REFUSE)
	fi
}

inline matched(peer_is_connected)
{
	connect();
	if
	:: ok ->
		e[i].state = CONNECTED;
		send(READY);
		if
#ifdef MUT_CROSSES_AND_MOVES
		:: true -> e[i].state = TO_RC
#else
		:: peer_is_connected -> e[i].state = TO_RC
		:: else
#endif
		fi
	:: else ->
#ifndef MUT_NOT_DUE
		e[i].is_response_due = !peer_is_connected;
#endif
		drop_qp();
		send(REFUSE)
	fi
}

inline use_dc()
{
	e[i].state = HAS_LEFT;
	send(LEFT);
	if
#ifdef MUT_DROPS_AT_ONCE
	:: true -> drop_qp()
#else
	:: e[i].peer_left -> drop_qp()
	:: else
#endif
	fi
}

inline has_left()
{
	assert(RULES || (!e[i].peer_left && e[i].state >= TO_RC));
	e[i].peer_left = 1;
	if
#ifndef MUT_STAYS
	:: e[i].state == TO_RC -> use_dc()
#endif
	:: e[i].state == ON_RC -> e[i].state = TO_DC
	:: e[i].state == HAS_LEFT -> drop_qp()
	:: else
	fi
}

inline take(kind)
{
	if
	:: kind == OFFER ->
		assert(RULES || e[i].state == ON_DC || e[i].state == OFFERED);
		if
		:: e[i].state == ON_DC -> accept()
		:: else -> matched(false)
		fi
	:: kind == ACCEPT ->
		assert(RULES || e[i].state == OFFERED);
		matched(true)
	:: kind == READY && e[i].is_response_due -> e[i].is_response_due = 0
	:: kind == REFUSE && e[i].is_response_due -> e[i].is_response_due = 0
	:: kind == READY && !e[i].is_response_due ->
		assert(RULES || e[i].state == CONNECTED);
		e[i].state = TO_RC
	:: kind == REFUSE && !e[i].is_response_due ->
		assert(RULES || e[i].state == OFFERED || e[i].state == CONNECTED);
		drop_qp()
	:: kind == LEFT -> has_left()
	fi
}

/* The software of an end. */
proctype software(bit i)
{
	byte kind, arg, nr;
	bit by_qp, ok;

end:	do
	/* Posts a message that waits. */
	:: atomic { nempty(tx[i]) && nfull(dc[i]) -> tx[i]?kind, arg; dc[i]!kind, arg; kind = 0; arg = 0 }
	/* Writes. */
	:: atomic { e[i].sent < WRITES && uses_dc && nfull(dc[i]) -> dc[i]!WRITE, e[i].sent; e[i].sent++ }
	:: atomic { e[i].sent < WRITES && e[i].state == ON_RC && nfull(qp[i]) ->
		qp[i]!e[i].sent, e[i].peer_number; e[i].sent++ }
	/* Wishes to move. */
	:: atomic { e[i].moves > 0 && e[i].state == ON_DC ->
		e[i].moves--;
		try();
		if
		:: ok -> make_qp(); e[i].state = OFFERED; send(OFFER)
		:: else
		fi;
		ok = 0 }
	:: atomic { e[i].moves > 0 && e[i].state == ON_RC -> e[i].moves--; e[i].state = TO_DC }
	/* Nothing is under way on the way that is left. */
#ifdef MUT_NO_WAIT_RC
	:: atomic { e[i].state == TO_RC && empty(tx[i]) -> e[i].state = ON_RC }
#else
	:: atomic { e[i].state == TO_RC && empty(tx[i]) && empty(dc[i]) -> e[i].state = ON_RC }
#endif
#ifdef MUT_NO_WAIT_DC
	:: atomic { e[i].state == TO_DC ->
#else
	:: atomic { e[i].state == TO_DC && empty(qp[i]) ->
#endif
		if
		:: use_dc()
		:: fails > 0 && !e[i].peer_left -> fails--; e[i].state = ON_RC
		fi }
	/* Takes an arrival. */
	:: atomic { cq[i]?kind, arg, by_qp, nr ->
		if
		:: kind == WRITE ->
			assert(THERE || !by_qp || (e[i].is_made && nr == e[i].number));
			assert(ORDER || arg == e[i].received);
			e[i].received++
		:: else -> take(kind)
		fi;
		kind = 0; arg = 0; by_qp = 0; nr = 0; ok = 0 }
	od
}

/* The devices: what is under way arrives, in the order of its way. */
proctype device()
{
	byte kind, arg, nr;

	do
	:: atomic { nempty(dc[0]) && nfull(cq[1]) -> dc[0]?kind, arg; cq[1]!kind, arg, 0, 0; kind = 0; arg = 0 }
	:: atomic { nempty(dc[1]) && nfull(cq[0]) -> dc[1]?kind, arg; cq[0]!kind, arg, 0, 0; kind = 0; arg = 0 }
	:: atomic { nempty(qp[0]) && nfull(cq[1]) ->
		qp[0]?arg, nr;
		assert(THERE || (e[1].is_connected && nr == e[1].number));
		cq[1]!WRITE, arg, 1, nr; arg = 0; nr = 0 }
	:: atomic { nempty(qp[1]) && nfull(cq[0]) ->
		qp[1]?arg, nr;
		assert(THERE || (e[0].is_connected && nr == e[0].number));
		cq[0]!WRITE, arg, 1, nr; arg = 0; nr = 0 }
	:: atomic { timeout ->
		assert(LIVE || (e[0].received == WRITES && e[1].received == WRITES));
		assert(LIVE || (e[0].state == e[1].state && (e[0].state == ON_DC || e[0].state == ON_RC)));
		assert(LIVE || (!e[0].is_response_due && !e[1].is_response_due));
		break }
	od
end:	false
}

init
{
	atomic {
		e[0].moves = MOVES;
		e[1].moves = MOVES;
		run software(0);
		run software(1);
		run device()
	}
}
