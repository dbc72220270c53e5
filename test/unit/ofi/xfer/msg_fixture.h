/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture for tests of message calls: a pair with buffers. One suite includes it. */
#ifndef MSG_FIXTURE_H
#define MSG_FIXTURE_H

#include <criterion/criterion.h>
#include <string.h>

#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;
static char in[64];
static char out[64] = "contents of the sender's buffer";

static void setup(void)
{
	struct ofi_options opts = { .bind_flags = FI_SELECTIVE_COMPLETION,
				    .rx_op_flags = FI_COMPLETION };

	ofi_pair_open(&p, &opts);
	memset(in, 0, sizeof(in));
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

/* Expects the first 20 bytes of `out` in `in`, with a completion of kind FI_MSG or FI_TAGGED. */
static void expect_arrived(int to, uint64_t kind, uint64_t want_data)
{
	struct fi_cq_tagged_entry arr = { 0 };

	cr_assert_eq(ofi_read(p.cq[to], &arr), 1);
	cr_expect_eq(arr.op_context, in);
	cr_expect_eq(arr.len, 20);
	cr_expect_arr_eq(in, out, 20);
	cr_expect_eq(in[20], 0);
	cr_expect_eq(arr.flags & (FI_RECV | FI_MSG | FI_TAGGED), FI_RECV | kind);
	cr_expect_eq(arr.tag, kind == FI_TAGGED ? 5 : 0);
	cr_expect_eq(!!(arr.flags & FI_REMOTE_CQ_DATA), want_data != 0);
	if (want_data)
		cr_expect_eq(arr.data, want_data);
}

/* Vectors of more than max_msg_size bytes together; the sums of two of them wrap to 20 and to 0. */
#define HALF (SIZE_MAX / 2 + 1)
static const struct {
	size_t cnt;
	struct iovec iov[3];
} oversized[] = {
	{ 1, { { out, HALF } } },
	{ 2, { { out, HALF / 2 }, { out, HALF / 2 } } },
	{ 2, { { out, 20 }, { out, HALF - 20 } } },
	{ 2, { { out, SIZE_MAX - 19 }, { out, 40 } } },
	{ 2, { { out, HALF }, { out, HALF } } },
	{ 3, { { out, HALF }, { out, HALF }, { out, 20 } } },
};
#define OVERSIZED_CNT (sizeof(oversized) / sizeof(oversized[0]))

#endif
