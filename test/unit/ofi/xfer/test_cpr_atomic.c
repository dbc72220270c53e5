/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomic operations: fi_atomic(3), fi_cq(3), fi_cntr(3); over the memory of the host. */
#include <rdma/fi_atomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/rma/core_atomic.h"
#include "unit/ofi/xfer/mr_fixture.h"

#define CNT 16384u
#define KEY 0xC0FFEEu

static uint64_t *target, *operand, *compare, *result;

static uint64_t *array(void)
{
	uint64_t *a = aligned_alloc(64, CNT * sizeof(*a));

	cr_assert(a);
	memset(a, 0, CNT * sizeof(*a));
	return a;
}

static void open_with(const struct ofi_options *opts)
{
	ofi_pair_open(&p, opts);
	target = array();
	operand = array();
	compare = array();
	result = array();
	for (unsigned i = 0; i < CNT; i++)
		operand[i] = i + 1;
	cr_assert_eq(fi_mr_reg(p.domain, target, CNT * sizeof(*target),
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
		     0);
}

static void setup(void)
{
	struct ofi_options opts = { 0 };

	open_with(&opts);
}

static void teardown(void)
{
	close_pair();
	free(target);
	free(operand);
	free(compare);
	free(result);
}

TestSuite(cpr_atomic, .init = setup, .fini = teardown, .timeout = 200);

#define DONE(call, flags)                                                                          \
	do {                                                                                       \
		cr_assert_eq(OFI_RETRY(&p, call), 0);                                              \
		expect(flags, &p);                                                                 \
	} while (0)

/* Expects element i of the target to be `mul` times the first operand[i], plus `add`. */
static void target_is(uint64_t cnt, uint64_t mul, uint64_t add)
{
	for (uint64_t i = 0; i < CNT; i++)
		cr_assert_eq(target[i], i < cnt ? mul * (i + 1) + add : 0, "element %lu is %lu",
			     (unsigned long)i, (unsigned long)target[i]);
}

static void result_is(uint64_t cnt, uint64_t mul, uint64_t add)
{
	for (uint64_t i = 0; i < cnt; i++)
		cr_assert_eq(result[i], mul * (i + 1) + add, "element %lu was %lu",
			     (unsigned long)i, (unsigned long)result[i]);
	memset(result, 0, CNT * sizeof(*result));
}

static size_t most(void)
{
	size_t count = 0;

	cr_assert_eq(fi_atomicvalid(p.ep[0], FI_UINT64, FI_SUM, &count), 0);
	cr_assert_geq(count, 1024);
	cr_assert_leq(count, CNT);
	return count;
}

Test(cpr_atomic, each_base_call_changes_the_target)
{
	size_t n = most();
	struct fi_ioc ioc[2] = { { operand, 10 }, { operand + 10, n - 10 } };
	struct fi_rma_ioc rma[2] = { { 0, 100, KEY }, { 800, n - 100, KEY } };
	struct fid_ep *ep = p.ep[0];
	fi_addr_t to = p.addr[1];
	struct fi_msg_atomic msg = { .msg_iov = ioc,
				     .iov_count = 2,
				     .addr = to,
				     .rma_iov = rma,
				     .rma_iov_count = 2,
				     .datatype = FI_UINT64,
				     .op = FI_SUM,
				     .context = &p };

	DONE(fi_atomic(ep, operand, n, NULL, to, 0, KEY, FI_UINT64, FI_SUM, &p),
	     FI_ATOMIC | FI_WRITE);
	target_is(n, 1, 0);
	DONE(fi_atomicv(ep, ioc, NULL, 2, to, 0, KEY, FI_UINT64, FI_SUM, &p), FI_ATOMIC | FI_WRITE);
	target_is(n, 2, 0);
	DONE(fi_atomicmsg(ep, &msg, FI_COMPLETION), FI_ATOMIC | FI_WRITE);
	target_is(n, 3, 0);
	DONE(fi_atomicmsg(ep, &msg, FI_DELIVERY_COMPLETE | FI_FENCE), FI_ATOMIC | FI_WRITE);
	target_is(n, 4, 0);
}

Test(cpr_atomic, each_fetch_call_returns_the_old_values)
{
	size_t n = most();
	struct fi_ioc ioc[2] = { { operand, 10 }, { operand + 10, n - 10 } };
	struct fi_ioc out[3] = { { result, 1 }, { result + 1, n - 2 }, { result + n - 1, 1 } };
	struct fi_rma_ioc rma = { 0, n, KEY };
	struct fid_ep *ep = p.ep[0];
	fi_addr_t to = p.addr[1];
	struct fi_msg_atomic msg = { .msg_iov = ioc,
				     .iov_count = 2,
				     .addr = to,
				     .rma_iov = &rma,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_SUM,
				     .context = &p };

	DONE(fi_fetch_atomic(ep, operand, n, NULL, result, NULL, to, 0, KEY, FI_UINT64, FI_SUM, &p),
	     FI_ATOMIC | FI_READ);
	target_is(n, 1, 0);
	result_is(n, 0, 0);
	DONE(fi_fetch_atomicv(ep, ioc, NULL, 2, out, NULL, 3, to, 0, KEY, FI_UINT64, FI_SUM, &p),
	     FI_ATOMIC | FI_READ);
	target_is(n, 2, 0);
	result_is(n, 1, 0);
	DONE(fi_fetch_atomicmsg(ep, &msg, out, NULL, 3, FI_COMPLETION), FI_ATOMIC | FI_READ);
	target_is(n, 3, 0);
	result_is(n, 2, 0);
	DONE(fi_fetch_atomic(ep, NULL, n, NULL, result, NULL, to, 0, KEY, FI_UINT64, FI_ATOMIC_READ,
			     &p),
	     FI_ATOMIC | FI_READ);
	target_is(n, 3, 0);
	result_is(n, 3, 0);
}

Test(cpr_atomic, each_compare_call_swaps_where_it_should)
{
	size_t n = most();
	struct fi_ioc ioc = { operand, n }, cmp = { compare, n }, out = { result, n };
	struct fi_rma_ioc rma = { 0, n, KEY };
	struct fid_ep *ep = p.ep[0];
	fi_addr_t to = p.addr[1];
	struct fi_msg_atomic msg = { .msg_iov = &ioc,
				     .iov_count = 1,
				     .addr = to,
				     .rma_iov = &rma,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_CSWAP_NE,
				     .context = &p };

	DONE(fi_compare_atomic(ep, operand, n, NULL, compare, NULL, result, NULL, to, 0, KEY,
			       FI_UINT64, FI_CSWAP, &p),
	     FI_ATOMIC | FI_READ);
	target_is(n, 1, 0);
	result_is(n, 0, 0);
	/* No element is 0 any more. */
	DONE(fi_compare_atomicv(ep, &ioc, NULL, 1, &cmp, NULL, 1, &out, NULL, 1, to, 0, KEY,
				FI_UINT64, FI_CSWAP, &p),
	     FI_ATOMIC | FI_READ);
	target_is(n, 1, 0);
	result_is(n, 1, 0);
	for (size_t i = 0; i < n; i++)
		operand[i] = 5 * (i + 1);
	DONE(fi_compare_atomicmsg(ep, &msg, &cmp, NULL, 1, &out, NULL, 1, 0), FI_ATOMIC | FI_READ);
	target_is(n, 5, 0);
	result_is(n, 1, 0);
}

Test(cpr_atomic, an_injected_operation_leaves_its_buffers_at_once)
{
	struct fi_ioc ioc = { operand, 4 }, cmp = { compare, 4 }, out = { result, 4 };
	struct fi_rma_ioc rma = { 800, 4, KEY };
	struct fi_msg_atomic msg = { .msg_iov = &ioc,
				     .iov_count = 1,
				     .addr = p.addr[1],
				     .rma_iov = &rma,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_CSWAP,
				     .context = &p };
	struct fi_cq_tagged_entry e;
	size_t big = p.info->tx_attr->inject_size / 8 + 1;

	cr_assert_eq(OFI_RETRY(&p, fi_inject_atomic(p.ep[0], operand, 4, p.addr[1], 0, KEY,
						    FI_UINT64, FI_SUM)),
		     0);
	memset(operand, 0xFF, 32);
	DONE(fi_atomic(p.ep[0], compare, 1, NULL, p.addr[1], 0, KEY, FI_UINT64, FI_SUM, &p),
	     FI_ATOMIC | FI_WRITE);
	target_is(4, 1, 0);
	cr_expect_eq(fi_cq_read(p.cq[0], &e, 1), -FI_EAGAIN, "injected ones are silent");
	operand[0] = operand[1] = operand[2] = operand[3] = 7;
	cr_assert_eq(OFI_RETRY(&p, fi_compare_atomicmsg(p.ep[0], &msg, &cmp, NULL, 1, &out, NULL, 1,
							FI_INJECT)),
		     0);
	memset(operand, 0xFF, 32);
	memset(compare, 0xFF, 32);
	expect(FI_ATOMIC | FI_READ, &p);
	cr_expect_eq(target[100], 7);
	cr_expect_eq(target[103], 7);
	cr_expect_eq(fi_inject_atomic(p.ep[0], operand, big, p.addr[1], 0, KEY, FI_UINT64, FI_SUM),
		     -FI_EMSGSIZE);
}

Test(cpr_atomic, remote_cq_data_is_reported_at_the_target)
{
	struct fi_ioc ioc = { operand, 300 };
	struct fi_rma_ioc rma = { 0, 300, KEY };
	struct fi_msg_atomic msg = { .msg_iov = &ioc,
				     .iov_count = 1,
				     .addr = p.addr[1],
				     .rma_iov = &rma,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_SUM,
				     .data = 0x123456789ull,
				     .context = &p };
	struct fi_cq_tagged_entry e;

	DONE(fi_atomicmsg(p.ep[0], &msg, FI_REMOTE_CQ_DATA), FI_ATOMIC | FI_WRITE);
	cr_assert_eq(ofi_pair_read(&p, 1, &e), 1);
	cr_expect_eq(e.flags, FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	cr_expect_eq(e.data, 0x123456789ull);
	cr_expect_eq(e.len, 2400);
	target_is(300, 1, 0);
}

Test(cpr_atomic, refusals_of_the_target_are_failed_completions)
{
	struct fid_ep *ep = p.ep[0];
	fi_addr_t to = p.addr[1];

	cr_assert_eq(fi_atomic(ep, operand, 1, NULL, to, 0, KEY + 1, FI_UINT64, FI_SUM, &p), 0);
	expect_error(FI_ATOMIC | FI_WRITE, FI_EKEYREJECTED, &p);
	cr_assert_eq(fi_fetch_atomic(ep, operand, 1, NULL, result, NULL, to, CNT * 8, KEY,
				     FI_UINT64, FI_SUM, &p),
		     0);
	expect_error(FI_ATOMIC | FI_READ, FI_EINVAL, &p);
	cr_assert_eq(fi_atomic(ep, operand, 1, NULL, to, 4, KEY, FI_UINT64, FI_SUM, &p), 0);
	expect_error(FI_ATOMIC | FI_WRITE, FI_EINVAL, &p);
	cr_assert_eq(fi_inject_atomic(ep, operand, 1, to, 0, KEY + 1, FI_UINT64, FI_SUM), 0);
	expect_error(FI_ATOMIC | FI_WRITE, FI_EKEYREJECTED, NULL);
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_assert_eq(fi_mr_reg(p.domain, target, 64, FI_REMOTE_READ, 0, KEY, 0, &mr, NULL), 0);
	cr_assert_eq(fi_atomic(ep, operand, 1, NULL, to, 0, KEY, FI_UINT64, FI_SUM, &p), 0);
	expect_error(FI_ATOMIC | FI_WRITE, FI_EACCES, &p);
	DONE(fi_fetch_atomic(ep, NULL, 1, NULL, result, NULL, to, 0, KEY, FI_UINT64, FI_ATOMIC_READ,
			     &p),
	     FI_ATOMIC | FI_READ);
	target_is(0, 0, 0);
}

Test(cpr_atomic, bad_arguments_are_refused_at_once)
{
	struct fi_ioc ioc[5] = {
		{ operand, 2 }, { operand, 1 }, { operand, 1 }, { operand, 1 }, { operand, 1 }
	};
	struct fi_ioc out = { result, 3 };
	struct fi_rma_ioc rma = { 0, 2, KEY };
	struct fid_ep *ep = p.ep[0];
	fi_addr_t to = p.addr[1];
	struct fi_msg_atomic msg = { .msg_iov = ioc,
				     .iov_count = 2,
				     .addr = to,
				     .rma_iov = &rma,
				     .rma_iov_count = 1,
				     .datatype = FI_UINT64,
				     .op = FI_SUM };
	size_t n = most();

	cr_expect_eq(fi_atomic(ep, operand, 0, NULL, to, 0, KEY, FI_UINT64, FI_SUM, NULL),
		     -FI_EINVAL);
	cr_expect_eq(fi_atomic(ep, operand, n + 1, NULL, to, 0, KEY, FI_UINT64, FI_SUM, NULL),
		     -FI_EMSGSIZE);
	cr_expect_eq(fi_atomic(ep, operand, SIZE_MAX, NULL, to, 0, KEY, FI_UINT64, FI_SUM, NULL),
		     -FI_EMSGSIZE);
	cr_expect_eq(fi_atomicv(ep, ioc, NULL, 5, to, 0, KEY, FI_UINT64, FI_SUM, NULL), -FI_EINVAL);
	cr_expect_eq(fi_atomicv(ep, ioc, NULL, 0, to, 0, KEY, FI_UINT64, FI_SUM, NULL), -FI_EINVAL);
	cr_expect_eq(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL, "3 elements into 2");
	rma.count = SIZE_MAX;
	cr_expect_eq(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL);
	rma.count = 3;
	msg.rma_iov_count = 0;
	cr_expect_eq(fi_atomicmsg(ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 1;
	cr_expect_eq(fi_atomicmsg(ep, &msg, FI_TAGGED), -FI_EBADFLAGS);
	cr_expect_eq(fi_fetch_atomicmsg(ep, &msg, &out, NULL, 1, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	out.count = 2;
	cr_expect_eq(fi_fetch_atomicmsg(ep, &msg, &out, NULL, 1, 0), -FI_EINVAL);
	cr_expect_eq(fi_fetch_atomicmsg(ep, &msg, &out, NULL, 0, 0), -FI_EINVAL);
	cr_expect_eq(fi_atomic(ep, operand, 1, NULL, to, 0, KEY, FI_UINT64, FI_CSWAP, NULL),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(fi_atomic(ep, operand, 1, NULL, to, 0, KEY, FI_UINT64, FI_ATOMIC_READ, NULL),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(fi_atomic(ep, operand, 1, NULL, to, 0, KEY, FI_DOUBLE, FI_BXOR, NULL),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(fi_atomic(ep, operand, 1, NULL, to, 0, KEY, FI_VOID, FI_SUM, NULL),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(fi_atomic(ep, operand, 1, NULL, 99, 0, KEY, FI_UINT64, FI_SUM, NULL),
		     -FI_EINVAL);
	target_is(0, 0, 0);
}

Test(cpr_atomic, the_three_valid_calls_and_the_query_agree)
{
	const uint64_t flags[CORE_ATOMIC_KINDS] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	struct fi_atomic_attr attr;

	for (int type = -1; type <= FI_UINT128 + 1; type++) {
		for (int op = -1; op <= FI_ATOMIC_OP_LAST + 1; op++) {
			for (int kind = 0; kind < CORE_ATOMIC_KINDS; kind++) {
				size_t count = 0;
				int ret =
					kind == 0 ? fi_atomicvalid(p.ep[0], type, op, &count)
					: kind == 1
						? fi_fetch_atomicvalid(p.ep[0], type, op, &count)
						: fi_compare_atomicvalid(p.ep[0], type, op, &count);
				bool want = op < FI_ATOMIC_OP_LAST &&
					    core_atomic_is_valid(kind, type, op);

				cr_assert_eq(ret, want ? 0 : -FI_EOPNOTSUPP, "%d %d %d", kind, type,
					     op);
				cr_assert_eq(
					fi_query_atomic(p.domain, type, op, &attr, flags[kind]),
					ret);
				if (ret)
					continue;
				cr_assert_eq(attr.count, count);
				cr_assert_eq(attr.size, core_atomic_size(type));
				cr_assert_eq(count * attr.size, CORE_ATOMIC_LEN_MAX);
			}
		}
	}
	cr_expect_eq(fi_query_atomic(p.domain, FI_INT8, FI_SUM, &attr,
				     FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
		     -FI_EBADFLAGS);
	cr_expect_eq(fi_query_atomic(p.domain, FI_INT8, FI_SUM, &attr, FI_RECV), -FI_EBADFLAGS);
	cr_expect_eq(fi_query_atomic(p.domain, FI_INT8, FI_SUM, &attr, FI_TAGGED), -FI_EOPNOTSUPP);
}

/* Checks an endpoint with fewer capabilities. */
static void limited(uint64_t caps, int base, int fetch)
{
	struct ofi_options opts = { .caps = caps };

	teardown();
	open_with(&opts);
	cr_expect_eq(fi_atomicvalid(p.ep[0], FI_UINT64, FI_SUM, NULL), base);
	cr_expect_eq(fi_fetch_atomicvalid(p.ep[0], FI_UINT64, FI_SUM, NULL), fetch);
	cr_expect_eq(fi_compare_atomicvalid(p.ep[0], FI_UINT64, FI_CSWAP, NULL), fetch);
	if (base)
		cr_expect_eq(fi_atomic(p.ep[0], operand, 1, NULL, p.addr[1], 0, KEY, FI_UINT64,
				       FI_SUM, NULL),
			     base);
	if (fetch)
		cr_expect_eq(fi_fetch_atomic(p.ep[0], operand, 1, NULL, result, NULL, p.addr[1], 0,
					     KEY, FI_UINT64, FI_SUM, NULL),
			     fetch);
}

Test(cpr_atomic, capabilities_select_the_calls)
{
	limited(FI_MSG | FI_TAGGED, -FI_ENOSYS, -FI_ENOSYS);
	limited(FI_MSG | FI_ATOMIC, 0, 0);
	DONE(fi_atomic(p.ep[0], operand, 1, NULL, p.addr[1], 0, KEY, FI_UINT64, FI_SUM, &p),
	     FI_ATOMIC | FI_WRITE);
	limited(FI_MSG | FI_ATOMIC | FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE, 0, -FI_ENOSYS);
	limited(FI_MSG | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ, -FI_ENOSYS, 0);
	/* Peers may not access the last one's memory. */
	cr_assert_eq(fi_fetch_atomic(p.ep[0], operand, 1, NULL, result, NULL, p.addr[1], 0, KEY,
				     FI_UINT64, FI_SUM, &p),
		     0);
	expect_error(FI_ATOMIC | FI_READ, FI_EACCES, &p);
}

/* Atomic instructions of the application and operations of peers on one word. */
Test(cpr_atomic, atomics_of_the_application_lose_no_update)
{
	struct fi_cq_tagged_entry e;
	uint64_t one = 1;
	unsigned posted = 0, ended = 0;

	while (ended < 5000) {
		if (posted < 5000 && posted - ended < 64 &&
		    !fi_atomic(p.ep[0], &one, 1, NULL, p.addr[1], 0, KEY, FI_UINT64, FI_SUM, &p))
			posted++;
		__atomic_fetch_add(target, 1u << 20, __ATOMIC_RELAXED);
		fi_cq_read(p.cq[1], &e, 0);
		ended += fi_cq_read(p.cq[0], &e, 1) == 1;
	}
	cr_expect_eq(target[0] & 0xFFFFF, 5000);
}

Test(cpr_atomic, an_endpoint_reaches_itself)
{
	DONE(fi_fetch_atomic(p.ep[0], operand, 3000, NULL, result, NULL, p.addr[0], 0, KEY,
			     FI_UINT64, FI_SUM, &p),
	     FI_ATOMIC | FI_READ);
	target_is(3000, 1, 0);
}
