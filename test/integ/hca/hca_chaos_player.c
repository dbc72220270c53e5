/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of a player of hca_chaos: plays until another one is killed, and then until all survivors
 * have received more and no operation is left, all before it runs out of patience.
 */
#include "hca_chaos.h"

#include <stdio.h>
#include <unistd.h>

static bool alive(uint32_t rank)
{
	return board->killed != (int)rank;
}

/* Returns true if each survivor has sent more since the death. */
static bool went_on(const uint64_t *before)
{
	for (uint32_t peer = 0; peer < PROCS; peer++)
		if (peer != me.rank && alive(peer) &&
		    board->proc[me.rank].got[peer] < before[peer] + MORE)
			return false;
	return true;
}

static bool all_done(uint32_t stage)
{
	for (uint32_t rank = 0; rank < PROCS; rank++)
		if (alive(rank) && board->proc[rank].done < stage)
			return false;
	return true;
}

/* Prints the state of a process that hangs. */
static void tell(const uint64_t *before)
{
	fprintf(stderr, "hca_chaos %u: killed %d, datagrams under way %u\n", me.rank, board->killed,
		me.ud_flying);
	for (uint32_t peer = 0; peer < PROCS; peer++)
		if (peer != me.rank)
			fprintf(stderr,
				"  peer %u: QP 0x%x, got %lu before, %lu now, under way %u%s\n",
				peer, me.qp[peer]->qp_num, (unsigned long)before[peer],
				(unsigned long)board->proc[me.rank].got[peer], me.flying[peer],
				me.lost[peer] ? ", lost" : "");
}

static void hang(double start, const uint64_t *before, const char *what)
{
	if (now() - start < PATIENCE)
		return;
	tell(before);
	die(what);
}

void player(uint32_t rank)
{
	uint64_t before[PROCS];
	double start;

	me.rank = rank;
	make_all();
	board->proc[rank].ready = 1;
	while (!board->go)
		usleep(500);
	connect_all();
	board->proc[rank].ready = 2;
	while (board->go < 2)
		usleep(500);
	while (board->killed < 0 || !alive(rank)) /* the victim continues until it dies */
		play();
	for (uint32_t peer = 0; peer < PROCS; peer++)
		before[peer] = board->proc[rank].got[peer];
	/* Continues to send until all have received enough. */
	for (start = now(); !went_on(before) || !me.lost[board->killed]; play())
		hang(start, before,
		     went_on(before) ? "the dead one's queue pair never broke"
				     : "the survivors do not go on");
	for (board->proc[rank].done = 1; !all_done(1); play())
		hang(start, before, "others hang");
	for (start = now(); in_flight(); poll_all())
		hang(start, before, "work that does not end");
	for (board->proc[rank].done = 2; !all_done(2); poll_all())
		hang(start, before, "others hang");
	_exit(0);
}
