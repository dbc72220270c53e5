/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does the flow control of the ring protocol keep its promises? (Sections 2 to 6 of the protocol.)
 *
 * Two peers, a ring in each direction: ring s is written by peer s and read by peer 1-s. Unit: 32 bytes.
 * Only differences of positions and the producer's offset are kept: positions may grow for ever and the
 * state graph stays finite.
 *
 * Checked after every step, in check():
 *   OVERWRITE   the producer is never more than cap past the reader's true consumer
 *   INVARIANT   (producer - remote_consumer) + 2R <= cap
 *   CONSERVED   R = credit the peer holds + grants in transit + what its unanswered calls reserved
 *   LIVE        where no step of the protocol is left to do, every message is admitted and every call has credit
 * and inside the steps: REPLY never blocks, a WRITE stays in its lap (LAP), no marker at a multiple of C
 * (MARKER), the head cleared in advance has been released (CLEAR), saturated one-way traffic does not keep
 * the peer without credit (STARVED).
 *
 * Two shapes: the two peers (default); with -DONE one ring whose reader does whatever a reader may do.
 * -DMUT_x puts one fault in; the script `run` knows what each of them must trip over. See README.
 */

/* ---- sizes ---- */
#ifndef C0
#define C0 32			/* ring 0 */
#endif
#ifndef C1
#define C1 C0			/* ring 1 */
#endif
#ifndef INB
#define INB 0			/* what the link keeps for the head that is cleared in advance: 0 or 1 */
#endif
#ifndef TDIV
#define TDIV 4			/* released more than C / TDIV and not told: a credit-only batch is due */
#endif
#ifndef RDIV
#define RDIV 4			/* R_max = C / RDIV */
#endif
#ifndef SQ
#define SQ 2			/* batches in transit in each direction */
#endif
#ifndef ONE_WAYS
#define ONE_WAYS true
#endif
#ifndef SCRATCH
#define SCRATCH hidden
#endif
#ifndef SHORTS
#define SHORTS true
#endif
#ifndef BATCH
#define BATCH 255		/* a batch of this size takes no further one-way message or call */
#endif

#if C0 == C1
#define SIZE(s) C0
#else
#define SIZE(s) (C0 + (s) * (C1 - C0))
#endif
#define RMAX(s) (SIZE(s) / RDIV)
#define TOLD(s) (SIZE(s) / TDIV)
#define TRUE_CAP(s) (SIZE(s) - INB)
#define IMIN 2			/* the smallest reservation: a reply of one unit, and metadata */

/* A possible grant of half of R_max makes a credit-only batch due; IMAX is what a call can count on then. */
#define HALF(s) ((RMAX(s) + 1) / 2)
#define IMAX(s) (RMAX(s) - HALF(s) + 1)

/*
 * The largest message that a quiet ring is sure to admit: released but not told + metadata and message, and
 * once more for the skip + the reserve + 2 R_max fit into cap.
 */
#ifdef USE_READ
#define UNTOLD(s) 0
#else
#define UNTOLD(s) TOLD(s)
#endif
#define MMAX_SURE(s) ((TRUE_CAP(s) - 2 - 2 * RMAX(s) - UNTOLD(s)) / 2 - 1)

/* ---- mutations: each changes one rule ---- */
#ifdef MUT_INBAND
#define CAP(s) SIZE(s)
#else
#define CAP(s) TRUE_CAP(s)
#endif

#if defined(MUT_NO_RESERVE)
#define RESERVE 0
#elif defined(MUT_HALF_RESERVE)
#define RESERVE 1
#else
#define RESERVE 2		/* for credit-only batches and their markers */
#endif

#ifdef MUT_ONE_R
#define TWICE(x) (x)
#else
#define TWICE(x) (2 * (x))
#endif

#ifdef MUT_NO_AHEAD
#define AHEAD(n) 0
#else
#define AHEAD(n) (n)
#endif

#ifdef MUT_LAX_WRAP
#define AT_END(s, span) (r[s].off + (span) > SIZE(s))
#else
#define AT_END(s, span) (r[s].off + (span) >= SIZE(s))
#endif

#ifdef MUT_BIG_MESSAGE
#define MMAX(s) (SIZE(s) / 4)
#else
#define MMAX(s) MMAX_SURE(s)
#endif

#ifdef MUT_ADMIT_BY_R
#define KEPT(s) R[s]
#else
#define KEPT(s) RMAX(s)
#endif

#ifdef MUT_PRICE
#define LONGEST(price) (price)
#else
#define LONGEST(price) ((price) - 1)	/* the longest reply that a reservation stands for */
#endif

#ifdef MUT_WRAP_ROOM
#define NEED_SKIP(s) 0
#else
#define NEED_SKIP(s) SKIP(s)
#endif

#ifdef MUT_EXTRA_LAP
#define WRAPS(s, span) (AT_END(s, span) || r[s].off == 0)
#else
#define WRAPS(s, span) AT_END(s, span)
#endif

#ifdef MUT_NO_CREDIT_BATCH
#define TELL_DUE(s) false
#else
#define TELL_DUE(s) (r[1 - (s)].untold > TOLD(1 - (s)))
#endif

#ifdef MUT_NO_GRANT_BATCH
#define GRANT_DUE(s) false
#else
#define GRANT_DUE(s) (R[s] + HALF(s) <= RMAX(s) && \
	r[s].known + 2 + RESERVE + TWICE(R[s] + HALF(s)) <= CAP(s))
#endif

#ifdef MUT_TELL_UNCHECKED
#define ROOM_TO_TELL(s) true
#else
#define ROOM_TO_TELL(s) (r[s].known + NEED(s, 0) + TWICE(R[s]) <= CAP(s))
#endif

/* ---- the rules ---- */
#define SPAN(s, n) ((n) + (r[s].open -> 0 : 1))
#define SKIP(s) (SIZE(s) - r[s].off)
#define NEED(s, n) (AT_END(s, SPAN(s, n)) -> NEED_SKIP(s) + 1 + (n) : SPAN(s, n))
#define POSTS(s, n) (AT_END(s, SPAN(s, n)) -> 1 + (r[s].open > 0) : 0)
#define SQ_ROOM(s, n) (r[s].sent + POSTS(s, n) <= SQ && r[s].open < BATCH)
#define ADMIT(s, n) (r[s].known + NEED(s, n) + TWICE(KEPT(s)) + RESERVE <= CAP(s))
/* over the batches in transit; unused places hold 0 */
#if SQ == 1
#define ALL(s, field) r[s].field[0]
#elif SQ == 2
#define ALL(s, field) (r[s].field[0] + r[s].field[1])
#else
#define ALL(s, field) (r[s].field[0] + r[s].field[1] + r[s].field[2])
#endif
#define IN_TRANSIT(s) ALL(s, size)
#define DUE(s) (TELL_DUE(s) || GRANT_DUE(s))

/* ---- state ---- */
typedef ring {
	byte off;		/* producer & (C - 1) */
	byte known;		/* producer - remote_consumer */
	byte real;		/* producer - consumer */
	byte open;		/* producer - flush_start: the open batch with its metadata; 0: none */
#ifndef ONE
	byte calls;		/* requests in the open batch */
	byte untold;		/* the reader's: consumer - the position told last; saturates above the threshold */
	byte sent;		/* batches in transit, oldest first: */
	byte size[SQ];		/*   the immediate */
	byte grant[SQ];
	byte call[SQ];		/*   requests in it */
	byte lag[SQ];		/*   consumer_pos, of the opposite ring, as distance from that ring's producer */
	bit reading;		/* a READ of the consumer word is on its way back to the writer */
	byte seen;		/*   with this value, as distance from the producer */
#endif
};
ring r[2];
byte R[2];			/* granted by s and not used up */
byte cr[2];			/* credit that s holds */
byte pend[2];			/* unanswered requests: at peer s; with ONE: by price, IMIN and IMAX */
#ifdef STARVE
byte hunger;			/* one-way units sent while the peer could not have credit for a call */
#endif
SCRATCH short g;		/* scratch */
SCRATCH byte k;

#ifdef ONE
#define PRICE(s) IMAX(0)
#else
#define PRICE(s) IMAX(s)	/* what a call answered by s reserves */
#endif

/* ---- steps of a writer ---- */

/* Values that are merely old stay old: how old is of no interest. Keeps the state graph finite. */
#define AGE_SLOT(s, q) \
	if \
	:: r[1 - (s)].lag[q] > r[s].known + 1 -> r[1 - (s)].lag[q] = r[s].known + 1 \
	:: else \
	fi
#define MOVE_SLOT(s, q, by) \
	if \
	:: q < r[1 - (s)].sent -> r[1 - (s)].lag[q] = r[1 - (s)].lag[q] + by \
	:: else \
	fi

inline age(s)
{
#ifndef ONE
	AGE_SLOT(s, 0);
#if SQ > 1
	AGE_SLOT(s, 1);
#endif
#if SQ > 2
	AGE_SLOT(s, 2);
#endif
#ifdef USE_READ
	if
	:: r[s].seen > r[s].known + 1 -> r[s].seen = r[s].known + 1
	:: else
	fi;
#endif
#endif
	skip
}

inline advance(s, by)
{
	r[s].off = (r[s].off + by) % SIZE(s);
	r[s].known = r[s].known + by;
	r[s].real = r[s].real + by;
	r[s].open = r[s].open + by;
#ifndef ONE
	MOVE_SLOT(s, 0, by);
#if SQ > 1
	MOVE_SLOT(s, 1, by);
#endif
#if SQ > 2
	MOVE_SLOT(s, 2, by);
#endif
#ifdef USE_READ
	if
	:: r[s].reading -> r[s].seen = r[s].seen + by
	:: else
	fi
#endif
#endif
}

/* The open batch becomes one WRITE. `ahead`: promised to the message that causes this. */
inline post(s, ahead, is_marker)
{
	g = (CAP(s) - RESERVE - r[s].known - AHEAD(ahead)) / TWICE(1) - R[s];
	if
	:: g > RMAX(s) - R[s] -> g = RMAX(s) - R[s]
	:: else
	fi;
	if
	:: g < 0 -> g = 0
	:: else
	fi;
	R[s] = R[s] + g;
	assert(r[s].real + INB <= SIZE(s));				/* CLEAR */
#ifdef MUT_MARKER_GRANT
	if
	:: is_marker -> g = 0
	:: else
	fi;
#endif
#ifdef ONE
	cr[1] = cr[1] + g;
#else
	assert(r[s].sent < SQ && r[s].open > 0);
	r[s].size[r[s].sent] = r[s].open;
	r[s].grant[r[s].sent] = g;
	r[s].call[r[s].sent] = r[s].calls;
#ifdef MUT_PARSED
	r[s].lag[r[s].sent] = r[1 - s].open + IN_TRANSIT(1 - s);
#else
	r[s].lag[r[s].sent] = r[1 - s].real;
#endif
#ifdef MUT_MARKER_CONSUMER
	if
	:: is_marker -> r[s].lag[r[s].sent] = r[1 - s].known
	:: else
	fi;
#endif
	r[s].sent++;
	r[s].calls = 0;
	r[1 - s].untold = 0;
#endif
	r[s].open = 0;
	g = 0
}

inline flush(s, ahead)
{
	assert(r[s].open <= r[s].off);					/* LAP */
	post(s, ahead, false)
}

/* Room has been checked. n = 0: metadata alone. */
inline append(s, n)
{
	if
	:: WRAPS(s, SPAN(s, n)) ->
		if
		:: r[s].open -> flush(s, SKIP(s) + 1 + n)
		:: else
		fi;
		assert(r[s].off != 0);					/* MARKER */
		k = SKIP(s);
		advance(s, k);
		k = 0;
		post(s, 1 + n, true)
	:: else
	fi;
	if
	:: r[s].open == 0 -> advance(s, 1)
	:: else
	fi;
	advance(s, n);
	age(s)
}

/* A reply of n units on a reservation of `price`. */
inline reply(s, n, price)
{
	assert(R[s] >= price);
#ifndef MUT_REPLY_KEEPS
	R[s] = R[s] - price;
#endif
	assert(r[s].known + NEED(s, n) + TWICE(R[s]) <= CAP(s));	/* REPLY */
	append(s, n)
}


/* ---- after every step ---- */
#define POSSIBLE(s, caller, price) (ADMIT(s, MMAX(s)) && cr[caller] >= price)

inline check_ring(s)
{
	assert(r[s].real <= TRUE_CAP(s));				/* OVERWRITE */
	assert(r[s].known + 2 * R[s] <= TRUE_CAP(s));			/* INVARIANT */
	assert(r[s].real <= r[s].known)
}

#ifdef ONE
/* ---- one ring, any reader ---- */
#define QUIET (r[0].real == 0 && r[0].open == 0 && pend[0] + pend[1] == 0 && \
	r[0].known <= UNTOLD(0) && !GRANT_DUE(0))

inline check()
{
	check_ring(0);
	assert(R[0] == cr[1] + IMIN * pend[0] + IMAX(0) * pend[1]);	/* CONSERVED */
#ifdef STARVE
	if
	:: cr[1] >= IMAX(0) || pend[0] + pend[1] > 0 -> hunger = 0
	:: else
	fi;
#endif
	assert(!QUIET || (ADMIT(0, MMAX(0)) && cr[1] >= IMAX(0)))	/* LIVE */
}

inline one_way(n)
{
#ifdef STARVE
	hunger = hunger + NEED(0, n);
	assert(hunger <= 2 * SIZE(0));					/* STARVED */
#endif
	append(0, n);
	check()
}

#define ROOM(n) (ADMIT(0, n) && r[0].open < BATCH)

init
{
	byte x;

	d_step { R[0] = RMAX(0); cr[1] = RMAX(0) };
end:	do
	:: ROOM(1) -> atomic {
		x = 1;
		do
		:: x < MMAX(0) && ROOM(x + 1) -> x++
		:: break
		od;
		d_step { one_way(x); x = 0 }
	}
	/* credit-only batches and those of the reader's notifications that matter here */
	:: d_step { r[0].open == 0 && ROOM_TO_TELL(0) -> append(0, 0); flush(0, 0); check() }
	:: d_step { r[0].open > 0 -> flush(0, 0); check() }
	/* calls of both prices, answered in any order with any length that was asked for */
	:: d_step { cr[1] >= IMIN -> cr[1] = cr[1] - IMIN; pend[0]++; check() }
	:: d_step { cr[1] >= IMAX(0) -> cr[1] = cr[1] - IMAX(0); pend[1]++; check() }
	:: d_step { pend[0] > 0 -> pend[0]--; reply(0, LONGEST(IMIN), IMIN); check() }
	:: pend[1] > 0 -> atomic {
		x = 1;
		do
		:: x < LONGEST(IMAX(0)) -> x++
		:: break
		od;
		d_step { pend[1]--; reply(0, x, IMAX(0)); x = 0; check() }
	}
	/* the reader releases any part of what was posted; the writer hears of any part of that */
	:: r[0].real > r[0].open -> atomic {
		do
		:: r[0].real > r[0].open -> r[0].real--
		:: break
		od;
		d_step { check() }
	}
	:: r[0].known > r[0].real -> atomic {
		do
		:: r[0].known > r[0].real -> r[0].known--
		:: break
		od;
		d_step { check() }
	}
	od
}
#else
/* ---- two peers ---- */
#define STILL(s) (r[s].sent == 0 && r[s].open == 0 && r[s].real == 0 && pend[s] == 0 && \
	!r[s].reading && !(DUE(s) && ROOM_TO_TELL(s)))
#ifdef USE_READ
#define QUIET (STILL(0) && STILL(1) && r[0].known == 0 && r[1].known == 0)
#else
#define QUIET (STILL(0) && STILL(1))
#endif

inline check_credit(s)
{
	assert(R[s] == cr[1 - s] + ALL(s, grant) +
		PRICE(s) * (r[1 - s].calls + ALL(1 - s, call) + pend[s]))	/* CONSERVED */
}

inline check()
{
	check_ring(0);
	check_ring(1);
	check_credit(0);
	check_credit(1);
	assert(!QUIET || (ADMIT(0, MMAX(0)) && ADMIT(1, MMAX(1)) &&
		cr[0] >= PRICE(1) && cr[1] >= PRICE(0)))		/* LIVE */
}

inline learn(s, value)
{
	if
#ifdef MUT_STALE
	:: true -> r[s].known = value
#else
	:: value < r[s].known -> r[s].known = value
#endif
	:: else
	fi;
	age(s)
}

#if SQ == 1
#define SHIFT(field, s) r[s].field[0] = 0
#elif SQ == 2
#define SHIFT(field, s) r[s].field[0] = r[s].field[1]; r[s].field[1] = 0
#else
#define SHIFT(field, s) r[s].field[0] = r[s].field[1]; r[s].field[1] = r[s].field[2]; r[s].field[2] = 0
#endif

/* The oldest batch in transit to s: metadata first, then the messages. */
inline receive(s)
{
	cr[s] = cr[s] + r[1 - s].grant[0];
	pend[s] = pend[s] + r[1 - s].call[0];
	k = r[1 - s].lag[0];
	SHIFT(size, 1 - s);
	SHIFT(grant, 1 - s);
	SHIFT(call, 1 - s);
	SHIFT(lag, 1 - s);
	r[1 - s].sent--;
	learn(s, k);
	k = 0
}

/* Peer s releases all that it has received. That it may do so late stands for handles kept open. */
inline release(s)
{
	k = r[1 - s].open + IN_TRANSIT(1 - s);
	r[1 - s].untold = r[1 - s].untold + (r[1 - s].real - k);
	if
	:: r[1 - s].untold > TOLD(1 - s) -> r[1 - s].untold = TOLD(1 - s) + 1
	:: else
	fi;
	r[1 - s].real = k;
	k = 0
}

#define other (1 - me)
#define ROOM(n) (ADMIT(me, n) && SQ_ROOM(me, n))

proctype peer(bit me)
{
end:	do
	:: d_step { ONE_WAYS && SHORTS && ROOM(1) -> append(me, 1); check() }
	:: d_step { ONE_WAYS && (!SHORTS || MMAX(me) > 1) && ROOM(MMAX(me)) -> append(me, MMAX(me)); check() }
#ifdef CALLS
	:: d_step { CALLS && cr[me] >= PRICE(other) && ROOM(1) ->
		cr[me] = cr[me] - PRICE(other); append(me, 1); r[me].calls++; check() }
	:: d_step { pend[me] > 0 && SQ_ROOM(me, 1) -> pend[me]--; reply(me, 1, PRICE(me)); check() }
	:: d_step { pend[me] > 0 && SQ_ROOM(me, LONGEST(PRICE(me))) ->
		pend[me]--; reply(me, LONGEST(PRICE(me)), PRICE(me)); check() }
#endif
	:: d_step { r[me].open > 0 && r[me].sent < SQ -> flush(me, 0); check() }
	:: d_step { r[me].open == 0 && DUE(me) && ROOM_TO_TELL(me) && r[me].sent + POSTS(me, 0) < SQ ->
		append(me, 0); flush(me, 0); check() }
#ifdef PROMPT
	:: d_step { r[other].sent > 0 -> receive(me); release(me); check() }
#else
	:: d_step { r[other].sent > 0 -> receive(me); check() }
#endif
	:: d_step { r[other].real > r[other].open + IN_TRANSIT(other) -> release(me); check() }
#ifdef USE_READ
	:: d_step { !r[me].reading && r[me].known > r[me].real && !ADMIT(me, MMAX(me)) ->
		r[me].reading = 1; r[me].seen = r[me].real }
	:: d_step { r[me].reading -> r[me].reading = 0; learn(me, r[me].seen); r[me].seen = 0; check() }
#endif
	od
}

init
{
	atomic {
		R[0] = RMAX(0); cr[1] = RMAX(0);
		R[1] = RMAX(1); cr[0] = RMAX(1);
		run peer(0); run peer(1)
	}
}
#endif
