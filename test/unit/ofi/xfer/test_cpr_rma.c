/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Remote memory access: fi_rma(3), fi_mr(3), fi_cq(3), fi_cntr(3); over the memory of the host. */
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#include "unit/ofi/xfer/mr_fixture.h"
#include "util/fi_old.h"

#define LEN (300u << 10)

static uint8_t *target, *local;

static void region(uint64_t access)
{
	cr_assert_eq(fi_mr_reg(p.domain, target, LEN, access, 0, 0xC0FFEE, 0, &mr, NULL), 0);
}

static void open_with(const struct ofi_options *opts)
{
	ofi_pair_open(&p, opts);
	target = calloc(1, LEN);
	local = malloc(LEN);
	for (size_t i = 0; i < LEN; i++)
		local[i] = (uint8_t)(i * 7 + i / 251);
	region(FI_REMOTE_READ | FI_REMOTE_WRITE);
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
	free(local);
}

/** Opens another pair in place of the suite's. */
static void reopen_with(const struct ofi_options *opts)
{
	teardown();
	open_with(opts);
}

TestSuite(cpr_rma, .init = setup, .fini = teardown, .timeout = 200);

Test(cpr_rma, each_call_moves_its_bytes)
{
	struct iovec iov[2] = { { local, 100 }, { local + 100, LEN - 100 } };
	struct fi_rma_iov remote[2] = { { 0, 1000, 0xC0FFEE }, { 1000, LEN - 1000, 0xC0FFEE } };
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .iov_count = 2,
				  .addr = p.addr[1],
				  .rma_iov = remote,
				  .rma_iov_count = 2,
				  .context = &p };
	struct fi_cq_tagged_entry e;
	struct fid_ep *ep = p.ep[0];
	const uint64_t key = fi_mr_key(mr);
	uint8_t *copy = malloc(LEN);

	memcpy(copy, local, LEN);
	cr_assert_eq(OFI_RETRY(&p, fi_write(ep, local, LEN, NULL, p.addr[1], 0, key, &p)), 0);
	expect(FI_RMA | FI_WRITE, &p);
	cr_expect_eq(memcmp(target, copy, LEN), 0);
	memset(target, 0, LEN);
	cr_assert_eq(OFI_RETRY(&p, fi_writev(ep, iov, NULL, 2, p.addr[1], 0, key, &p)), 0);
	expect(FI_RMA | FI_WRITE, &p);
	cr_expect_eq(memcmp(target, copy, LEN), 0);
	memset(target, 0, LEN);
	cr_assert_eq(OFI_RETRY(&p, fi_writemsg(ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE)), 0);
	expect(FI_RMA | FI_WRITE, &p);
	cr_expect_eq(memcmp(target, copy, LEN), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_inject_write(ep, "injected", 8, p.addr[1], 5, key)), 0);
	memset(local, 0, LEN);
	cr_assert_eq(OFI_RETRY(&p, fi_read(ep, local, LEN, NULL, p.addr[1], 0, key, &p)), 0);
	expect(FI_RMA | FI_READ, &p);
	cr_expect_eq(memcmp(local + 5, "injected", 8), 0);
	memcpy(copy + 5, "injected", 8);
	cr_expect_eq(memcmp(local, copy, LEN), 0);
	memset(local, 0, LEN);
	cr_assert_eq(OFI_RETRY(&p, fi_readv(ep, iov, NULL, 2, p.addr[1], 0, key, &p)), 0);
	expect(FI_RMA | FI_READ, &p);
	cr_expect_eq(memcmp(local, copy, LEN), 0);
	memset(local, 0, LEN);
	cr_assert_eq(OFI_RETRY(&p, fi_readmsg(ep, &msg, FI_FENCE)), 0);
	expect(FI_RMA | FI_READ, &p);
	cr_expect_eq(memcmp(local, copy, LEN), 0);
	cr_expect_eq(fi_cq_read(p.cq[1], &e, 1), -FI_EAGAIN, "no completion at the target");
	free(copy);
}

Test(cpr_rma, remote_cq_data_is_reported_at_the_target)
{
	struct fi_cq_tagged_entry e;
	const uint64_t key = fi_mr_key(mr);

	cr_assert_eq(
		OFI_RETRY(&p, fi_writedata(p.ep[0], local, LEN, NULL, 77, p.addr[1], 0, key, &p)),
		0);
	expect(FI_RMA | FI_WRITE, &p);
	cr_assert_eq(ofi_pair_read(&p, 1, &e), 1);
	cr_expect_eq(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	cr_expect_eq(e.data, 77);
	cr_expect_eq(e.len, LEN);
	cr_expect_eq(memcmp(target, local, LEN), 0);
	cr_assert_eq(
		OFI_RETRY(&p, fi_inject_writedata(p.ep[0], "x", 1, UINT64_MAX, p.addr[1], 3, key)),
		0);
	cr_assert_eq(ofi_pair_read(&p, 1, &e), 1);
	cr_expect_eq(e.data, UINT64_MAX);
	cr_expect_eq(target[3], 'x');
}

Test(cpr_rma, bad_arguments_are_refused_at_once)
{
	struct iovec iov[5] = {
		{ local, 1 }, { local, 1 }, { local, 1 }, { local, 1 }, { local, 1 }
	};
	struct fi_rma_iov remote[5] = {
		{ 0, 1, 1 }, { 0, 1, 1 }, { 0, 1, 1 }, { 0, 1, 1 }, { 0, 1, 1 }
	};
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .iov_count = 5,
				  .addr = p.addr[1],
				  .rma_iov = remote,
				  .rma_iov_count = 5 };
	size_t big = p.info->tx_attr->inject_size + 1;

	cr_expect_eq(fi_writemsg(p.ep[0], &msg, 0), -FI_EINVAL);
	msg.iov_count = msg.rma_iov_count = p.info->tx_attr->rma_iov_limit;
	remote[1].len = 2;
	cr_expect_eq(fi_writemsg(p.ep[0], &msg, 0), -FI_EINVAL, "lengths differ");
	remote[1].len = 1;
	cr_expect_eq(fi_writemsg(p.ep[0], &msg, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	cr_expect_eq(fi_readmsg(p.ep[0], &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	cr_expect_eq(fi_inject_write(p.ep[0], local, big, p.addr[1], 0, 1), -FI_EMSGSIZE);
	cr_expect_eq(fi_write(p.ep[0], local, SIZE_MAX, NULL, p.addr[1], 0, 1, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_write(p.ep[0], local, 1, NULL, 4711, 0, 1, NULL), -FI_EINVAL);
}

/* The local sums are more than max_msg_size, or wrap to a length that the region would permit. */
Test(cpr_rma, more_bytes_than_max_msg_size_are_refused_towards_anyone)
{
	const size_t half = SIZE_MAX / 2 + 1;
	const struct iovec rows[][2] = { { { local, half / 2 }, { local, half / 2 } },
					 { { local, SIZE_MAX - 7 }, { local, 16 } },
					 { { local, half }, { local, half } } };
	const uint64_t key = fi_mr_key(mr);
	struct fi_rma_iov remote = { .key = key };
	struct fi_msg_rma msg = { .iov_count = 2, .rma_iov = &remote, .rma_iov_count = 1 };

	for (int to = 1; to >= 0; to--) {
		struct fid_ep *ep = p.ep[0];

		msg.addr = p.addr[to];
		cr_expect_eq(fi_read(ep, local, half, NULL, msg.addr, 0, key, NULL), -FI_EMSGSIZE);
		for (size_t i = 0; i < 3; i++) {
			msg.msg_iov = rows[i];
			remote.len = rows[i][0].iov_len + rows[i][1].iov_len;
			cr_expect_eq(fi_writev(ep, rows[i], NULL, 2, msg.addr, 0, key, NULL),
				     -FI_EMSGSIZE, "row %zu", i);
			cr_expect_eq(fi_readv(ep, rows[i], NULL, 2, msg.addr, 0, key, NULL),
				     -FI_EMSGSIZE, "row %zu", i);
			cr_expect_eq(fi_writemsg(ep, &msg, 0), -FI_EMSGSIZE, "row %zu", i);
			cr_expect_eq(fi_readmsg(ep, &msg, 0), -FI_EMSGSIZE, "row %zu", i);
		}
	}
}

/* The remote sums wrap to the local length. */
Test(cpr_rma, remote_buffers_whose_sum_overflows_are_refused)
{
	struct iovec iov = { local, 16 };
	struct fi_rma_iov remote[2] = { { 0, SIZE_MAX - 7, 0xC0FFEE }, { 0, 24, 0xC0FFEE } };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = p.addr[1],
				  .rma_iov = remote,
				  .rma_iov_count = 2 };

	cr_expect_eq(fi_writemsg(p.ep[0], &msg, 0), -FI_EINVAL);
	cr_expect_eq(fi_readmsg(p.ep[0], &msg, 0), -FI_EINVAL);
}

Test(cpr_rma, accesses_that_the_region_forbids_are_failed_completions)
{
	static const size_t lens[] = { 8, LEN };
	struct fid_ep *ep = p.ep[0];

	for (unsigned i = 0; i < 2; i++) {
		size_t len = lens[i];

		cr_assert_eq(OFI_RETRY(&p, fi_write(ep, local, len, NULL, p.addr[1], 0, 1, &p)), 0);
		expect_error(FI_RMA | FI_WRITE, FI_EKEYREJECTED, &p);
		cr_assert_eq(OFI_RETRY(&p, fi_read(ep, local, len, NULL, p.addr[1], LEN - len + 1,
						   0xC0FFEE, &p)),
			     0);
		expect_error(FI_RMA | FI_READ, FI_EINVAL, &p);
		cr_assert_eq(fi_close(&mr->fid), 0);
		region(FI_REMOTE_READ);
		cr_assert_eq(
			OFI_RETRY(&p, fi_write(ep, local, len, NULL, p.addr[1], 0, 0xC0FFEE, &p)),
			0);
		expect_error(FI_RMA | FI_WRITE, FI_EACCES, &p);
		cr_assert_eq(
			OFI_RETRY(&p, fi_read(ep, local, len, NULL, p.addr[1], 0, 0xC0FFEE, &p)),
			0);
		expect(FI_RMA | FI_READ, &p);
	}
	/* An injected write has no completion, but its failure has one. */
	cr_assert_eq(OFI_RETRY(&p, fi_inject_write(ep, local, 8, p.addr[1], 0, 1)), 0);
	expect_error(FI_RMA | FI_WRITE, FI_EKEYREJECTED, NULL);
}

Test(cpr_rma, a_bound_region_and_its_endpoint_are_closed_in_any_order)
{
	cr_expect_eq(fi_mr_bind(mr, &p.ep[1]->fid, FI_REMOTE_READ), -FI_EBADFLAGS);
	cr_assert_eq(fi_mr_bind(mr, &p.ep[1]->fid, 0), 0);
	cr_assert_eq(fi_mr_enable(mr), 0);
	cr_assert_eq(fi_close(&mr->fid), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_write(p.ep[0], local, LEN, NULL, p.addr[1], 0, 0xC0FFEE, &p)),
		     0);
	expect_error(FI_RMA | FI_WRITE, FI_EKEYREJECTED, &p);

	region(FI_REMOTE_READ | FI_REMOTE_WRITE);
	cr_assert_eq(fi_mr_bind(mr, &p.ep[1]->fid, 0), 0);
	cr_assert_eq(fi_close(&p.ep[1]->fid), 0);
	p.ep[1] = NULL;
	cr_expect_eq(fi_close(&mr->fid), 0);
	mr = NULL;
}

Test(cpr_rma, accesses_are_counted_at_both_ends)
{
	struct fid_cntr *cntr[4];
	static const uint64_t flags[] = { FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ };
	struct fid_ep *ep[2];
	fi_addr_t addr;
	char name[64];
	size_t len = sizeof(name);

	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(fi_endpoint(p.domain, p.info, &ep[i], NULL), 0);
		cr_assert_eq(fi_ep_bind(ep[i], &p.av->fid, 0), 0);
		cr_assert_eq(fi_ep_bind(ep[i], &p.cq[i]->fid, FI_TRANSMIT | FI_RECV), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(fi_cntr_open(p.domain, NULL, &cntr[i], NULL), 0);
		cr_assert_eq(fi_ep_bind(ep[i / 2], &cntr[i]->fid, flags[i]), 0);
	}
	cr_expect_eq(fi_write(ep[0], local, 1, NULL, p.addr[1], 0, 1, NULL), -FI_EOPBADSTATE);
	cr_assert_eq(fi_enable(ep[0]), 0);
	cr_assert_eq(fi_enable(ep[1]), 0);
	cr_assert_eq(fi_getname(&ep[1]->fid, name, &len), 0);
	cr_assert_eq(fi_av_insert(p.av, name, 1, &addr, 0, NULL), 1);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(OFI_RETRY(&p, fi_inject_write(ep[0], local, 9, addr, 0, 0xC0FFEE)), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_read(ep[0], local, LEN, NULL, addr, 0, 0xC0FFEE, &p)), 0);
	expect(FI_RMA | FI_READ, &p);
	cr_expect_eq(fi_cntr_read(cntr[0]), 3);
	cr_expect_eq(fi_cntr_read(cntr[1]), 1);
	cr_expect_eq(fi_cntr_read(cntr[2]), 3);
	cr_expect_eq(fi_cntr_read(cntr[3]), 1);
	cr_assert_eq(OFI_RETRY(&p, fi_inject_write(ep[0], local, 9, addr, 0, 1)), 0);
	expect_error(FI_RMA | FI_WRITE, FI_EKEYREJECTED, NULL);
	cr_expect_eq(fi_cntr_readerr(cntr[0]), 1);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(fi_close(&ep[i]->fid), 0);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(fi_close(&cntr[i]->fid), 0);
}

Test(cpr_rma, capabilities_limit_the_accesses)
{
	struct ofi_options opts = { .caps = FI_MSG | FI_RMA | FI_READ };

	reopen_with(&opts);
	cr_expect_eq(fi_write(p.ep[0], local, 1, NULL, p.addr[1], 0, 0xC0FFEE, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_inject_write(p.ep[0], local, 1, p.addr[1], 0, 0xC0FFEE), -FI_ENOSYS);
	cr_assert_eq(OFI_RETRY(&p, fi_read(p.ep[0], local, 1, NULL, p.addr[1], 0, 0xC0FFEE, &p)),
		     0);
	expect_error(FI_RMA | FI_READ, FI_EACCES, &p);
	opts.caps = FI_MSG;
	reopen_with(&opts);
	cr_expect_eq(fi_read(p.ep[0], local, 1, NULL, p.addr[1], 0, 0xC0FFEE, NULL), -FI_ENOSYS);
}

Test(cpr_rma, with_basic_registration_memory_has_virtual_addresses)
{
	struct ofi_options opts = { .mr_mode = FI_MR_BASIC };

	reopen_with(&opts);
	cr_expect_neq(fi_mr_key(mr), 0xC0FFEE, "the provider chooses it");
	cr_assert_eq(OFI_RETRY(&p, fi_write(p.ep[0], local, 100, NULL, p.addr[1],
					    (uintptr_t)target + 10, fi_mr_key(mr), &p)),
		     0);
	expect(FI_RMA | FI_WRITE, &p);
	cr_expect_eq(memcmp(target + 10, local, 100), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_write(p.ep[0], local, 100, NULL, p.addr[1], 10, fi_mr_key(mr),
					    &p)),
		     0);
	expect_error(FI_RMA | FI_WRITE, FI_EINVAL, &p);
}

Test(cpr_rma, only_selected_completions_are_written)
{
	struct ofi_options opts = { .bind_flags = FI_SELECTIVE_COMPLETION };
	struct iovec iov = { 0 };
	struct fi_rma_iov remote = { 0, 16, 0xC0FFEE };
	struct fi_msg_rma msg;

	reopen_with(&opts);
	iov = (struct iovec){ local, 16 };
	msg = (struct fi_msg_rma){ .msg_iov = &iov,
				   .iov_count = 1,
				   .addr = p.addr[1],
				   .rma_iov = &remote,
				   .rma_iov_count = 1,
				   .context = &msg };
	cr_assert_eq(OFI_RETRY(&p, fi_write(p.ep[0], local, 16, NULL, p.addr[1], 0, 0xC0FFEE, &p)),
		     0);
	cr_assert_eq(OFI_RETRY(&p, fi_writemsg(p.ep[0], &msg, FI_COMPLETION)), 0);
	expect(FI_RMA | FI_WRITE, &msg);
}
