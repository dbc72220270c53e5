/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Is a sleeper woken for everything that is published? (prov/copyrpc/local/crl_sleep.h.)
 *
 * One sleeper and the processes that publish work for it. A store of the publishers is first in a store buffer, from
 * which it becomes visible at any time; only a barrier empties the buffer at once. This is what a processor may do
 * between publishing and looking at the sleeper's word. membarrier(2) empties all buffers; it may begin to fail, and
 * then both sides use fences. -DMUT_x puts one fault in; the script `run` knows what each must trip over.
 */
#ifndef WAKERS
#define WAKERS 2
#endif
#ifndef WORK
#define WORK 3			/* published by each of them */
#endif
#ifndef FAILS
#define FAILS 0			/* 1: membarrier(2) may begin to fail */
#endif

/*
 * The property, a constant 0 that shows its name when an assertion fails.
 *   ASLEEP  where nothing moves, there is no work
 */
byte ASLEEP;

byte work;			/* visible */
byte buffer[WAKERS];		/* published, not visible yet */
byte sleeps;			/* the sleeper's word: number of its sleep, */
bit armed, fence;		/* it may sleep, the others must use fences */
byte wakeups;			/* bytes in the sleeper's descriptor */
bit failing;			/* membarrier(2) fails */
bit asleep;

inline drain(w)
{
	d_step { work = work + buffer[w]; buffer[w] = 0 }
}

inline drain_all()
{
	d_step {
		work = work + buffer[0] + (WAKERS > 1 -> buffer[WAKERS - 1] : 0);
		buffer[0] = 0; buffer[WAKERS - 1] = 0
	}
}

inline barrier()
{
#ifndef MUT_NO_BARRIER
	if
	:: fence
	:: !fence && !failing -> drain_all()
	:: !fence && failing ->
		fence = 1;
#ifndef MUT_NO_SETTLE
		drain_all()	/* CRL_SLEEP_SETTLE_US later */
#endif
	fi
#else
	skip
#endif
}

#ifdef MUT_NO_NUMBER
#define NEXT_SLEEP skip
#else
#define NEXT_SLEEP sleeps++
#endif

proctype sleeper()
{
end0:	do
	:: work > 0 -> work--
	:: work == 0 ->
#ifdef MUT_LOOK_FIRST
		if :: work > 0 -> goto end0 :: else fi;
#endif
		d_step { NEXT_SLEEP; armed = 1 };
		barrier();
#ifdef MUT_DRAIN_LATE
		wakeups = 0;
#endif
#ifndef MUT_LOOK_FIRST
		if
		:: work > 0 -> armed = 0
		:: work == 0 ->
#endif
			asleep = 1;
end1:			d_step { wakeups > 0; asleep = 0 };
			armed = 0;
#ifndef MUT_DRAIN_LATE
			wakeups = 0
#endif
#ifndef MUT_LOOK_FIRST
		fi
#endif
	od
}

proctype waker(byte me)
{
	byte left = WORK, last, seen_sleep;
	bit fences, seen_armed, seen_fence;

	do
	:: left == 0 -> break
	:: left > 0 ->
		d_step { left--; buffer[me]++ };
		if :: fences -> drain(me) :: else fi;
		d_step { seen_sleep = sleeps; seen_armed = armed; seen_fence = fence };
		if
		:: seen_fence && !fences ->
			fences = 1;
			drain(me);
#ifndef MUT_NO_SECOND_LOOK
			d_step { seen_sleep = sleeps; seen_armed = armed }
#endif
		:: else
		fi;
		if
		:: d_step { seen_armed && seen_sleep != last -> last = seen_sleep; wakeups++ }
		:: else
		fi;
		d_step { seen_sleep = 0; seen_armed = 0; seen_fence = 0 }
	od
}

/* Stores become visible, and membarrier(2) begins to fail, at any time. */
proctype world()
{
end:	do
	:: buffer[0] > 0 -> drain(0)
	:: WAKERS > 1 && buffer[WAKERS - 1] > 0 -> drain(WAKERS - 1)
	:: FAILS && !failing -> failing = 1
	od
}

proctype rest()
{
	timeout -> assert(ASLEEP || work == 0)
}

init
{
	atomic { run sleeper(); run waker(0);
#if WAKERS > 1
		run waker(1);
#endif
		run world(); run rest() }
}
