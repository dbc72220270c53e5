/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Collective operations of two endpoints: fi_collective(3), fi_eq(3), fi_cntr(3). */
#include "ofi/xfer/cpr_coll.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/clock.h"

#define PATIENCE_NS (60 * UTIL_NS_PER_S)

static struct ofi_pair p;
static struct fid_eq *eq;
static struct fid_av_set *set;
static struct fid_mc *mc[2];

static void setup(void)
{
	struct fi_av_set_attr attr = { .start_addr = 0, .end_addr = 1, .stride = 1 };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct ofi_options opts = { .caps = FI_MSG | FI_COLLECTIVE };

	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_eq_open(p.fabric, &eq_attr, &eq, NULL), 0);
	cr_assert_eq(fi_av_set(p.av, &attr, &set, NULL), 0);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++)
		if (mc[i])
			cr_expect_eq(fi_close(&mc[i]->fid), 0);
	if (set)
		cr_expect_eq(fi_close(&set->fid), 0);
	for (int i = 0; i < 2; i++)
		if (p.ep[i])
			cr_expect_eq(fi_close(&p.ep[i]->fid), 0);
	p.ep[0] = p.ep[1] = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
	ofi_pair_close(&p);
}

TestSuite(cpr_coll, .init = setup, .fini = teardown, .timeout = 200);

static void bind_eq(void)
{
	cr_assert_eq(fi_ep_bind(p.ep[0], &eq->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(p.ep[1], &eq->fid, 0), 0);
}

static fi_addr_t set_addr(void)
{
	fi_addr_t addr;

	cr_assert_eq(fi_av_set_addr(set, &addr), 0);
	return addr;
}

/* Returns what fi_eq_read returned for the next event, within a minute. */
static ssize_t next_event(uint32_t *event, void *entry, size_t len)
{
	uint64_t end = util_clock_ns() + PATIENCE_NS;
	ssize_t ret;

	do {
		ret = fi_eq_read(eq, event, entry, len, 0);
	} while (ret == -FI_EAGAIN && util_clock_ns() < end);
	return ret;
}

static void join_both(void)
{
	struct fi_eq_entry e;
	uint32_t event;
	bool seen[2] = { false, false };

	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_join_collective(p.ep[i], set_addr(), set, 0, &mc[i], &mc[i]), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(next_event(&event, &e, sizeof(e)), sizeof(e));
		cr_assert_eq(event, FI_JOIN_COMPLETE);
		cr_assert(e.context == &mc[0] || e.context == &mc[1]);
		seen[e.context == &mc[1]] = true;
		cr_expect_eq(e.fid, &(*(struct fid_mc **)e.context)->fid);
	}
	cr_expect(seen[0] && seen[1]);
}

static void expect_both(void *context)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(ofi_pair_read(&p, i, &e), 1);
		cr_expect_eq(e.op_context, context);
		cr_expect_eq(e.flags, FI_COLLECTIVE);
	}
}

Test(cpr_coll, each_collective_returns_its_result)
{
	uint32_t in[2][2] = { { 1, 2 }, { 10, 20 } }, out[2][2];

	bind_eq();
	join_both();
#define BOTH(call)                                                                                 \
	do {                                                                                       \
		memset(out, 0, sizeof(out));                                                       \
		for (int i = 0; i < 2; i++) {                                                      \
			fi_addr_t group = fi_mc_addr(mc[i]);                                       \
			cr_assert_eq(call, 0);                                                     \
		}                                                                                  \
		expect_both(&p);                                                                   \
	} while (0)
	BOTH(fi_barrier(p.ep[i], group, &p));
	BOTH(fi_barrier2(p.ep[i], group, FI_COMPLETION, &p));
	BOTH(fi_allreduce(p.ep[i], in[i], 2, NULL, out[i], NULL, group, FI_UINT32, FI_SUM, 0, &p));
	cr_expect(out[0][0] == 11 && out[0][1] == 22 && out[1][0] == 11 && out[1][1] == 22);
	BOTH(fi_reduce(p.ep[i], in[i], 2, NULL, out[i], NULL, group, 1, FI_UINT32, FI_MAX, 0, &p));
	cr_expect(!out[0][0] && out[1][0] == 10 && out[1][1] == 20);
	BOTH(fi_reduce_scatter(p.ep[i], in[i], 1, NULL, out[i], NULL, group, FI_UINT32, FI_PROD, 0,
			       &p));
	cr_expect(out[0][0] == 10 && out[1][0] == 40);
	BOTH(fi_alltoall(p.ep[i], in[i], 1, NULL, out[i], NULL, group, FI_UINT32, 0, &p));
	cr_expect(out[0][0] == 1 && out[0][1] == 10 && out[1][0] == 2 && out[1][1] == 20);
	BOTH(fi_allgather(p.ep[i], in[i], 1, NULL, out[i], NULL, group, FI_UINT32, 0, &p));
	cr_expect(out[0][0] == 1 && out[0][1] == 10 && out[1][0] == 1 && out[1][1] == 10);
	BOTH(fi_gather(p.ep[i], in[i], 1, NULL, out[i], NULL, group, 0, FI_UINT32, 0, &p));
	cr_expect(out[0][0] == 1 && out[0][1] == 10 && !out[1][0]);
	BOTH(fi_scatter(p.ep[i], in[i], 1, NULL, out[i], NULL, group, 1, FI_UINT32, 0, &p));
	cr_expect(out[0][0] == 10 && out[1][0] == 20);
	BOTH(fi_broadcast(p.ep[i], in[i], 2, NULL, group, 0, FI_UINT32, 0, &p));
	cr_expect(in[1][0] == 1 && in[1][1] == 2);
}

Test(cpr_coll, a_group_within_a_group_is_another_one)
{
	struct fid_mc *outer[2];

	bind_eq();
	join_both();
	for (int i = 0; i < 2; i++)
		outer[i] = mc[i];
	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_join_collective(p.ep[i], fi_mc_addr(outer[i]), set, 0, &mc[i], &p),
			     0);
	for (int i = 0; i < 2; i++) {
		uint32_t event;

		cr_assert_eq(next_event(&event, NULL, 0), 0,
			     "an event can be taken without buffer");
		cr_expect_eq(event, FI_JOIN_COMPLETE);
	}
	cr_expect_eq(fi_barrier(p.ep[0], fi_mc_addr(mc[0]), &p), 0);
	cr_expect_eq(fi_barrier(p.ep[1], fi_mc_addr(mc[1]), &p), 0);
	expect_both(&p);
	cr_expect_eq(fi_close(&p.ep[0]->fid), -FI_EBUSY, "groups of it are open");
	for (int i = 0; i < 2; i++)
		cr_expect_eq(fi_close(&outer[i]->fid), 0);
}

Test(cpr_coll, membership_managed_by_the_application_needs_no_messages)
{
	uint32_t event;

	bind_eq();
	cr_assert_eq(fi_join_collective(p.ep[0], FI_ADDR_NOTAVAIL, set, 0, &mc[0], &p), 0);
	cr_assert_eq(next_event(&event, NULL, 0), 0);
	cr_expect_eq(event, FI_JOIN_COMPLETE);
}

static struct fid_mc **guarded; /* a page that is protected until its first access */
static volatile sig_atomic_t events_before = -1;

static void on_first_access(int sig)
{
	uint32_t event;

	events_before = fi_eq_read(eq, &event, NULL, 0, FI_PEEK) >= 0;
	mprotect(guarded, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
}

/* A thread that reads the event uses the group at once. */
Test(cpr_coll, the_group_is_returned_before_its_event)
{
	struct sigaction act = { .sa_handler = on_first_access };
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t event;

	bind_eq();
	guarded = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(guarded != MAP_FAILED);
	cr_assert_eq(sigaction(SIGSEGV, &act, NULL), 0);
	cr_assert_eq(fi_join_collective(p.ep[0], FI_ADDR_NOTAVAIL, set, 0, guarded, &p), 0);
	signal(SIGSEGV, SIG_DFL);
	cr_expect_eq(events_before, 0);
	mc[0] = *guarded;
	munmap(guarded, len);
	cr_assert_eq(next_event(&event, NULL, 0), 0);
	cr_expect_eq(event, FI_JOIN_COMPLETE);
}

Test(cpr_coll, a_group_that_is_closed_ends_its_operations)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;

	bind_eq();
	join_both();
	cr_assert_eq(fi_barrier(p.ep[0], fi_mc_addr(mc[0]), &p), 0);
	cr_assert_eq(fi_close(&mc[0]->fid), 0);
	mc[0] = NULL;
	cr_assert_eq(ofi_pair_read(&p, 0, &e), -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(p.cq[0], &err, 0), 1);
	cr_expect_eq(err.err, FI_ECANCELED);
	cr_expect_eq(err.op_context, &p);
}

Test(cpr_coll, invalid_arguments_are_refused)
{
	uint32_t in[2] = { 0 }, out[2];
	struct fi_collective_attr attr = { .op = FI_SUM, .datatype = FI_UINT32 };
	struct fid_mc *none;
	struct fid_ep *ep = p.ep[0];
	fi_addr_t group;

	cr_expect_eq(fi_join_collective(ep, set_addr(), set, 0, &none, NULL), -FI_ENOEQ);
	bind_eq();
	cr_expect_eq(fi_join_collective(ep, set_addr(), set, FI_SEND, &none, NULL), -FI_EBADFLAGS);
	cr_expect_eq(fi_join_collective(ep, 12345, set, 0, &none, NULL), -FI_EINVAL);
	cr_expect_null(none);
	cr_expect_eq(fi_join(ep, in, 0, &none, NULL), -FI_ENOSYS, "multicast");
	cr_assert_eq(fi_join_collective(ep, set_addr(), set, 0, &mc[0], NULL), 0);
	group = fi_mc_addr(mc[0]);
	cr_expect_eq(fi_barrier(ep, group, NULL), -FI_EOPBADSTATE, "the other has not joined");
	cr_assert_eq(fi_join_collective(p.ep[1], set_addr(), set, 0, &mc[1], NULL), 0);
	for (int i = 0; i < 2; i++) {
		uint32_t event;

		cr_assert_eq(next_event(&event, NULL, 0), 0);
	}
	cr_expect_eq(fi_barrier(ep, group + 8, NULL), -FI_EINVAL);
	cr_expect_eq(fi_barrier2(ep, group, FI_INJECT, NULL), -FI_EBADFLAGS);
#define REDUCE(count, type, op)                                                                    \
	fi_allreduce(ep, in, count, NULL, out, NULL, group, type, op, 0, NULL)
	cr_expect_eq(REDUCE(2, FI_UINT32, FI_CSWAP), -FI_EOPNOTSUPP);
	cr_expect_eq(REDUCE(2, FI_FLOAT, FI_BOR), -FI_EOPNOTSUPP);
	cr_expect_eq(REDUCE(2, FI_VOID, FI_SUM), -FI_EOPNOTSUPP);
	cr_expect_eq(REDUCE((size_t)1 << 40, FI_UINT32, FI_SUM), -FI_EMSGSIZE);
	cr_expect_eq(REDUCE(SIZE_MAX, FI_UINT32, FI_SUM), -FI_EMSGSIZE);
	cr_expect_eq(fi_broadcast(ep, in, 1, NULL, group, 7, FI_UINT32, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_broadcast(ep, in, 1, NULL, group, FI_ADDR_NOTAVAIL, FI_UINT32, 0, NULL),
		     -FI_EINVAL);
	cr_expect_eq(fi_query_collective(p.domain, FI_ALLREDUCE, &attr, FI_COMPLETION),
		     -FI_EBADFLAGS);
	attr.mode = 1;
	cr_expect_eq(fi_query_collective(p.domain, FI_ALLREDUCE, &attr, 0), -FI_EINVAL);
}

Test(cpr_coll, a_query_agrees_with_the_calls)
{
	static const enum fi_op ops[] = { FI_MIN,  FI_MAX, FI_SUM,  FI_PROD, FI_LOR,
					  FI_LAND, FI_BOR, FI_BAND, FI_LXOR, FI_BXOR };
	struct fi_collective_attr attr;

	for (unsigned coll = FI_BROADCAST; coll <= FI_GATHER; coll++) {
		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			attr = (struct fi_collective_attr){ .op = ops[i], .datatype = FI_INT16 };
			cr_expect_eq(fi_query_collective(p.domain, (enum fi_collective_op)coll,
							 &attr, 0),
				     0);
			cr_expect_eq(attr.datatype_attr.size, 2);
			cr_expect_geq(attr.datatype_attr.count, 1000000);
			cr_expect_geq(attr.max_members, 1000);
		}
	}
	attr = (struct fi_collective_attr){ .op = FI_NOOP, .datatype = FI_VOID };
	cr_expect_eq(fi_query_collective(p.domain, FI_BARRIER, &attr, 0), 0);
	cr_expect_eq(fi_query_collective(p.domain, FI_ALLGATHER, &attr, 0), -FI_EOPNOTSUPP);
	attr.datatype = FI_DOUBLE;
	attr.op = FI_BXOR;
	cr_expect_eq(fi_query_collective(p.domain, FI_ALLREDUCE, &attr, 0), -FI_EOPNOTSUPP);
	cr_expect_eq(fi_query_collective(p.domain, (enum fi_collective_op)99, &attr, 0),
		     -FI_EOPNOTSUPP);
}
