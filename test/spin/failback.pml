/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Failback: two ends agree to end a connection while nothing is in flight, and connect again (docs/ring-protocol.md,
 * section 3; prov/copyrpc/src/core/core_failback.c, whose functions the inlines are named after).
 *
 * Each end starts OPS operations, which end with the peer's response, and has WISHES to replace the connection, at any
 * moment. The time for which an end may hold its operations back may be over at any moment, and an end may refuse.
 *
 * Properties:
 *   LOST	a connection that is replaced takes no operation with it
 *   RULES	no end that keeps the rules is taken for one that breaks them
 *   LIVE	in the end there is a connection, nobody waits for a reply, and all operations have ended
 */
#ifndef OPS
#define OPS 3
#endif
#ifndef WISHES
#define WISHES 2
#endif

byte LOST, RULES, LIVE;	/* constants 0 that show their names when an assertion fails */

/* Question of an end: enum core_failback_question. */
#define QUIET 0
#define DRAINS 1
#define ASKED 2
#define GRANTED 3

/* Its reply to the peer's: enum core_failback_reply. */
#define NONE 0
#define WILLING 1
#define REFUSES 2
#define DEFERS 3
#define AGREED 4

/* Messages. */
#define OP 1
#define RESP 2
#define ASK 3
#define YES 4
#define NO 5
#define LATER 6

typedef end_of {
	bit is_up;
	bit is_down;		/* the peer has ended the connection: seen behind all that it has sent */
	byte question, reply;
	byte open;		/* operations in progress */
	byte due;		/* the peer's, that have no response yet */
	byte ops, ended, wishes;
};

end_of e[2];
chan sent[2] = [4] of { byte };	/* under way from an end */

#define OTHER (1 - i)
#define is_idle (e[i].open == 0)
#define owes (e[i].reply != NONE && e[i].reply != AGREED)
#define holds (e[i].question != QUIET || e[i].reply == WILLING || e[i].reply == AGREED)
#ifdef MUT_STARTS_AGREED
#define may_start (!holds || e[i].reply == AGREED)
#else
#define may_start !holds
#endif

inline on_ask()
{
	assert(RULES || (e[i].reply == NONE && e[i].question != GRANTED));
	if
	:: e[i].reply = REFUSES
	:: e[i].reply = DEFERS
	:: e[i].reply = WILLING;
		if
		:: e[i].question == DRAINS -> e[i].question = QUIET
		:: else
		fi
	fi
}

inline take(kind)
{
	if
	:: kind == OP -> e[i].due++
	:: kind == RESP -> e[i].open--; e[i].ended++
	:: kind == ASK -> on_ask()
	:: kind == YES -> assert(RULES || e[i].question == ASKED); e[i].question = GRANTED
	:: kind == NO || kind == LATER -> assert(RULES || e[i].question == ASKED); e[i].question = QUIET
	fi
}

proctype user(bit i)
{
	byte kind;

end:	do
	:: atomic { e[i].is_up && may_start && e[i].ops > 0 && nfull(sent[i]) -> sent[i]!OP; e[i].ops--; e[i].open++ }
	:: atomic { e[i].is_up && e[i].due > 0 && nfull(sent[i]) -> sent[i]!RESP; e[i].due-- }
#ifdef MUT_ASKS_TWICE
	:: atomic { e[i].is_up && e[i].wishes > 0 && e[i].question != GRANTED && !owes -> e[i].wishes--; e[i].question = DRAINS }
#else
	:: atomic { e[i].is_up && e[i].wishes > 0 && !holds && !owes -> e[i].wishes--; e[i].question = DRAINS }
#endif
#ifdef MUT_ASKS_BUSY
	:: atomic { e[i].is_up && e[i].question == DRAINS && nfull(sent[i]) -> sent[i]!ASK; e[i].question = ASKED }
#else
	:: atomic { e[i].is_up && e[i].question == DRAINS && is_idle && nfull(sent[i]) -> sent[i]!ASK; e[i].question = ASKED }
#endif
	/* The time is over. */
	:: atomic { e[i].is_up && e[i].question == DRAINS && (!is_idle || full(sent[i])) -> e[i].question = QUIET }
#ifdef MUT_GIVES_UP
	:: atomic { e[i].is_up && e[i].question == ASKED -> e[i].question = QUIET }
#endif
#ifdef MUT_AGREES_BUSY
	:: atomic { e[i].is_up && e[i].reply == WILLING && nfull(sent[i]) -> sent[i]!YES; e[i].reply = AGREED }
#else
	:: atomic { e[i].is_up && e[i].reply == WILLING && is_idle && nfull(sent[i]) -> sent[i]!YES; e[i].reply = AGREED }
#endif
	:: atomic { e[i].is_up && e[i].reply == WILLING && !is_idle -> e[i].reply = DEFERS }
	:: atomic { e[i].is_up && e[i].reply == REFUSES && nfull(sent[i]) -> sent[i]!NO; e[i].reply = NONE }
	:: atomic { e[i].is_up && e[i].reply == DEFERS && nfull(sent[i]) -> sent[i]!LATER; e[i].reply = NONE }
	/* Closes what the peer has agreed to end. */
	:: atomic { e[i].is_up && e[i].question == GRANTED ->
		assert(LOST || is_idle);
		e[i].is_up = 0; e[OTHER].is_down = 1 }
	:: atomic { e[i].is_up && nempty(sent[OTHER]) -> sent[OTHER]?kind; take(kind); kind = 0 }
	/* The end of the connection, behind all that came by it. */
	:: atomic { e[i].is_up && e[i].is_down && empty(sent[OTHER]) ->
		assert(LOST || (is_idle && e[i].reply == AGREED));
		e[i].is_up = 0 }
	od
}

inline reset(n)
{
	e[n].is_up = 1; e[n].is_down = 0; e[n].question = QUIET; e[n].reply = NONE; e[n].due = 0
}

/* Connects again when both ends have left. What was under way has no receiver. */
proctype network()
{
	byte kind;

	do
	:: atomic { !e[0].is_up && !e[1].is_up ->
		do
		:: sent[0]?kind -> assert(LOST || (kind != OP && kind != RESP))
		:: sent[1]?kind -> assert(LOST || (kind != OP && kind != RESP))
		:: empty(sent[0]) && empty(sent[1]) -> break
		od;
		kind = 0;
		reset(0); reset(1) }
	:: atomic { timeout ->
		assert(LIVE || (e[0].is_up && e[1].is_up));
		assert(LIVE || (e[0].question == QUIET && e[1].question == QUIET && e[0].reply == NONE && e[1].reply == NONE));
		assert(LIVE || (e[0].ended == OPS && e[1].ended == OPS));
		break }
	od;
end:	false
}

init
{
	atomic {
		e[0].ops = OPS; e[1].ops = OPS;
		e[0].wishes = WISHES; e[1].wishes = WISHES;
		reset(0); reset(1);
		run user(0);
		run user(1);
		run network()
	}
}
