/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each member of a group gets the result that fi_collective(3) describes, once. Groups overlap
 * without disturbing each other, and every member gets an error when one of them is lost.
 */
#include "common/ft_data.h"
#include "common/ft_op.h"

#include <rdma/fi_collective.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 3000 /* elements of a slice: more than one step transfers */

struct group {
	struct fid_av_set *set;
	struct fid_mc *mc;
	int first, step, cnt; /* ranks first, first + step, ... */
};

static uint64_t in[FT_PROCS_MAX * COUNT_MAX], out[FT_PROCS_MAX * COUNT_MAX];

static void open_fab(struct ft_fab *fab, struct ft *ft)
{
	ft_fab_open(fab, ft, &(struct ft_want){ .caps = FI_MSG | FI_COLLECTIVE, .events = true });
}

static void await_join(struct ft_fab *fab, const struct group *g)
{
	double deadline = ft_deadline(fab);
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	while ((ret = fi_eq_read(fab->eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN)
		ft_again(fab, deadline);
	FT_RET(ret, sizeof(entry));
	FT_CHECK(event == FI_JOIN_COMPLETE, "event %u", event);
	FT_CHECK(entry.fid == &g->mc->fid && entry.context == (void *)(uintptr_t)g,
		 "the event of another join");
}

/* Joins a group of some ranks, this one included. */
static void join(struct ft_fab *fab, struct group *g, int first, int step)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL,
				       .end_addr = FI_ADDR_NOTAVAIL };
	fi_addr_t addr;

	g->first = first;
	g->step = step;
	g->cnt = 0;
	FT_OK(fi_av_set(fab->av, &attr, &g->set, NULL));
	for (int rank = first; rank < fab->ft->procs; rank += step, g->cnt++)
		FT_OK(fi_av_set_insert(g->set, fab->addr[rank]));
	FT_OK(fi_av_set_addr(g->set, &addr));
	FT_OK(fi_join_collective(fab->ep, addr, g->set, 0, &g->mc, g));
	await_join(fab, g);
}

static void leave(struct group *g)
{
	FT_CLOSE(g->mc);
	FT_CLOSE(g->set);
}

static void end(struct ft_fab *fab)
{
	ft_quiet(fab, 0.02);
	FT_CHECK(!ft_open_ops(fab), "%u operations never completed", ft_open_ops(fab));
	ft_sync(fab->ft);
	ft_fab_close(fab);
}

/* ---- results ---- */

static uint64_t element(int member, size_t at, uint64_t round)
{
	return (uint64_t)(member + 1) * 1000003u + at * 7u + round;
}

static uint64_t sum_of(const struct group *g, size_t at, uint64_t round)
{
	uint64_t sum = 0;

	for (int i = 0; i < g->cnt; i++)
		sum += element(i, at, round);
	return sum;
}

static ssize_t call(struct ft_fab *fab, const struct group *g, int coll, int root, size_t count,
		    void *context)
{
	fi_addr_t group = fi_mc_addr(g->mc), at = fab->addr[g->first + root * g->step];
	struct fid_ep *ep = fab->ep;

	switch (coll) {
	case FI_BARRIER: return fi_barrier(ep, group, context);
	case FI_BROADCAST:
		return fi_broadcast(ep, in, count, NULL, group, at, FI_UINT64, 0, context);
	case FI_ALLTOALL:
		return fi_alltoall(ep, in, count, NULL, out, NULL, group, FI_UINT64, 0, context);
	case FI_ALLREDUCE:
		return fi_allreduce(ep, in, count, NULL, out, NULL, group, FI_UINT64, FI_SUM, 0,
				    context);
	case FI_ALLGATHER:
		return fi_allgather(ep, in, count, NULL, out, NULL, group, FI_UINT64, 0, context);
	case FI_REDUCE_SCATTER:
		return fi_reduce_scatter(ep, in, count, NULL, out, NULL, group, FI_UINT64, FI_SUM,
					 0, context);
	case FI_REDUCE:
		return fi_reduce(ep, in, count, NULL, out, NULL, group, at, FI_UINT64, FI_SUM, 0,
				 context);
	case FI_SCATTER:
		return fi_scatter(ep, in, count, NULL, out, NULL, group, at, FI_UINT64, 0, context);
	default: return fi_gather(ep, in, count, NULL, out, NULL, group, at, FI_UINT64, 0, context);
	}
}

/*
 * Computes element `i` of the result, or of the broadcast data. Returns false if this member gets
 * nothing.
 */
static bool wanted(const struct group *g, int coll, int me, int root, size_t count, size_t i,
		   uint64_t round, uint64_t *want)
{
	int from = (int)(i / count);

	switch (coll) {
	case FI_BROADCAST: *want = element(root, i, round); return i < count;
	case FI_ALLREDUCE: *want = sum_of(g, i, round); return i < count;
	case FI_REDUCE: *want = sum_of(g, i, round); return i < count && me == root;
	case FI_REDUCE_SCATTER: *want = sum_of(g, (size_t)me * count + i, round); return i < count;
	case FI_SCATTER: *want = element(root, (size_t)me * count + i, round); return i < count;
	case FI_ALLTOALL: *want = element(from, (size_t)me * count + i % count, round); return true;
	case FI_ALLGATHER: *want = element(from, i % count, round); return true;
	case FI_GATHER: *want = element(from, i % count, round); return me == root;
	default: return false;
	}
}

static void check(const struct group *g, int coll, int me, int root, size_t count, uint64_t round)
{
	const uint64_t *got = coll == FI_BROADCAST ? in : out;

	for (size_t i = 0; i < count * (size_t)g->cnt; i++) {
		uint64_t want = UINT64_MAX;

		if (wanted(g, coll, me, root, count, i, round, &want))
			FT_CHECK(got[i] == want, "collective %d, %zu elements: element %zu", coll,
				 count, i);
		else
			FT_CHECK(coll == FI_BROADCAST || out[i] == UINT64_MAX,
				 "collective %d, %zu elements: element %zu is written", coll, count,
				 i);
	}
}

static void one(struct ft_fab *fab, const struct group *g, int coll, int root, size_t count,
		uint64_t round)
{
	int me = (fab->ft->rank - g->first) / g->step;
	struct ft_op *op = ft_op_new(fab, FT_ONE);

	for (size_t i = 0; i < count * (size_t)g->cnt; i++) {
		in[i] = element(me, i, round);
		out[i] = UINT64_MAX;
	}
	FT_POST(fab, call(fab, g, coll, root, count, &op->context));
	ft_wait(fab, op);
	FT_CHECK(!op->err && op->flags & FI_COLLECTIVE, "collective %d: error %d, flags %#lx", coll,
		 op->err, (unsigned long)op->flags);
	ft_op_put(fab, op);
	check(g, coll, me, root, count, round);
}

/* ---- cases ---- */

static void run_calls(struct ft *ft)
{
	static const size_t counts[] = { 1, 3, 200, 257, COUNT_MAX };
	struct group g;
	struct ft_fab fab;

	open_fab(&fab, ft);
	join(&fab, &g, 0, 1);
	for (size_t i = 0; i < FT_CNT(counts); i++) {
		for (int coll = FI_BARRIER; coll <= FI_GATHER; coll++) {
			for (int root = 0; root < g.cnt; root++)
				one(&fab, &g, coll, root, counts[i], (uint64_t)(coll + root));
		}
	}
	leave(&g);
	end(&fab);
}

/* Each rank is late once: the others must not have left the barrier before it has entered. */
static void run_barrier(struct ft *ft)
{
	struct group g;
	struct ft_fab fab;
	struct ft_op *op;

	open_fab(&fab, ft);
	join(&fab, &g, 0, 1);
	for (int late = 0; late < ft->procs; late++) {
		op = ft_op_new(&fab, FT_ONE);
		if (ft->rank != late) {
			FT_POST(&fab, fi_barrier(fab.ep, fi_mc_addr(g.mc), &op->context));
			ft_quiet(&fab, 0.05);
			FT_CHECK(!op->seen, "left the barrier without rank %d", late);
		}
		ft_sync(ft);
		if (ft->rank == late)
			FT_POST(&fab, fi_barrier(fab.ep, fi_mc_addr(g.mc), &op->context));
		ft_wait_good(&fab, op);
	}
	leave(&g);
	end(&fab);
}

static void run_groups(struct ft *ft)
{
	struct group all, some, again;
	struct ft_fab fab;

	open_fab(&fab, ft);
	join(&fab, &all, 0, 1);
	join(&fab, &some, ft->rank % 2, 2);
	join(&fab, &again, 0, 1);
	for (uint64_t round = 0; round < 20; round++) {
		one(&fab, &some, FI_ALLREDUCE, 0, 100, round);
		one(&fab, &all, FI_ALLGATHER, 0, 10, round);
		one(&fab, &again, FI_REDUCE, 0, 1000, round);
	}
	leave(&some);
	one(&fab, &all, FI_ALLREDUCE, 0, 5, 1);
	leave(&all);
	leave(&again);
	end(&fab);
}

static void run_overlap(struct ft *ft)
{
	enum { OPS = 64 };
	static uint64_t mine[OPS], sums[OPS];
	struct ft_op *ops[OPS];
	struct group g;
	struct ft_fab fab;

	open_fab(&fab, ft);
	join(&fab, &g, 0, 1);
	for (int i = 0; i < OPS; i++) {
		ops[i] = ft_op_new(&fab, FT_ONE);
		mine[i] = element(ft->rank, (size_t)i, 0);
		FT_POST(&fab,
			fi_allreduce(fab.ep, &mine[i], 1, NULL, &sums[i], NULL, fi_mc_addr(g.mc),
				     FI_UINT64, FI_SUM, 0, &ops[i]->context));
	}
	for (int i = 0; i < OPS; i++) {
		ft_wait_good(&fab, ops[i]);
		FT_CHECK(sums[i] == sum_of(&g, (size_t)i, 0), "operation %d", i);
	}
	leave(&g);
	end(&fab);
}

/* Rank 0 closes its group while an operation waits for the others. */
static void run_close(struct ft *ft)
{
	struct group g;
	struct ft_fab fab;
	struct ft_op *op;

	open_fab(&fab, ft);
	join(&fab, &g, 0, 1);
	if (ft->rank == 0) {
		op = ft_op_new(&fab, FT_ONE);
		FT_POST(&fab, fi_barrier(fab.ep, fi_mc_addr(g.mc), &op->context));
		FT_REFUSED(fi_close(&fab.ep->fid));
		FT_CLOSE(g.mc);
		ft_wait_bad(&fab, op, FI_ECANCELED);
	} else {
		FT_CLOSE(g.mc);
	}
	FT_CLOSE(g.set);
	end(&fab);
}

/* The last rank is killed: each rank that waits for it gets an error, and the group is unusable. */
static void run_death(struct ft *ft)
{
	int victim = ft->procs - 1;
	struct group g;
	struct ft_fab fab;
	struct ft_op *op;
	char called = 1;

	open_fab(&fab, ft);
	join(&fab, &g, 0, 1);
	if (ft->rank == victim)
		for (;;)
			ft_pause(ft, 1);
	op = ft_op_new(&fab, FT_ONE);
	FT_POST(&fab, call(&fab, &g, FI_ALLREDUCE, 0, 1000, &op->context));
	if (ft->rank)
		ft_tell(ft, 0, &called, 1);
	for (int rank = 1; !ft->rank && rank < victim; rank++)
		ft_hear(ft, rank, &called, 1);
	if (ft->rank == 0)
		ft_signal(ft, victim, SIGKILL);
	ft_wait(&fab, op);
	FT_CHECK(op->err, "a reduction without rank %d went well", victim);
	ft_op_put(&fab, op);
	FT_REFUSED(fi_barrier(fab.ep, fi_mc_addr(g.mc), NULL));
	leave(&g);
	ft_leave(ft);
}

static void run_counts(struct ft *ft)
{
	struct group g;
	struct ft_fab fab;
	struct ft_op *op;

	open_fab(&fab, ft);
	join(&fab, &g, 0, 1);
	op = ft_op_new(&fab, FT_ONE);
	FT_POST(&fab, call(&fab, &g, FI_ALLREDUCE, 0, ft->rank ? 7 : 8, &op->context));
	ft_wait_bad(&fab, op, FI_EINVAL);
	leave(&g);
	end(&fab);
}

#define FOUR  .procs = 4
#define THREE .procs = 3

static const struct ft_case cases[] = {
	FT_CASE("calls", run_calls, "Every collective brings what the page shows.", FOUR),
	FT_CASE("calls-three", run_calls, "... also when members are no power of two.", THREE),
	FT_CASE("barrier", run_barrier, "Nobody leaves a barrier before all have come.", FOUR),
	FT_CASE("groups", run_groups, "Groups with members in common do not meet.", FOUR),
	FT_CASE("overlap", run_overlap, "Many operations are under way, each ends once.", THREE),
	FT_CASE("close", run_close, "Closing a group ends what is open, once.", THREE),
	FT_CASE("counts", run_counts, "Members that disagree on the size get an error."),
	FT_CASE("death", run_death, "Who waits for a member that dies gets an error.", FOUR,
		.victims = 1u << 3, .local = true),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Collective operations.", cases, FT_CNT(cases));
}
