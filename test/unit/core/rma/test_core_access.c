/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Common part of remote accesses: core/rma/core_access.h. */
#include <criterion/criterion.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <string.h>

#include "core/core_peer.h"
#include "core/rma/core_access.h"

static struct core_access access_over(const struct fi_rma_iov *rma, size_t cnt)
{
	struct core_access access = { .rma_cnt = cnt };

	for (size_t i = 0; i < cnt; i++) {
		access.rma[i] = rma[i];
		access.len += rma[i].len;
	}
	return access;
}

Test(core_access, ranges_cover_each_remote_buffer_once)
{
	const struct fi_rma_iov rma[] = { { .len = 0 }, { .len = 5 }, { .len = 0 }, { .len = 3 } };
	const size_t most[] = { 1, 2, 3, 5, 6, SIZE_MAX };

	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		struct core_access access = access_over(rma, 4);
		size_t sums[4] = { 0 }, len;

		while ((len = core_access_next(&access, most[i]))) {
			cr_assert_leq(len, most[i]);
			sums[access.rma_idx] += len;
			access.rma_off += len;
			cr_assert_leq(access.rma_off, rma[access.rma_idx].len);
		}
		for (size_t j = 0; j < 4; j++)
			cr_assert_eq(sums[j], rma[j].len, "buffer %zu, at most %zu", j, most[i]);
	}
}

Test(core_access, no_buffers_have_no_range)
{
	struct core_access access = access_over(NULL, 0);

	cr_assert_eq(core_access_next(&access, 8), 0);
}

Test(core_access, data_is_sent_with_the_last_range_only)
{
	struct core_access access = { .len = 10,
				      .flags = FI_REMOTE_CQ_DATA,
				      .data = 0x0123456789ABCDEF };
	struct core_frame frame;
	const uint8_t head[4] = { 1, 2, 3, 4 };

	core_access_ext(&access, &frame, 7, 9, head, sizeof(head));
	cr_assert_eq(frame.op, 7);
	cr_assert_eq(frame.ext_len, sizeof(head));
	cr_assert_arr_eq(frame.ext, head, sizeof(head));
	access.sent = 9;
	core_access_ext(&access, &frame, 7, 1, head, sizeof(head));
	cr_assert_eq(frame.op, 7 | WIRE_F_DATA64);
	cr_assert_eq(frame.ext_len, 8 + sizeof(head));
	cr_assert_eq(frame.ext[0], access.data);
	cr_assert_arr_eq((uint8_t *)frame.ext + 8, head, sizeof(head));
	access.flags = 0;
	core_access_ext(&access, &frame, 7, 1, head, sizeof(head));
	cr_assert_eq(frame.op, 7);
}

/* ---- calls ---- */

static int call_result;
static struct core_access *restarted;

/** Implements ops->call: a response comes before it returns, and restarts the access. */
static int call(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max, void *op,
		unsigned flags)
{
	if (restarted) {
		cr_assert_eq(core_access_of(op), restarted);
		cr_assert_eq(restarted->calls, 1);
		cr_assert_eq(restarted->sent, restarted->len);
		restarted->calls--;
		restarted->sent = restarted->rma_off = restarted->rma_idx = 0;
	}
	return call_result;
}

static const struct core_chan_ops ops = { .call = call };

static struct core_access access_to(struct core_peer *peer, struct core_chan *chan)
{
	const struct fi_rma_iov rma[] = { { .len = 8 } };
	struct core_access access = access_over(rma, 1);

	*chan = (struct core_chan){ .ops = &ops };
	peer->chan = chan;
	access.op.peer = peer;
	return access;
}

Test(core_access, a_failed_call_changes_nothing)
{
	static struct core_peer peer;
	struct core_chan chan;
	struct core_access access = access_to(&peer, &chan), before = access;
	struct core_frame frame = { 0 };

	call_result = -FI_EAGAIN;
	cr_assert_eq(core_access_call(&access, &frame, 8, 0), -FI_EAGAIN);
	cr_assert_eq(memcmp(&access, &before, sizeof(access)), 0);
}

Test(core_access, the_last_call_sets_issued)
{
	static struct core_peer peer;
	struct core_chan chan;
	struct core_access access = access_to(&peer, &chan);
	struct core_frame frame = { 0 };

	call_result = 0;
	cr_assert_eq(core_access_call(&access, &frame, 7, 0), 0);
	cr_assert(!access.issued && access.sent == 7 && access.rma_off == 7 && access.calls == 1);
	cr_assert_eq(core_access_call(&access, &frame, 1, 0), 0);
	cr_assert(access.issued && access.calls == 2);
}

Test(core_access, an_early_response_may_restart_the_access)
{
	static struct core_peer peer;
	struct core_chan chan;
	struct core_access access = access_to(&peer, &chan);
	struct core_frame frame = { 0 };

	call_result = 0;
	restarted = &access;
	cr_assert_eq(core_access_call(&access, &frame, 8, 0), 0);
	cr_assert(!access.issued && access.calls == 0);
	cr_assert_eq(core_access_next(&access, 8), 8, "the whole range is left");
}

/* ---- responses ---- */

Test(core_access, a_status_is_an_error_number)
{
	cr_assert_eq(core_access_status(0), 0);
	cr_assert_eq(core_access_status(FI_EKEYREJECTED), -FI_EKEYREJECTED);
	cr_assert_eq(core_access_status(INT32_MAX), -INT32_MAX);
	cr_assert_eq(core_access_status((uint32_t)INT32_MAX + 1), -FI_EIO);
	cr_assert_eq(core_access_status(UINT32_MAX), -FI_EIO);
}

Test(core_access, a_response_outside_the_calls_is_refused)
{
	struct core_access access = { .fetches = true, .len = 8, .sent = 6 };
	uint8_t to[8] = { 0 };
	const uint8_t from[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct iovec iov = { .iov_base = to, .iov_len = sizeof(to) };
	const struct {
		uint64_t off;
		uint32_t len;
		int ret;
	} cases[] = {
		{ 0, 0, 0 },
		{ 0, 6, 0 },
		{ 6, 0, 0 },
		{ 5, 1, 0 },
		{ 6, 1, -FI_EIO },
		{ 7, 0, -FI_EIO },
		{ 0, 7, -FI_EIO },
		{ 5, 2, -FI_EIO },
		{ UINT64_MAX, 1, -FI_EIO },
		{ 1ull << 32, 0, -FI_EIO },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t got = access.got;
		int ret = core_access_take(&access, &iov, 1, cases[i].off, from, cases[i].len);

		cr_assert_eq(ret, cases[i].ret, "case %zu", i);
		cr_assert_eq(access.got, got + (ret ? 0 : cases[i].len));
	}
	cr_assert_eq(to[5], 1);
	cr_assert_eq(to[6], 0);
}

Test(core_access, a_write_accepts_no_bytes)
{
	struct core_access access = { .len = 8, .sent = 8 };
	const uint8_t from[1] = { 1 };

	cr_assert_eq(core_access_take(&access, NULL, 0, 0, from, 0), 0);
	cr_assert_eq(core_access_take(&access, NULL, 0, 0, from, 1), -FI_EIO);
}

Test(core_access, an_access_is_over_without_open_calls)
{
	for (unsigned bits = 0; bits < 8; bits++) {
		struct core_access access = { .issued = bits & 1,
					      .calls = !(bits & 2),
					      .posting = !(bits & 4) };

		cr_assert_eq(core_access_is_over(&access), bits == 7);
		cr_assert_eq(access.err, 0);
	}
}

Test(core_access, missing_bytes_are_an_error)
{
	struct core_access access = { .issued = true, .fetches = true, .len = 8, .got = 7 };

	cr_assert(core_access_is_over(&access));
	cr_assert_eq(access.err, -FI_EIO);
	access.err = -FI_EACCES;
	cr_assert(core_access_is_over(&access));
	cr_assert_eq(access.err, -FI_EACCES);
	access = (struct core_access){ .issued = true, .fetches = true, .len = 8, .got = 8 };
	cr_assert(core_access_is_over(&access));
	cr_assert_eq(access.err, 0);
}
