/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does every call to a delegation server end once, whoever dies or stops? (prov/copyrpc/docs/local.md, "Tokens".)
 *
 * Places of clients, one server, and the ring of tokens between them. A step is one access to shared memory: a
 * compare-and-swap, an exchange, a load, a store. A client may die or stop between any two of its steps. Its place is
 * given to the next client once its requests are replied to. The sweep, which finds requests without a token, and sleep
 * are left out: tokens alone must do. -DMUT_x puts one fault in; the script `run` knows what each must trip over.
 */

/* ---- sizes: all may be set with -D ---- */
#ifndef PLACES
#define PLACES 2
#endif
#ifndef WORDS
#define WORDS 4			/* of the ring */
#endif
#ifndef DEPTH
#define DEPTH 1			/* calls in flight of a client */
#endif
#ifndef CALLS
#define CALLS 3			/* of a place, over all its clients */
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef STOPS
#define STOPS 0
#endif

/*
 * The properties. Each is a constant 0, there to show its name when an assertion fails.
 *   HOLE    no token is put behind the server, or beyond a word that is still empty
 *   FULL    a token finds room, unless others fill the ring meanwhile
 *   LOST    where nothing moves, every call of a client that lives has ended
 *   WRONG   a response reaches the call that it was made for
 */
byte HOLE, FULL, LOST, WRONG;

/* ---- ring of tokens ---- */
typedef word_t { byte lap; bit filled; byte id };
word_t word[WORDS];
byte head;			/* hint */
byte spos;			/* the server's position */
byte total;			/* tokens put so far; not part of the algorithm */

/* ---- places ---- */
typedef place_t {
	bit token;		/* crl_control.token */
	bit alive;		/* a client is connected or has just died */
	bit died;		/* its socket is closed */
	bit used;		/* the server has not given the place away */
	byte life;		/* number of the client */
	byte calls;		/* made so far */
	bit kill, stop, stopped;
	bit open[DEPTH];	/* call in flight in this slot */
	byte call[DEPTH];	/* its number */
	byte resp[DEPTH];	/* response in this slot: the number of its call, or 0 */
	bit taken[DEPTH];	/* server: request open in this slot */
	byte generation[DEPTH];	/* server: of the slot */
	byte mine[DEPTH];	/* server: life and call of the request in the slot */
	byte of_life[DEPTH]
};
place_t p[PLACES];
chan requests[PLACES] = [DEPTH] of { byte, byte };

#define FIRST_EMPTY(pos) (!word[(pos) % WORDS].filled && word[(pos) % WORDS].lap == (pos) / WORDS)
#ifdef MUT_NO_LAP
#define IS_EMPTY(pos) (!word[(pos) % WORDS].filled)
#define IS_OLD(pos) (false)
#else
#define IS_EMPTY(pos) FIRST_EMPTY(pos)
#define IS_OLD(pos) (word[(pos) % WORDS].lap < (pos) / WORDS)
#endif

/* Asserts that the words from the server's position to `pos` are full. */
inline check_hole(pos)
{
	assert(HOLE || pos >= spos);
	q = spos;
	do
	:: q < pos -> assert(HOLE || !FIRST_EMPTY(q)); q++
	:: else -> break
	od;
	q = 0
}

/* Position to try after one whose word is of the same lap or a later one. */
#if defined(MUT_NO_JUMP)
#define NEXT(pos) (pos + 1)
#elif defined(MUT_JUMP_FAR)
#define NEXT(pos) (word[(pos) % WORDS].lap * WORDS + (pos) % WORDS + word[(pos) % WORDS].filled)
#else
#define NEXT(pos) ((word[(pos) % WORDS].lap - 1 + word[(pos) % WORDS].filled) * WORDS + (pos) % WORDS + 1)
#endif

#ifdef MUT_CLAIM_FIRST
/* Claims a position and fills it later. */
inline put()
{
	d_step { pos = head; head++ };
	d_step { word[pos % WORDS].filled = 1; word[pos % WORDS].id = me; pos = 0 }
}
#else
inline put()
{
	d_step { pos = head; steps = 2 * WORDS; before = total };
	do
	:: d_step {
		!done && steps > 0 ->
		if
		:: IS_EMPTY(pos) ->
			check_hole(pos);
			word[pos % WORDS].filled = 1;
			word[pos % WORDS].lap = pos / WORDS;
			word[pos % WORDS].id = me;
			total++;
			done = 1
		:: else ->
			assert(FULL || !IS_OLD(pos));
			pos = NEXT(pos);
			steps--
		fi
	   }
	:: d_step { done -> head = pos + 1; pos = 0; steps = 0; before = 0; done = 0 }; break
	/* A put that gives up is repeated by the client's next poll. */
	:: d_step {
		!done && steps == 0 ->
		assert(FULL || total - before >= WORDS);
		steps = 2 * WORDS; before = total; pos = head
	   }
	od
}
#endif

#ifdef MUT_SPLIT
#define EXCHANGE() old = p[me].token; p[me].token = 1
#else
#define EXCHANGE() d_step { old = p[me].token; p[me].token = 1 }
#endif

inline announce()
{
	if
	:: p[me].token == 0 ->
#ifdef MUT_MARK_LATE
		put(); p[me].token = 1
#else
		p[me].token = 1; put()
#endif
	:: else ->
		EXCHANGE();
		if
		:: old == 0 -> put()
		:: else
		fi
	fi
}

/* What is not used again is set to 0, here and below: states that differ in it alone are one. */
#define MAY_CALL(slot) (p[me].calls < CALLS && !p[me].open[slot])
inline write_request(slot)
{
	d_step {
		MAY_CALL(slot) ->
		s = slot;
		p[me].calls++;
		p[me].open[s] = 1;
		p[me].call[s] = p[me].calls;
		requests[me]!s, p[me].calls
	}
}

inline end_call(slot)
{
	d_step {
		p[me].open[slot] && p[me].resp[slot] ->
		assert(WRONG || p[me].resp[slot] == p[me].call[slot]);
		p[me].open[slot] = 0; p[me].resp[slot] = 0; p[me].call[slot] = 0
	}
}

inline connect()
{
	atomic {
		!p[me].used && p[me].calls < CALLS;
		p[me].used = 1; p[me].alive = 1; p[me].died = 0; p[me].life++;
#ifndef MUT_OLD_MEMORY
		p[me].token = 0;
#endif
		do
		:: nempty(requests[me]) -> requests[me]?_, _
		:: empty(requests[me]) -> break
		od;
		s = 0;
		do
		:: s < DEPTH -> p[me].open[s] = 0; p[me].resp[s] = 0; p[me].call[s] = 0; s++
		:: else -> s = 0; break
		od
	}
}

proctype client(byte me)
{
	byte pos, steps, before, s, q;
	bit old, done;

life:
end0:	connect();
	{
end1:		do
#ifdef MUT_ANNOUNCE_FIRST
		:: MAY_CALL(0) -> announce(); write_request(0)
#else
		:: write_request(0); announce()
#endif
#if DEPTH > 1
		:: write_request(1); announce()
#endif
		:: end_call(0)
#if DEPTH > 1
		:: end_call(1)
#endif
		od
	} unless { p[me].kill || p[me].stop };
	if
	:: d_step { p[me].stop -> p[me].stopped = 1 };
end2:		false
	:: d_step { p[me].kill -> p[me].kill = 0; p[me].died = 1; pos = 0; steps = 0; before = 0; old = 0; done = 0; s = 0 };
		goto life
	fi
}

/* ---- server ---- */
#define OPEN_REQUESTS(i) (p[i].taken[0] || (DEPTH > 1 && p[i].taken[DEPTH - 1]))

inline take(i)
{
	d_step {
		i < PLACES && nempty(requests[i]) ->
		requests[i]?s, c;
		p[i].taken[s] = 1;
#ifdef REPEAT
		p[i].generation[s]++;
#endif
		p[i].mine[s] = c;
		p[i].of_life[s] = p[i].life;
		s = 0; c = 0
	}
}

/* Replies to slot s of place i, if the handle's generation is that of the slot. */
inline reply(i, s, handle, number, life_of)
{
#if defined(MUT_NO_GENERATION) || !defined(REPEAT)
#define SAME(place, slot, handle) true
#else
#define SAME(place, slot, handle) (p[place].generation[slot] == handle)
#endif
	if
	:: p[i].taken[s] && SAME(i, s, handle) ->
		assert(WRONG || (p[i].mine[s] == number && p[i].of_life[s] == life_of));
		p[i].taken[s] = 0;
		if
		:: p[i].alive ->
			assert(WRONG || p[i].life == life_of);
			p[i].resp[s] = number
		:: else
		fi;
		p[i].mine[s] = 0;
		p[i].of_life[s] = 0
	:: else
	fi
}

/* With -DREPEAT the application keeps the handle for a second try. */
#ifdef REPEAT
#define REMEMBER(place, slot) kp = place; ks = slot; kg = p[place].generation[slot]; \
	kc = p[place].mine[slot]; kl = p[place].of_life[slot]
#else
#define REMEMBER(place, slot) skip
#endif

inline reply_first(i, s)
{
	d_step {
		p[i].taken[s] ->
		REMEMBER(i, s);
		reply(i, s, p[i].generation[s], p[i].mine[s], p[i].of_life[s])
	}
}

/* A client that died loses its place when its requests are replied to. */
inline notice(i)
{
	d_step { p[i].alive && p[i].died -> p[i].alive = 0; if :: cur == i -> cur = PLACES :: else fi }
}

#ifdef MUT_REUSE
#define MAY_FREE(i) true
#else
#define MAY_FREE(i) !OPEN_REQUESTS(i)
#endif
inline give_back(i)
{
	d_step { p[i].used && !p[i].alive && p[i].life > 0 && MAY_FREE(i) -> p[i].used = 0 }
}

#define DIFFERS (word[spos % WORDS].filled || word[spos % WORDS].lap != spos / WORDS)

inline empty_word()
{
	d_step {
		word[spos % WORDS].filled = 0;
		word[spos % WORDS].id = 0;
#ifndef MUT_SAME_LAP
		word[spos % WORDS].lap = spos / WORDS + 1;
#endif
		spos++
	}
}

proctype server()
{
	byte cur = PLACES, next, s, c;
#ifdef REPEAT
	byte kp = PLACES, ks, kg, kc, kl;
#endif

end:	do
	:: d_step { cur == PLACES && DIFFERS -> next = word[spos % WORDS].id };
		empty_word();
		if
		:: d_step { p[next].alive ->
#ifndef MUT_CLEAR_LATE
			p[next].token = 0;
#endif
			cur = next; next = 0 }
		:: else -> next = 0
		fi
	:: take(cur)
#ifdef MUT_CLEAR_LATE
	:: cur < PLACES && empty(requests[cur]) -> d_step { p[cur].token = 0; cur = PLACES }
#else
	:: d_step { cur < PLACES && empty(requests[cur]) -> cur = PLACES }
#endif
	:: reply_first(0, 0)
	:: reply_first(1, 0)
#if DEPTH > 1
	:: reply_first(0, 1)
	:: reply_first(1, 1)
#endif
#if PLACES > 2
	:: reply_first(2, 0)
#endif
#ifdef REPEAT
	:: d_step { kp < PLACES -> reply(kp, ks, kg, kc, kl); kp = PLACES; ks = 0; kg = 0; kc = 0; kl = 0 }
#endif
	:: notice(0)
	:: notice(1)
	:: give_back(0)
	:: give_back(1)
	od
}

/* ---- death, standstill and rest ---- */
proctype fate()
{
	byte deaths, stops;

end:	do
	:: d_step { deaths < DEATHS && p[0].alive && !p[0].died && !p[0].kill && !p[0].stop -> p[0].kill = 1; deaths++ }
	:: d_step { deaths < DEATHS && p[1].alive && !p[1].died && !p[1].kill && !p[1].stop -> p[1].kill = 1; deaths++ }
	:: d_step { stops < STOPS && p[0].alive && !p[0].died && !p[0].kill && !p[0].stop -> p[0].stop = 1; stops++ }
	od
}

#define ENDED(i) (p[i].stopped || (!p[i].used && p[i].calls >= CALLS) || (p[i].calls >= CALLS && p[i].alive && \
	!p[i].open[0] && !(DEPTH > 1 && p[i].open[DEPTH - 1])))

proctype rest()
{
	timeout -> assert(LOST || (ENDED(0) && ENDED(1) && (PLACES < 3 || ENDED(PLACES - 1))))
}

init
{
	atomic { run server(); run client(0); run client(1);
#if PLACES > 2
		run client(2);
#endif
		run fate(); run rest() }
}
