/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The handshake: two ends that connect to each other, by a stream or by datagrams, over a network that
 * loses, repeats, delays and reorders packets, while one end restarts. (Section 3 of the handshake.)
 *
 * Each end has one request and one connection at most, as in the protocol. Nonces are numbers that are
 * drawn once. A timer expires when the network is quiet; a repetition that comes earlier is a packet that
 * the network repeats. The network may delay one packet each way as long as it likes. -DMUT_x puts one
 * fault in; the script `run` knows what each of them must trip over. Figures: README.
 */

/* ---- what the environment does: all may be set with -D ---- */
#ifndef LOSSES
#define LOSSES 1		/* packets that get lost */
#endif
#ifndef COPIES
#define COPIES 1		/* packets that are repeated: the copy arrives at any time */
#endif
#ifndef SWAPS
#define SWAPS 0			/* packets that are overtaken by those behind them */
#endif
#ifndef RESTARTS
#define RESTARTS 0		/* times that end 1 is replaced by a new process */
#endif
#ifndef CLOSES
#define CLOSES 0		/* connections that are closed in good order, by either end */
#endif
#ifndef EVICTS
#define EVICTS 0		/* pending connections that are given up for another peer's */
#endif
#ifndef REQS
#define REQS 1			/* requests of each end */
#endif
#ifndef OFFER0
#define OFFER0 UDP		/* paths that an end offers; the new process of end 1: OFFER2 */
#endif
#ifndef OFFER1
#define OFFER1 OFFER0
#endif
#ifndef OFFER2
#define OFFER2 OFFER1
#endif
#ifndef BAD0
#define BAD0 0			/* paths that it cannot prepare */
#endif
#ifndef BAD1
#define BAD1 0
#endif
#ifndef ONE_HOST
#define ONE_HOST false		/* a stream leads from one end to the other */
#endif

#define SHM 1			/* preferred: SHM, NIC, UDP */
#define NIC 2
#define UDP 4
#define TRIES 5			/* repetitions of a packet: more than it can lose */
#define NONCES 10		/* attempts in all */
#define K 8			/* packets in a queue */

/* ---- mutations: each changes one rule ---- */
#ifdef MUT_HELLO_UNHEARD
#define DISOWNS false
#else
#define DISOWNS true		/* a HELLO to another incarnation gets BYE */
#endif
#ifdef MUT_ACCEPT_AGAIN
#define REMEMBERS false
#else
#define REMEMBERS true		/* an attempt is accepted once */
#endif
#ifdef MUT_NO_BYE
#define REPLIES_BYE false
#else
#define REPLIES_BYE true	/* a packet of an unknown connection gets BYE */
#endif
#ifdef MUT_ANY_NONCE
#define SAME(a, b) true
#else
#define SAME(a, b) ((a) == (b))
#endif
#define WINS(me, theirs) (e[me].inc < (theirs))
#ifdef MUT_TRUST_HELLO
#define DOUBTS false
#else
#define DOUBTS true		/* an established connection is checked before a HELLO replaces it */
#endif
#ifdef MUT_PATH_AGAIN
#define AVOID(me, p) skip
#else
#define AVOID(me, p) e[me].avoided = e[me].avoided | (p)
#endif
#ifdef MUT_SHM_APART
#define WITHOUT_STREAM(me) skip
#define STREAM_NEEDED false
#else
#define WITHOUT_STREAM(me) e[me].avoided = e[me].avoided | SHM
#define STREAM_NEEDED true	/* shared memory takes a stream */
#endif
#ifdef MUT_NO_PING
#define PINGS false
#else
#define PINGS true
#endif

/* ---- state ---- */
mtype = { REQ, ACK, NAK, AGAIN, HELLO, WELCOME, READY, CROSSED, BYE, PING, END };
mtype = { NONE, HELLO_SENT, WELCOME_SENT, UP };
mtype = { IDLE, PROBE, ATTEMPT, PAUSE };

typedef end {
	byte inc;
	byte offer;
	byte bad;
	/* the connection */
	mtype conn = NONE;
	byte nonce;
	byte peer;		/* incarnation of the other end */
	byte path;
	bit stream;
	bit own;		/* made by the own attempt */
	byte made;		/* which connection of this nonce it is: 1, or 2 if it was accepted again */
	byte with;		/* ... and the other end's, whose parameters it uses */
	byte tries;
	/* the request */
	mtype req = IDLE;
	byte asked;		/* nonce of the last REQ */
	byte reqs = REQS;
	byte avoided;
	byte unreached;		/* incarnation whose name did not lead to a stream */
	short ended;		/* nonces that were accepted and have ended */
};
end e[2];
byte nonces;			/* drawn so far */
byte accepts[NONCES + 1];	/* times that an attempt was accepted */
byte losses = LOSSES, copies = COPIES, swaps = SWAPS, restarts = RESTARTS, closes = CLOSES, evicts = EVICTS;

/* type, nonce, incarnations of sender and receiver, path or offers, `made` of the sender */
chan net[2] = [K] of { mtype, byte, byte, byte, byte, byte };
chan late[2] = [1] of { mtype, byte, byte, byte, byte, byte };
chan str[2] = [K] of { mtype, byte, byte, byte, byte, byte };

mtype t;
byte n, src, dst, p, m;
byte b;

/*
 * The properties. Each is a constant 0, there to show its name when an assertion fails.
 *   ENDS     each request ends: up, or with an error
 *   BELIEF   at rest both ends have the same connection, or none
 *   DEAD     at rest no end has a connection with an incarnation that has ended
 *   KEPT     nothing ends an established connection that its other end still has
 *   PATH     an established connection has a path that both offer and can prepare; shared memory, a stream
 *   FULL     the queues of the model suffice
 */
byte ENDS, BELIEF, DEAD, KEPT, PATH, FULL;

#define QUIET (empty(net[0]) && empty(net[1]) && empty(str[0]) && empty(str[1]))
#define MATCH(me) (e[me].conn == UP && e[1 - me].conn == UP && e[me].nonce == e[1 - me].nonce && \
	e[me].peer == e[1 - me].inc && e[1 - me].peer == e[me].inc && \
	e[me].with == e[1 - me].made && e[1 - me].with == e[me].made && \
	e[me].path == e[1 - me].path && e[me].stream == e[1 - me].stream)
/* A handshake whose packet is repeated: sooner than an attempt that lost to it begins anew. */
#define REPEATS(me) ((e[me].conn == HELLO_SENT || e[me].conn == WELCOME_SENT) && !e[me].stream && \
	e[me].tries < TRIES)
#define HAS(me, of) (e[me].conn != NONE && e[me].nonce == e[of].nonce && \
	e[me].peer == e[of].inc && e[of].peer == e[me].inc)

/* ---- sending ---- */
inline send(me, type, nonce_, to_inc, path_, made_)
{
	assert(FULL || nfull(net[1 - me]));
	net[1 - me]!type, nonce_, e[me].inc, to_inc, path_, made_
}

inline put(me, type, nonce_, to_inc, path_, made_)
{
	assert(FULL || nfull(str[1 - me]));
	str[1 - me]!type, nonce_, e[me].inc, to_inc, path_, made_
}

/* A packet of the connection. */
inline say(me, type)
{
	if
	:: e[me].stream -> put(me, type, e[me].nonce, e[me].peer, e[me].path, e[me].made)
	:: else -> send(me, type, e[me].nonce, e[me].peer, e[me].path, e[me].made)
	fi
}

/* A reply to the packet at hand. */
inline reply(me, type, by_stream)
{
	if
	:: by_stream -> put(me, type, n, src, 0, 0)
	:: else -> send(me, type, n, src, 0, 0)
	fi
}

/* ---- the request ---- */
inline probe(me)
{
	nonces++;
	e[me].asked = nonces;
	e[me].req = PROBE;
	e[me].tries = 0;
	send(me, REQ, e[me].asked, 0, e[me].offer, 0)
}

inline retry(me)
{
	if
	:: e[me].req == ATTEMPT || e[me].req == PROBE -> e[me].req = PAUSE; e[me].asked = 0
	:: else
	fi
}

inline done(me)
{
	e[me].req = IDLE;
	e[me].asked = 0;
	e[me].avoided = 0;
	e[me].unreached = 0
}

/* A path failed finally: another one, or the request ends with an error. */
inline fail_path(me, failed, common)
{
	if
	:: (common & ~e[me].avoided & ~(failed)) != 0 -> AVOID(me, failed); retry(me)
	:: else ->
#ifdef MUT_PATH_AGAIN
		retry(me)
#else
		done(me)
#endif
	fi
}

/* ---- the connection ---- */
inline forget(me)
{
	if
	:: !e[me].own && REMEMBERS -> e[me].ended = e[me].ended | (1 << e[me].nonce)
	:: else
	fi;
	e[me].conn = NONE;
	e[me].nonce = 0;
	e[me].peer = 0;
	e[me].path = 0;
	e[me].stream = 0;
	e[me].own = 0;
	e[me].made = 0;
	e[me].with = 0;
	e[me].tries = 0
}

/* Ends the connection because of the packet at hand. */
inline drop(me)
{
	if
	:: e[me].conn == UP -> assert(KEPT || !HAS(1 - me, me))
	:: else
	fi;
	if
	:: e[me].stream -> put(me, END, e[me].nonce, e[me].peer, 0, 0)
	:: else
	fi;
	forget(me);
	retry(me)
}

inline come_up(me)
{
	e[me].conn = UP;
	e[me].tries = 0;
	done(me);
	assert(PATH || ((e[me].path & e[me].offer & ~e[me].bad) != 0 &&
		(e[me].path != SHM || e[me].stream)))
}

inline open(me, state, is_own, with_peer, nonce_, path_, by_stream)
{
	e[me].conn = state;
	e[me].own = is_own;
	e[me].peer = with_peer;
	e[me].nonce = nonce_;
	e[me].path = path_;
	e[me].stream = by_stream;
	e[me].made = 1;
	e[me].tries = 0
}

/* ---- the end that connects ---- */
inline choose(me, common)
{
	b = common & ~e[me].avoided;
	if
	:: b == 0 -> e[me].avoided = 0; b = common
	:: else
	fi;
	if
	:: b & SHM -> b = SHM
	:: else ->
		if
		:: b & NIC -> b = NIC
		:: else
		fi
	fi
}

inline begin(me, by_stream)
{
	if
	:: b & e[me].bad -> fail_path(me, b, p)
	:: else -> open(me, HELLO_SENT, 1, src, n, b, by_stream); say(me, HELLO)
	fi
}

inline on_ack(me)
{
	if
	:: e[me].req == PROBE && SAME(n, e[me].asked) ->
		e[me].req = ATTEMPT;
		e[me].asked = 0;
		choose(me, p);
		if
		:: b == SHM && ONE_HOST && src == e[1 - me].inc -> begin(me, 1)
		:: b == SHM && !(ONE_HOST && src == e[1 - me].inc) ->
			if
			:: e[me].unreached != src -> e[me].unreached = src; retry(me)
			:: else ->
				if
				:: (p & ~SHM) == 0 -> done(me)
				:: else ->
					WITHOUT_STREAM(me);
					choose(me, p);
					begin(me, 0)
				fi
			fi
		:: else -> begin(me, 0)
		fi
	:: else
	fi
}

inline on_nak(me, is_final)
{
	if
	:: e[me].conn == HELLO_SENT && SAME(n, e[me].nonce) && src == e[me].peer ->
		b = e[me].path;
		drop(me);
		if
		:: is_final && e[me].req == PAUSE ->
			e[me].req = ATTEMPT;
			fail_path(me, b, (e[me].offer & p))
		:: else
		fi
	:: e[me].conn == NONE && e[me].req == PROBE && SAME(n, e[me].asked) -> done(me)
	:: else
	fi
}

/* ---- the end that is connected to ---- */
inline on_req(me)
{
	if
	:: (p & e[me].offer) == 0 -> send(me, NAK, n, src, 0, 0)
	:: else -> send(me, ACK, n, src, (p & e[me].offer), 0)
	fi
}

inline accept(me, by_stream)
{
	if
	:: (p & e[me].bad) || !(p & e[me].offer) || (p == SHM && !by_stream && STREAM_NEEDED) ->
		if
		:: by_stream -> put(me, NAK, n, src, e[me].offer, 0)
		:: else -> send(me, NAK, n, src, e[me].offer, 0)
		fi
	:: else ->
		open(me, WELCOME_SENT, 0, src, n, p, by_stream);
		accepts[n]++;
		e[me].made = accepts[n];
		e[me].with = m;
		if
		:: e[me].req != IDLE -> e[me].req = ATTEMPT; e[me].asked = 0
		:: else
		fi;
		say(me, WELCOME)
	fi
}

inline on_hello(me, by_stream)
{
	if
	:: e[me].conn != NONE && !e[me].stream && !by_stream && n == e[me].nonce && dst == e[me].inc &&
	   src == e[me].peer ->
		if
		:: e[me].conn == WELCOME_SENT -> say(me, WELCOME)
		:: else
		fi
	:: else ->
		if
		:: dst != e[me].inc ->
			if
			:: DISOWNS && !by_stream -> reply(me, BYE, 0)
			:: by_stream -> reply(me, END, 1)
			:: else
			fi
		:: dst == e[me].inc && (e[me].ended & (1 << n)) -> reply(me, BYE, by_stream)
		:: dst == e[me].inc && !(e[me].ended & (1 << n)) && DOUBTS &&
		   e[me].conn == UP && !e[me].stream && e[me].peer != src ->
			reply(me, AGAIN, by_stream);
			say(me, PING)
		:: else ->
			if
			:: e[me].conn != NONE && e[me].peer == src &&
			   (e[me].conn != HELLO_SENT || WINS(me, src)) ->
				if
				:: e[me].conn == UP && !e[me].stream -> say(me, PING)
				:: else
				fi;
				reply(me, CROSSED, by_stream)
			:: else ->
				if
				:: e[me].conn != NONE -> drop(me)
				:: else
				fi;
				accept(me, by_stream)
			fi
		fi
	fi
}

/* ---- packets of a connection ---- */
#define MINE(me, by_stream) (e[me].conn != NONE && e[me].stream == by_stream && SAME(n, e[me].nonce) && \
	dst == e[me].inc && src == e[me].peer)

inline unknown(me, by_stream)
{
	if
	:: REPLIES_BYE && !by_stream -> reply(me, BYE, 0)
	:: else
	fi
}

inline on_conn_pkt(me, by_stream)
{
	if
	:: t == WELCOME ->
		if
		:: MINE(me, by_stream) && e[me].conn == HELLO_SENT ->
			e[me].with = m;
			say(me, READY);
			come_up(me)
		:: MINE(me, by_stream) && e[me].conn == UP -> say(me, READY)
		:: MINE(me, by_stream) && e[me].conn == WELCOME_SENT
		:: else -> unknown(me, by_stream)
		fi
	:: t == READY || t == PING ->
		if
		:: MINE(me, by_stream) && e[me].conn == WELCOME_SENT -> come_up(me)
		:: MINE(me, by_stream) && e[me].conn != WELCOME_SENT
		:: else -> unknown(me, by_stream)
		fi
	:: t == CROSSED ->
		if
		:: MINE(me, by_stream) && e[me].conn == HELLO_SENT -> drop(me)
		:: else
		fi
	:: t == BYE || t == END ->
		if
		:: e[me].conn != NONE && e[me].stream == by_stream && SAME(n, e[me].nonce) &&
		   (by_stream || dst == e[me].inc) -> drop(me)
		:: else
		fi
	:: else
	fi
}

inline handle(me, by_stream)
{
	if
	:: t == REQ -> on_req(me)
	:: t == ACK && dst == e[me].inc -> on_ack(me)
	:: t == NAK && dst == e[me].inc -> on_nak(me, true)
	:: t == AGAIN && dst == e[me].inc -> on_nak(me, false)
	:: t == HELLO -> on_hello(me, by_stream)
	:: else -> on_conn_pkt(me, by_stream)
	fi;
	t = 0; n = 0; src = 0; dst = 0; p = 0; m = 0; b = 0
}

/* ---- what an end does ---- */
proctype run_end(byte me)
{
	bit by_stream;

end_wait:
	do
	:: atomic { e[me].reqs > 0 && e[me].req == IDLE && nonces < NONCES ->
		e[me].reqs--;
		if
		:: e[me].conn == NONE -> probe(me)
		:: e[me].conn == UP
		:: else -> e[me].req = ATTEMPT
		fi }
	:: atomic { nempty(net[me]) || nempty(late[me]) || nempty(str[me]) ->
		by_stream = 0;
		if
		:: net[me]?t, n, src, dst, p, m
		:: late[me]?t, n, src, dst, p, m
		:: str[me]?t, n, src, dst, p, m -> by_stream = 1
		fi;
		handle(me, by_stream);
		by_stream = 0 }
	/* timers */
	:: atomic { QUIET && e[me].req == PROBE && e[me].tries < TRIES ->
		e[me].tries++; send(me, REQ, e[me].asked, 0, e[me].offer, 0) }
	:: atomic { QUIET && e[me].req == PAUSE && nonces < NONCES && !REPEATS(1 - me) -> probe(me) }
	:: atomic { QUIET && (REPEATS(me) ||
		(PINGS && e[me].conn == UP && !e[me].stream && !MATCH(me) && e[me].tries < TRIES)) ->
		e[me].tries++;
		if
		:: e[me].conn == HELLO_SENT -> t = HELLO
		:: e[me].conn == WELCOME_SENT -> t = WELCOME
		:: else -> t = PING
		fi;
		send(me, t, e[me].nonce, e[me].peer, e[me].path, e[me].made);
		t = 0 }
	/* the application, and other peers */
	:: atomic { closes > 0 && e[me].conn == UP ->
		closes--; say(me, BYE); forget(me) }
	:: atomic { evicts > 0 && e[me].conn == WELCOME_SENT && !e[me].stream ->
		evicts--; forget(me); retry(me) }
	od
}

/* ---- what the network does to packets for an end ---- */
proctype run_net(byte me)
{
end_wait:
	do
	:: atomic { losses > 0 && nempty(net[me]) ->
		losses--; net[me]?_, _, _, _, _, _ }
	:: atomic { copies > 0 && nempty(net[me]) && empty(late[me]) ->
		copies--; net[me]?<t, n, src, dst, p, m>; late[me]!t, n, src, dst, p, m;
		t = 0; n = 0; src = 0; dst = 0; p = 0; m = 0 }
	:: atomic { swaps > 0 && len(net[me]) > 1 ->
		swaps--; net[me]?t, n, src, dst, p, m; net[me]!t, n, src, dst, p, m;
		t = 0; n = 0; src = 0; dst = 0; p = 0; m = 0 }
	od
}

/* End 1 dies, and another process is at its address. The kernel ends its streams. */
inline restart()
{
	do
	:: nempty(str[1]) -> str[1]?_, _, _, _, _, _
	:: empty(str[1]) -> break
	od;
	if
	:: e[1].stream -> put(1, END, e[1].nonce, 0, 0, 0)
	:: else
	fi;
	if
	:: e[0].stream && e[0].nonce != e[1].nonce -> put(1, END, e[0].nonce, 0, 0, 0)
	:: else
	fi;
	if
	:: e[1].conn != NONE -> forget(1)
	:: else
	fi;
	if
	:: e[1].inc = 2
	:: e[1].inc = 5
	fi;
	e[1].offer = OFFER2;
	e[1].req = IDLE;
	e[1].asked = 0;
	e[1].avoided = 0;
	e[1].unreached = 0;
	e[1].ended = 0;
	e[1].tries = 0
}

inline judge()
{
	if
	:: e[0].req != IDLE || e[1].req != IDLE -> assert(ENDS)
	:: else
	fi;
	if
	:: e[0].conn != NONE && e[0].peer != e[1].inc -> assert(DEAD)
	:: e[1].conn != NONE && e[1].peer != e[0].inc -> assert(DEAD)
	:: else
	fi;
	assert(BELIEF || (e[0].conn == NONE && e[1].conn == NONE) || MATCH(0))
}

init {
	atomic {
		e[0].inc = 3;
		e[0].offer = OFFER0;
		e[0].bad = BAD0;
		e[1].offer = OFFER1;
		e[1].bad = BAD1;
		if
		:: e[1].inc = 1
		:: e[1].inc = 4
		fi;
		run run_end(0);
		run run_end(1);
		run run_net(0);
		run run_net(1)
	}
	do
	:: atomic { restarts > 0 -> restarts--; restart() }
	:: timeout -> break
	od;
	judge()
}
