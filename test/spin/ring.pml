/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does the flow control of the ring protocol keep its promises? (Sections 2 to 6 of the protocol.)
 *
 * Two peers, a ring in each direction: ring s is written by peer s and read by peer 1-s. Unit: 32 bytes.
 * Only the producer's offset and distances from the producer are kept: positions may grow for ever and the
 * state graph stays finite. Two shapes: the two peers, and with -DONE one ring whose reader does whatever a
 * reader may do. -DMUT_x puts one fault in; the script `run` knows what each of them must trip over.
 * What is left out, and figures: README.
 */

/* ---- sizes: all may be set with -D ---- */
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
#define SQ 1			/* batches in transit in each direction: 1 to 3 */
#endif
#ifndef BATCH
#define BATCH 255		/* a batch of this size takes no further message */
#endif

/* ---- traffic of the two peers ---- */
#ifndef ONE_WAYS
#define ONE_WAYS true		/* who sends one-way messages: an expression of `me` */
#endif
#ifndef SHORTS
#define SHORTS true		/* one-way messages of 1 unit and of the largest size, or the latter alone */
#endif
#ifndef CALLS
#define CALLS false		/* who calls */
#endif
/* -DPROMPT: what has arrived is released at once. -DUSE_READ: the consumer word can be read.
   -DREST: for the search of cycles in which no application does anything.
   -DTWINS: rings and traffic of the two peers are alike, so one of two states that mirror each other is enough. */

#if C0 == C1
#define SIZE(s) C0
#else
#define SIZE(s) (C0 + (s) * (C1 - C0))
#endif
#define RMAX(s) (SIZE(s) / RDIV)
#define TOLD(s) (SIZE(s) / TDIV)
#define TRUE_CAP(s) (SIZE(s) - INB)

/* A possible grant of half of R_max makes a credit-only batch due; IMAX is what a call can count on then. */
#define HALF(s) ((RMAX(s) + 1) / 2)
#define IMAX(s) (RMAX(s) - HALF(s) + 1)
#define IMIN 2			/* the smallest reservation: a reply of one unit, and metadata */

/*
 * The largest message that a quiet ring is sure to admit. These fit into cap together: what was released and
 * not told, metadata and message, as much again for the skip, the reserve, 2 R_max.
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

#ifdef MUT_NO_RESERVE
#define RESERVE 0
#else
#ifdef MUT_HALF_RESERVE
#define RESERVE 1
#else
#define RESERVE 2		/* for credit-only batches and their markers */
#endif
#endif

#ifdef MUT_ONE_R
#define TWICE(x) (x)
#else
#define TWICE(x) (2 * (x))
#endif

#ifdef MUT_NO_AHEAD
#define AHEAD(promised) 0
#else
#define AHEAD(promised) (promised)
#endif

#ifdef MUT_LAX_WRAP
#define AT_END(s, span) (r[s].off + (span) > SIZE(s))
#else
#define AT_END(s, span) (r[s].off + (span) >= SIZE(s))
#endif

#ifdef MUT_EXTRA_LAP
#define WRAPS(s, span) (AT_END(s, span) || r[s].off == 0)
#else
#define WRAPS(s, span) AT_END(s, span)
#endif

#ifdef MUT_WRAP_ROOM
#define SKIP_NEEDED(s) 0
#else
#define SKIP_NEEDED(s) SKIP(s)
#endif

#ifdef MUT_BIG_MESSAGE
#define MMAX(s) (SIZE(s) / 4)
#else
#define MMAX(s) MMAX_SURE(s)
#endif

#ifdef MUT_ADMIT_BY_R
#define KEPT(s) R[s]
#else
#define KEPT(s) RMAX(s)		/* messages leave room for all that may be granted, not for what is granted */
#endif

#ifdef MUT_PRICE
#define LONGEST(price) (price)
#else
#define LONGEST(price) ((price) - 1)	/* the longest reply that a reservation stands for */
#endif

#ifdef MUT_NO_TELL
#define TELL_DUE(s) false
#else
#ifdef MUT_ECHO
#define TELL_DUE(s) (r[1 - (s)].untold > 0)
#else
#define TELL_DUE(s) (r[1 - (s)].untold > TOLD(1 - (s)))
#endif
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
#define SPAN(s, units) ((units) + (r[s].open -> 0 : 1))
#define SKIP(s) (SIZE(s) - r[s].off)
#define NEED(s, units) (AT_END(s, SPAN(s, units)) -> SKIP_NEEDED(s) + 1 + (units) : SPAN(s, units))
#define ADMIT(s, units) (r[s].known + NEED(s, units) + TWICE(KEPT(s)) + RESERVE <= CAP(s))
#define DUE(s) (TELL_DUE(s) || GRANT_DUE(s))
#ifdef ONE
#define PRICE(s) IMAX(0)
#else
#define PRICE(s) IMAX(s)	/* what a call answered by s reserves */
#endif

/* ---- state ---- */
#ifndef SCRATCH
#define SCRATCH hidden		/* -DSCRATCH= for a breadth-first search, which cannot have hidden variables */
#endif
typedef ring {
	byte off;		/* producer & (C - 1) */
	byte known;		/* producer - remote_consumer */
	byte real;		/* producer - consumer */
	byte open;		/* producer - flush_start: the open batch with its metadata; 0: none */
#ifndef ONE
	byte calls;		/* requests in the open batch */
	byte untold;		/* the reader's: consumer - the position told last; saturates above the threshold */
	byte sent;		/* batches in transit, oldest first; unused places hold 0: */
	byte size[SQ];		/*   the immediate */
	byte grant[SQ];
	byte call[SQ];		/*   requests in it */
	byte lag[SQ];		/*   consumer_pos, of the opposite ring, as distance from that ring's producer */
#endif
#ifdef USE_READ
	bit reading;		/* a READ of the consumer word is on its way back to the writer */
	byte seen;		/*   with this value, as distance from the producer */
#endif
};
ring r[2];
byte R[2];			/* granted by s and not used up */
byte cr[2];			/* credit that s holds */
byte pend[2];			/* unanswered requests: at peer s; with -DONE: by price, IMIN and IMAX */
#ifdef STARVE
byte hunger;			/* units sent one-way while the peer waited for the credit of a call */
#endif
SCRATCH short g;
SCRATCH byte k;

/*
 * The properties. Each is a constant 0, there to show its name when an assertion fails.
 *   OVERWRITE   nothing that the reader has not released is written
 *   INVARIANT   (producer - remote_consumer) + 2R <= cap = C - INB
 *   AHEAD_OF    what the writer believes released has been released: the producer is never more than cap
 *               past the reader's true consumer
 *   CONSERVED   R = credit the peer holds + grants in transit + what its unanswered calls reserved
 *   LIVE        where no step of the protocol is left to do, every message is admitted, every call has credit
 *   REPLY       a reply within its reservation has room
 *   LAP         a WRITE stays in its lap and does not reach the end of the ring
 *   MARKER      no marker where the position is a multiple of C
 *   CLEAR       the head of the next batch, cleared in advance, has been released
 *   STARVED     saturated one-way traffic does not keep the peer without credit
 */
SCRATCH byte OVERWRITE, INVARIANT, AHEAD_OF, CONSERVED, LIVE, REPLY, LAP, MARKER, CLEAR, STARVED;

#if SQ == 1
#define ALL(s, field) r[s].field[0]
#define SHIFT(s, field) r[s].field[0] = 0
#endif
#if SQ == 2
#define ALL(s, field) (r[s].field[0] + r[s].field[1])
#define SHIFT(s, field) r[s].field[0] = r[s].field[1]; r[s].field[1] = 0
#endif
#if SQ == 3
#define ALL(s, field) (r[s].field[0] + r[s].field[1] + r[s].field[2])
#define SHIFT(s, field) r[s].field[0] = r[s].field[1]; r[s].field[1] = r[s].field[2]; r[s].field[2] = 0
#endif

/* ---- steps of a writer ---- */

/* Values that are not below what is known have no effect, then or later: how old they are is of no interest. Keeps the
   state graph finite. */
#ifdef MUT_STALE
#define OLD 8
#else
#define OLD 0
#endif
inline age_one(s, slot)
{
	if
	:: r[1 - s].lag[slot] > r[s].known + OLD -> r[1 - s].lag[slot] = r[s].known + OLD
	:: else
	fi
}

inline age(s)
{
#ifndef ONE
	age_one(s, 0);
#if SQ > 1
	age_one(s, 1);
#endif
#if SQ > 2
	age_one(s, 2);
#endif
#endif
#ifdef USE_READ
	if
	:: r[s].seen > r[s].known + OLD -> r[s].seen = r[s].known + OLD
	:: else
	fi;
#endif
	skip
}

inline move_one(s, slot, by)
{
	if
	:: slot < r[1 - s].sent -> r[1 - s].lag[slot] = r[1 - s].lag[slot] + by
	:: else
	fi
}

inline advance(s, by)
{
#ifndef ONE
	move_one(s, 0, by);
#if SQ > 1
	move_one(s, 1, by);
#endif
#if SQ > 2
	move_one(s, 2, by);
#endif
#endif
#ifdef USE_READ
	if
	:: r[s].reading -> r[s].seen = r[s].seen + by
	:: else
	fi;
#endif
	r[s].off = (r[s].off + by) % SIZE(s);
	r[s].known = r[s].known + by;
	r[s].real = r[s].real + by;
	r[s].open = r[s].open + by
}

/* What is open becomes one WRITE. `promised`: to the message that causes this. */
inline post(s, promised, is_marker)
{
#if INB > 0
	assert(CLEAR || r[s].real + INB <= SIZE(s));
#endif
	g = (CAP(s) - RESERVE - r[s].known - AHEAD(promised)) / TWICE(1) - R[s];
	if
	:: g > RMAX(s) - R[s] -> g = RMAX(s) - R[s]
	:: g < 0 -> g = 0
	:: else
	fi;
	R[s] = R[s] + g;
#ifdef MUT_MARKER_GRANT
	if
	:: is_marker -> g = 0
	:: else
	fi;
#endif
#ifdef ONE
	cr[1] = cr[1] + g;
#else
	r[s].size[r[s].sent] = r[s].open;
	r[s].grant[r[s].sent] = g;
	r[s].call[r[s].sent] = r[s].calls;
#ifdef MUT_PARSED
	r[s].lag[r[s].sent] = r[1 - s].open + ALL(1 - s, size);
#else
	r[s].lag[r[s].sent] = r[1 - s].real;
#endif
	r[s].sent++;
	r[s].calls = 0;
	r[1 - s].untold = 0;
#endif
	r[s].open = 0;
	g = 0
}

inline flush(s, promised)
{
	assert(LAP || r[s].open <= r[s].off);
	post(s, promised, false)
}

/* Room has been checked. units = 0: metadata alone. */
inline append(s, units)
{
	if
	:: WRAPS(s, SPAN(s, units)) ->
		if
		:: r[s].open > 0 -> flush(s, SKIP(s) + 1 + units)
		:: else
		fi;
		assert(MARKER || r[s].off != 0);
		k = SKIP(s);
		advance(s, k);
		k = 0;
		post(s, 1 + units, true)
	:: else
	fi;
	if
	:: r[s].open == 0 -> advance(s, 1)
	:: else
	fi;
	advance(s, units);
	age(s)
}

/* A reply of `units` on a reservation of `price`. */
inline reply(s, units, price)
{
	assert(CONSERVED || R[s] >= price);
#ifndef MUT_REPLY_KEEPS
	R[s] = R[s] - price;
#endif
	assert(REPLY || r[s].known + NEED(s, units) + TWICE(R[s]) <= CAP(s));
	append(s, units)
}

inline check_ring(s)
{
	assert(OVERWRITE || r[s].real <= SIZE(s));
	assert(INVARIANT || r[s].known + 2 * R[s] <= CAP(s));
	assert(AHEAD_OF || r[s].real <= r[s].known)
}

#ifdef ONE
/* ---- one ring, any reader ---- */
#define QUIET (r[0].real == 0 && r[0].open == 0 && pend[0] + pend[1] == 0 && \
	r[0].known <= UNTOLD(0) && !GRANT_DUE(0))
#define ROOM(units) (ADMIT(0, units) && r[0].open < BATCH)

inline check()
{
	check_ring(0);
	assert(CONSERVED || R[0] == cr[1] + IMIN * pend[0] + IMAX(0) * pend[1]);
#ifdef STARVE
	if
	:: cr[1] >= IMAX(0) || pend[0] + pend[1] > 0 -> hunger = 0
	:: else
	fi;
#endif
	assert(LIVE || !QUIET || (ADMIT(0, MMAX(0)) && cr[1] >= IMAX(0)))
}

inline one_way(units)
{
#ifdef STARVE
	hunger = hunger + NEED(0, units);
	assert(STARVED || hunger <= 2 * SIZE(0));
#endif
	append(0, units);
	check()
}

init
{
	byte x;

	d_step { R[0] = RMAX(0); cr[1] = RMAX(0) };
	do
	:: atomic {
		ROOM(1) -> x = 1;
		do
		:: x < MMAX(0) && ROOM(x + 1) -> x++
		:: break
		od;
		d_step { one_way(x); x = 0 }
	}
	:: d_step { r[0].open == 0 && ROOM_TO_TELL(0) -> append(0, 0); flush(0, 0); check() }
	:: d_step { r[0].open > 0 -> flush(0, 0); check() }
	/* calls of two prices, answered in any order, with any length that was asked for */
	:: d_step { cr[1] >= IMIN -> cr[1] = cr[1] - IMIN; pend[0]++; check() }
	:: d_step { cr[1] >= IMAX(0) -> cr[1] = cr[1] - IMAX(0); pend[1]++; check() }
	:: d_step { pend[0] > 0 -> pend[0]--; reply(0, LONGEST(IMIN), IMIN); check() }
	:: atomic {
		pend[1] > 0 -> x = 1;
		do
		:: x < LONGEST(IMAX(0)) -> x++
		:: break
		od;
		d_step { pend[1]--; reply(0, x, IMAX(0)); x = 0; check() }
	}
	/* the reader releases any part of what was posted; the writer hears of any part of that: unit by unit */
	:: d_step { r[0].real > r[0].open -> r[0].real--; check() }
	:: d_step { r[0].known > r[0].real -> r[0].known--; check() }
	od
}

#else
/* ---- two peers ---- */
#ifdef USE_READ
#define READ_DONE(s) (!r[s].reading && r[s].known == 0)
#else
#define READ_DONE(s) true
#endif
#define POSTS(s, units) (AT_END(s, SPAN(s, units)) -> 1 + (r[s].open > 0) : 0)
#define CAN_TELL(s) (r[s].open == 0 && DUE(s) && ROOM_TO_TELL(s) && r[s].sent + POSTS(s, 0) <= SQ)
#define STILL(s) (r[s].sent == 0 && r[s].open == 0 && r[s].real == 0 && pend[s] == 0 && \
	READ_DONE(s) && !CAN_TELL(s))

inline check_credit(s)
{
	assert(CONSERVED || R[s] == cr[1 - s] + ALL(s, grant) +
		PRICE(s) * (r[1 - s].calls + ALL(1 - s, call) + pend[s]))
}

#ifdef TWINS
inline swap(one, two)
{
	k = one; one = two; two = k
}

inline swap_slot(slot)
{
	swap(r[0].size[slot], r[1].size[slot]);
	swap(r[0].grant[slot], r[1].grant[slot]);
	swap(r[0].call[slot], r[1].call[slot]);
	swap(r[0].lag[slot], r[1].lag[slot])
}

/* Of two states that mirror each other, chooses the one whose first ring is behind. */
#define AFTER(field, next) (r[0].field > r[1].field || (r[0].field == r[1].field && next))
inline mirror()
{
	if
	:: AFTER(off, AFTER(known, AFTER(real, AFTER(open, AFTER(untold, AFTER(sent, R[0] > R[1])))))) ->
		swap(r[0].off, r[1].off);
		swap(r[0].known, r[1].known);
		swap(r[0].real, r[1].real);
		swap(r[0].open, r[1].open);
		swap(r[0].calls, r[1].calls);
		swap(r[0].untold, r[1].untold);
		swap(r[0].sent, r[1].sent);
		swap_slot(0);
#if SQ > 1
		swap_slot(1);
#endif
#if SQ > 2
		swap_slot(2);
#endif
#ifdef USE_READ
		swap(r[0].reading, r[1].reading);
		swap(r[0].seen, r[1].seen);
#endif
		swap(R[0], R[1]);
		swap(cr[0], cr[1]);
		swap(pend[0], pend[1]);
		k = 0
	:: else
	fi
}
#else
inline mirror()
{
	skip
}
#endif

inline check()
{
	check_ring(0);
	check_ring(1);
	check_credit(0);
	check_credit(1);
	assert(LIVE || !STILL(0) || !STILL(1) || (ADMIT(0, MMAX(0)) && ADMIT(1, MMAX(1)) &&
		cr[0] >= PRICE(1) && cr[1] >= PRICE(0)));
	mirror()
}

inline learn(s, value)
{
	if
#ifdef MUT_STALE
	:: value != r[s].known -> r[s].known = value
#else
	:: value < r[s].known -> r[s].known = value
#endif
	:: else
	fi;
	age(s)
}

/* The oldest batch in transit to s: metadata first, then the messages. */
inline receive(s)
{
	cr[s] = cr[s] + r[1 - s].grant[0];
	pend[s] = pend[s] + r[1 - s].call[0];
	k = r[1 - s].lag[0];
	SHIFT(1 - s, size);
	SHIFT(1 - s, grant);
	SHIFT(1 - s, call);
	SHIFT(1 - s, lag);
	r[1 - s].sent--;
	learn(s, k);
	k = 0
}

/* Peer s releases all that has arrived. That this may come late stands for handles kept open. */
inline release(s)
{
	k = r[1 - s].open + ALL(1 - s, size);
	r[1 - s].untold = r[1 - s].untold + (r[1 - s].real - k);
	if
	:: r[1 - s].untold > TOLD(1 - s) -> r[1 - s].untold = TOLD(1 - s) + 1
	:: else
	fi;
	r[1 - s].real = k;
	k = 0
}

#define other (1 - me)
#define SQ_ROOM(units) (r[me].sent + POSTS(me, units) <= SQ && r[me].open < BATCH)
#define ROOM(units) (ADMIT(me, units) && SQ_ROOM(units))

/* What an application does is progress; all else must come to rest (NO_REST in `run`). */
#ifdef REST
#define APP_STEP(label) ; label: skip
#else
#define APP_STEP(label)
#endif

proctype peer(bit me)
{
	do
	:: d_step { ONE_WAYS && SHORTS && ROOM(1) -> append(me, 1); check() }
		APP_STEP(progress0)
	:: d_step { ONE_WAYS && (!SHORTS || MMAX(me) > 1) && ROOM(MMAX(me)) -> append(me, MMAX(me)); check() }
		APP_STEP(progress1)
	:: d_step { CALLS && cr[me] >= PRICE(other) && ROOM(1) ->
		cr[me] = cr[me] - PRICE(other); append(me, 1); r[me].calls++; check() }
		APP_STEP(progress2)
#ifdef MUT_CALL_LEAK
	:: d_step { CALLS && cr[me] >= PRICE(other) && !ADMIT(me, 1) -> cr[me] = cr[me] - PRICE(other); check() }
#endif
	:: d_step { pend[me] > 0 && SQ_ROOM(1) -> pend[me]--; reply(me, 1, PRICE(me)); check() }
	:: d_step { pend[me] > 0 && SQ_ROOM(LONGEST(PRICE(me))) ->
		pend[me]--; reply(me, LONGEST(PRICE(me)), PRICE(me)); check() }
	:: d_step { r[me].open > 0 && r[me].sent < SQ -> flush(me, 0); check() }
	:: d_step { CAN_TELL(me) -> append(me, 0); check() }
	:: d_step { r[other].sent > 0 -> receive(me);
#ifdef PROMPT
		release(me);
#endif
		check() }
#ifndef PROMPT
	:: d_step { r[other].real > r[other].open + ALL(other, size) -> release(me); check() }
#endif
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
