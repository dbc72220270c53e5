/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics: every operation on every type that fi_query_atomic offers computes the page's formula,
 * returns the previous value, respects access rights, and is atomic when two processes access the
 * same target.
 *
 * The formulas are those of fi_atomic(3), on values small enough to be exact in every type. Pages:
 * fi_atomic(3), fi_mr(3), fi_cq(3).
 */
#include "common/ft_data.h"
#include "common/ft_mr.h"
#include "common/ft_op.h"

#include <rdma/fi_atomic.h>
#include <signal.h>
#include <unistd.h>

#define CNT    4 /* maximum number of operands in one operation */
#define ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define KEY    41

enum kind { BASE, FETCH, COMPARE, KINDS };

/* ---- values ---- */

/* Stores an operand as a number that every type can hold: 0..100. */
static void put(enum fi_datatype type, void *at, size_t i, int value)
{
	switch (type) {
	case FI_INT8: ((int8_t *)at)[i] = (int8_t)value; break;
	case FI_UINT8: ((uint8_t *)at)[i] = (uint8_t)value; break;
	case FI_INT16: ((int16_t *)at)[i] = (int16_t)value; break;
	case FI_UINT16: ((uint16_t *)at)[i] = (uint16_t)value; break;
	case FI_INT32: ((int32_t *)at)[i] = value; break;
	case FI_UINT32: ((uint32_t *)at)[i] = (uint32_t)value; break;
	case FI_INT64: ((int64_t *)at)[i] = value; break;
	case FI_UINT64: ((uint64_t *)at)[i] = (uint64_t)value; break;
	case FI_FLOAT: ((float *)at)[i] = (float)value; break;
	case FI_DOUBLE: ((double *)at)[i] = value; break;
	case FI_LONG_DOUBLE: ((long double *)at)[i] = value; break;
	default: ft_fail(__FILE__, __LINE__, "type %d", type);
	}
}

static int get(enum fi_datatype type, const void *at, size_t i)
{
	switch (type) {
	case FI_INT8: return ((const int8_t *)at)[i];
	case FI_UINT8: return ((const uint8_t *)at)[i];
	case FI_INT16: return ((const int16_t *)at)[i];
	case FI_UINT16: return ((const uint16_t *)at)[i];
	case FI_INT32: return ((const int32_t *)at)[i];
	case FI_UINT32: return (int)((const uint32_t *)at)[i];
	case FI_INT64: return (int)((const int64_t *)at)[i];
	case FI_UINT64: return (int)((const uint64_t *)at)[i];
	case FI_FLOAT: return (int)((const float *)at)[i];
	case FI_DOUBLE: return (int)((const double *)at)[i];
	case FI_LONG_DOUBLE: return (int)((const long double *)at)[i];
	default: ft_fail(__FILE__, __LINE__, "type %d", type);
	}
}

/* Formulas of the page. t: value at the target, b: operand, c: compare value. */
static int formula(enum fi_op op, int t, int b, int c)
{
	switch (op) {
	case FI_MIN: return b < t ? b : t;
	case FI_MAX: return b > t ? b : t;
	case FI_SUM: return t + b;
	case FI_PROD: return t * b;
	case FI_LOR: return t || b;
	case FI_LAND: return t && b;
	case FI_BOR: return t | b;
	case FI_BAND: return t & b;
	case FI_LXOR: return (t && !b) || (!t && b);
	case FI_BXOR: return t ^ b;
	case FI_ATOMIC_READ: return t;
	case FI_ATOMIC_WRITE: return b;
	case FI_CSWAP: return c == t ? b : t;
	case FI_CSWAP_NE: return c != t ? b : t;
	case FI_CSWAP_LE: return c <= t ? b : t;
	case FI_CSWAP_LT: return c < t ? b : t;
	case FI_CSWAP_GE: return c >= t ? b : t;
	case FI_CSWAP_GT: return c > t ? b : t;
	case FI_MSWAP: return (b & c) | (t & ~c);
	default: ft_fail(__FILE__, __LINE__, "operation %d", op);
	}
}

static uint64_t query_flags(enum kind kind)
{
	return kind == FETCH ? FI_FETCH_ATOMIC : kind == COMPARE ? FI_COMPARE_ATOMIC : 0;
}

static bool offered(struct ft_fab *fab, enum fi_datatype type, enum fi_op op, enum kind kind,
		    struct fi_atomic_attr *attr)
{
	if ((kind == COMPARE) != (op >= FI_CSWAP && op <= FI_MSWAP))
		return false;
	if (kind == BASE && op == FI_ATOMIC_READ)
		return false;
	return !fi_query_atomic(fab->domain, type, op, attr, query_flags(kind));
}

/* ---- one operation ---- */

struct atomic {
	enum kind kind;
	enum fi_datatype type;
	enum fi_op op;
	size_t cnt;
	const void *buf;
	void *compare, *result;
	uint64_t addr, key;
	int rank;
	struct ft_op *done;
};

static ssize_t post(struct ft_fab *fab, const struct atomic *a)
{
	fi_addr_t to = fab->addr[a->rank];
	void *context = a->done ? &a->done->context : NULL;

	if (a->kind == FETCH)
		return fi_fetch_atomic(fab->ep, a->buf, a->cnt, NULL, a->result, NULL, to, a->addr,
				       a->key, a->type, a->op, context);
	if (a->kind == COMPARE)
		return fi_compare_atomic(fab->ep, a->buf, a->cnt, NULL, a->compare, NULL, a->result,
					 NULL, to, a->addr, a->key, a->type, a->op, context);
	if (!a->done)
		return fi_inject_atomic(fab->ep, a->buf, a->cnt, to, a->addr, a->key, a->type,
					a->op);
	return fi_atomic(fab->ep, a->buf, a->cnt, NULL, to, a->addr, a->key, a->type, a->op,
			 context);
}

static void run_one(struct ft_fab *fab, const struct atomic *a)
{
	FT_POST(fab, post(fab, a));
	ft_wait(fab, a->done);
	FT_CHECK(!a->done->err, "operation %d on type %d: %s", a->op, a->type,
		 ft_err_name(a->done->err));
	FT_CHECK(a->done->flags & FI_ATOMIC, "flags %#llx", (unsigned long long)a->done->flags);
	ft_op_put(fab, a->done);
}

static void begin(struct ft_fab *fab, struct ft_region *region, struct ft *ft, struct ft_want want,
		  size_t len)
{
	want.caps = FI_ATOMIC | FI_MSG;
	want.tx_flags |= FI_DELIVERY_COMPLETE;
	ft_fab_open(fab, ft, &want);
	ft_region_open(fab, region, len, ACCESS, KEY);
	ft_region_swap(fab, region, ft->procs > 1 ? !ft->rank : ft->rank);
	ft_sync(ft);
}

static void end(struct ft_fab *fab, struct ft_region *region)
{
	ft_quiet(fab, 0.02);
	FT_CHECK(!ft_open_ops(fab), "%u operations never completed", ft_open_ops(fab));
	ft_sync(fab->ft);
	ft_region_close(region);
	ft_fab_close(fab);
}

/* ---- every operation on every type ---- */

/* Rank 0 executes the operation, rank 1 computes the expected result and compares. */
static void check_one(struct ft_fab *fab, struct ft_region *region, enum kind kind,
		      enum fi_datatype type, enum fi_op op, size_t cnt)
{
	static const int targets[] = { 0, 5, 12, 7 }, given[] = { 3, 5, 2, 0 },
			 compared[] = { 0, 9, 12, 4 };
	long double buf[CNT], compare[CNT], result[CNT];
	struct atomic a = { .kind = kind,
			    .type = type,
			    .op = op,
			    .cnt = cnt,
			    .buf = buf,
			    .compare = compare,
			    .result = result,
			    .rank = 1,
			    .addr = region->there.base,
			    .key = region->there.key };

	for (size_t i = 0; fab->ft->rank == 1 && i < cnt; i++)
		put(type, region->buf, i, targets[i]);
	ft_sync(fab->ft);
	if (fab->ft->rank == 0) {
		for (size_t i = 0; i < cnt; i++) {
			put(type, buf, i, given[i]);
			put(type, compare, i, compared[i]);
			put(type, result, i, 99);
		}
		a.done = ft_op_new(fab, FT_ONE);
		run_one(fab, &a);
		for (size_t i = 0; kind != BASE && i < cnt; i++)
			FT_CHECK(get(type, result, i) == targets[i],
				 "operation %d on type %d returned %d, %d was there", op, type,
				 get(type, result, i), targets[i]);
	}
	ft_sync(fab->ft);
	for (size_t i = 0; fab->ft->rank == 1 && i < cnt; i++) {
		int want = formula(op, targets[i], given[i], compared[i]);

		FT_CHECK(get(type, region->buf, i) == want,
			 "operation %d on type %d: %d and %d (%d) made %d, not %d", op, type,
			 targets[i], given[i], compared[i], get(type, region->buf, i), want);
	}
	ft_sync(fab->ft);
}

static bool is_complex(enum fi_datatype type)
{
	return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX ||
	       type == FI_LONG_DOUBLE_COMPLEX;
}

static void run_table(struct ft *ft)
{
	enum kind kind = (enum kind)ft->test->arg;
	struct ft_region region;
	struct ft_fab fab;
	unsigned done = 0;

	begin(&fab, &region, ft, (struct ft_want){ 0 }, 4096);
	for (int type = 0; type <= FI_LONG_DOUBLE_COMPLEX; type++) {
		for (int op = 0; op <= FI_MSWAP; op++) {
			struct fi_atomic_attr attr = { 0 };

			if (is_complex(type) || !offered(&fab, type, op, kind, &attr))
				continue;
			FT_CHECK(attr.count && attr.size, "count %zu, size %zu", attr.count,
				 attr.size);
			check_one(&fab, &region, kind, type, op, 1);
			if (attr.count >= CNT)
				check_one(&fab, &region, kind, type, op, CNT);
			done++;
		}
	}
	FT_CHECK(done >= 8, "%u operations are offered", done);
	end(&fab, &region);
}

/* fi_atomicvalid and its kin agree with fi_query_atomic. */
static void run_valid(struct ft *ft)
{
	struct ft_region region;
	struct ft_fab fab;

	begin(&fab, &region, ft, (struct ft_want){ 0 }, 64);
	for (int type = 0; type <= FI_LONG_DOUBLE_COMPLEX; type++) {
		for (int op = 0; op <= FI_MSWAP; op++) {
			for (int kind = BASE; kind < KINDS; kind++) {
				struct fi_atomic_attr attr = { 0 };
				size_t cnt = 0;
				int query = fi_query_atomic(fab.domain, type, op, &attr,
							    query_flags(kind));
				int valid =
					kind == BASE ? fi_atomicvalid(fab.ep, type, op, &cnt)
					: kind == FETCH
						? fi_fetch_atomicvalid(fab.ep, type, op, &cnt)
						: fi_compare_atomicvalid(fab.ep, type, op, &cnt);

				FT_CHECK(!query == !valid, "type %d, operation %d, kind %d: %d, %d",
					 type, op, kind, query, valid);
				FT_CHECK(query || attr.count == cnt, "counts %zu and %zu",
					 attr.count, cnt);
			}
		}
	}
	FT_REFUSED(fi_query_atomic(fab.domain, FI_INT32, FI_SUM, &(struct fi_atomic_attr){ 0 },
				   FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)); /* not both */
	FT_REFUSED(fi_query_atomic(fab.domain, 999, FI_SUM, &(struct fi_atomic_attr){ 0 }, 0));
	FT_REFUSED(fi_query_atomic(fab.domain, FI_INT32, 999, &(struct fi_atomic_attr){ 0 }, 0));
	end(&fab, &region);
}

/* ---- at the same time ---- */

/*
 * All ranks add and swap at rank 0's memory, rank 0 too: no addition is lost, no ticket returned
 * twice.
 */
static void run_race(struct ft *ft)
{
	enum { EACH = 500 };
	static uint8_t seen[FT_PROCS_MAX * EACH];
	struct ft_want want = { .caps = FI_ATOMIC | FI_MSG };
	struct ft_target target;
	struct ft_region region;
	uint64_t one = 1, ticket, *counter, mine;
	struct ft_fab fab;

	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("needs an endpoint that reaches itself");
	ft_fab_open(&fab, ft, &want);
	ft_region_open(&fab, &region, 64, ACCESS, KEY);
	memset(region.buf, 0, 64);
	counter = (uint64_t *)region.buf;
	target = region.here;
	for (int rank = 1; rank < ft->procs; rank++) {
		if (ft->rank == 0)
			ft_tell(ft, rank, &target, sizeof(target));
		else if (ft->rank == rank)
			ft_hear(ft, 0, &target, sizeof(target));
	}
	ft_sync(ft);
	for (int i = 0; i < EACH; i++) {
		struct atomic a = { .kind = FETCH,
				    .type = FI_UINT64,
				    .op = FI_SUM,
				    .cnt = 1,
				    .buf = &one,
				    .result = &ticket,
				    .addr = target.base,
				    .key = target.key,
				    .done = ft_op_new(&fab, FT_ONE) };

		run_one(&fab, &a);
		FT_CHECK(ticket < (uint64_t)(ft->procs * EACH), "ticket %llu",
			 (unsigned long long)ticket);
		FT_CHECK(!seen[ticket]++, "ticket %llu twice", (unsigned long long)ticket);
	}
	ft_sync(ft);
	mine = (uint64_t)(ft->procs * EACH);
	FT_CHECK(ft->rank || *counter == mine, "the sum is %llu, expected %llu",
		 (unsigned long long)*counter, (unsigned long long)mine);
	for (int rank = 1; rank < ft->procs; rank++) { /* every ticket was drawn */
		static uint8_t theirs[FT_PROCS_MAX * EACH];

		if (ft->rank == rank)
			ft_tell(ft, 0, seen, sizeof(seen));
		if (ft->rank)
			continue;
		ft_hear(ft, rank, theirs, sizeof(theirs));
		for (size_t i = 0; i < sizeof(seen); i++)
			FT_CHECK((seen[i] += theirs[i]) < 2, "ticket %zu twice", i);
	}
	end(&fab, &region);
}

/* ---- silent, not allowed, not there ---- */

static void run_silent(struct ft *ft)
{
	struct ft_region region;
	struct ft_fab fab;
	uint32_t one = 1, *sum;
	double deadline;

	begin(&fab, &region, ft, (struct ft_want){ .selective_tx = true, .counters = true }, 64);
	sum = (uint32_t *)region.buf;
	memset(region.buf, 0, 64);
	ft_sync(ft);
	for (int i = 0; ft->rank == 0 && i < 100; i++) {
		struct atomic a = { .type = FI_UINT32,
				    .op = FI_SUM,
				    .cnt = 1,
				    .buf = &one,
				    .rank = 1,
				    .addr = region.there.base,
				    .key = region.there.key };

		a.done = i & 1 ? ft_op_new(&fab, FT_NONE) : NULL;
		FT_POST(&fab, post(&fab, &a));
	}
	deadline = ft_deadline(&fab);
	while (ft->rank == 0 && fi_cntr_read(fab.tx_cntr) < 100)
		FT_CHECK(ft_now() < deadline, "the counter stays at %llu",
			 (unsigned long long)fi_cntr_read(fab.tx_cntr));
	while (ft->rank == 1 && *(volatile uint32_t *)sum < 100) {
		ft_fab_progress(&fab);
		FT_CHECK(ft_now() < deadline, "the sum stays at %u", *sum);
	}
	ft_sync(ft);
	FT_CHECK(ft->rank == 0 || *sum == 100, "the sum is %u", *sum);
	end(&fab, &region);
}

static void must_fail(struct ft_fab *fab, enum kind kind, uint64_t addr, uint64_t key, size_t cnt)
{
	uint64_t buf[CNT] = { 1, 1, 1, 1 }, result[CNT];
	struct atomic a = { .kind = kind,
			    .type = FI_UINT64,
			    .cnt = cnt,
			    .buf = buf,
			    .rank = 1,
			    .op = kind == COMPARE ? FI_CSWAP : FI_SUM,
			    .compare = buf,
			    .result = result,
			    .addr = addr,
			    .key = key,
			    .done = ft_op_new(fab, FT_ONE) };

	FT_POST(fab, post(fab, &a));
	ft_wait(fab, a.done);
	FT_CHECK(a.done->err, "an operation that is forbidden ended well");
	ft_op_put(fab, a.done);
}

static void run_forbidden(struct ft *ft)
{
	struct ft_region region, readable, writable;
	struct ft_fab fab;

	begin(&fab, &region, ft, (struct ft_want){ 0 }, 64);
	ft_region_open(&fab, &readable, 64, FI_REMOTE_READ, KEY + 1);
	ft_region_open(&fab, &writable, 64, FI_REMOTE_WRITE, KEY + 2);
	ft_region_swap(&fab, &readable, !ft->rank);
	ft_region_swap(&fab, &writable, !ft->rank);
	for (int kind = BASE; ft->rank == 0 && kind < KINDS; kind++) {
		must_fail(&fab, kind, region.there.base + 64, region.there.key, 1);
		must_fail(&fab, kind, region.there.base + 56, region.there.key, 2);
		must_fail(&fab, kind, region.there.base, region.there.key ^ 0x999, 1);
		must_fail(&fab, kind, readable.there.base, readable.there.key, 1);
		if (kind != BASE) /* a fetched target must be readable */
			must_fail(&fab, kind, writable.there.base, writable.there.key, 1);
	}
	ft_sync(ft);
	ft_buf_check(region.buf, 64, 0);
	ft_buf_check(readable.buf, 64, 0);
	ft_region_close(&readable);
	ft_region_close(&writable);
	end(&fab, &region);
}

static void run_killed(struct ft *ft)
{
	enum { OPEN = 20 };
	static uint64_t one = 1, results[OPEN];
	struct ft_op *ops[OPEN];
	struct ft_region region;
	struct ft_fab fab;

	/* How long a target that was stopped before it was connected is waited for. */
	setenv("FI_COPYRPC_PEER_TIMEOUT", "8000", 1);
	begin(&fab, &region, ft, (struct ft_want){ 0 }, 64);
	if (ft->rank == 1)
		pause();
	ft_signal(ft, 1, SIGSTOP);
	for (int i = 0; i < OPEN; i++) {
		struct atomic a = { .kind = i & 1 ? FETCH : BASE,
				    .type = FI_UINT64,
				    .op = FI_SUM,
				    .cnt = 1,
				    .buf = &one,
				    .result = &results[i],
				    .rank = 1,
				    .addr = region.there.base,
				    .key = region.there.key };

		ops[i] = a.done = ft_op_new(&fab, FT_ONE);
		FT_POST(&fab, post(&fab, &a));
	}
	ft_signal(ft, 1, SIGKILL);
	for (int i = 0; i < OPEN; i++)
		ft_wait(&fab, ops[i]);
	ft_quiet(&fab, 0.05);
	ft_region_close(&region);
	ft_fab_close(&fab);
}

static const struct ft_case cases[] = {
	FT_CASE("base", run_table, "Every base operation computes its formula.", .arg = BASE),
	FT_CASE("fetch", run_table, "Every fetch returns what was there.", .arg = FETCH),
	FT_CASE("compare", run_table, "Every compare-and-swap does both.", .arg = COMPARE),
	FT_CASE("valid", run_valid, "All ways to ask what is offered agree."),
	FT_CASE("race", run_race, "Concurrent operations are atomic.", .procs = 3),
	FT_CASE("silent", run_silent,
		"Injected and silent operations are counted, without a completion."),
	FT_CASE("forbidden", run_forbidden, "Bounds, keys and rights are enforced."),
	FT_CASE("killed", run_killed, "What is open with a dead target ends once.", .victims = 2,
		.local = true, .fresh = true),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Atomics compute what the page says.", cases, FT_CNT(cases));
}
