/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queue: each completion is read once, in order, however many there are. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_cq.h"
#include "unit/core/must.h"
#include "unit/core/no_memory.h"

static void write_one(struct core_cq *cq, uint64_t n)
{
	core_cq_write(cq, (void *)(uintptr_t)n, n + 1, n + 2, (void *)(uintptr_t)(n + 3), n + 4,
		      n + 5, n + 6);
}

static void read_one(struct core_cq *cq, uint64_t n)
{
	struct core_cqe *cqe = core_cq_front(cq);

	MUST(cqe);
	MUST(!cqe->err);
	MUST(cqe->e.op_context == (void *)(uintptr_t)n);
	MUST(cqe->e.flags == n + 1);
	MUST(cqe->e.len == n + 2);
	MUST(cqe->e.buf == (void *)(uintptr_t)(n + 3));
	MUST(cqe->e.data == n + 4);
	MUST(cqe->e.tag == n + 5);
	MUST(cqe->src == n + 6);
	cq->head++;
}

static void write_err(struct core_cq *cq, uint64_t n)
{
	char data[4] = "abc";
	struct fi_cq_err_entry err = {
		.op_context = (void *)(uintptr_t)n,
		.flags = FI_RECV,
		.len = n,
		.tag = n + 1,
		.olen = 9,
		.err = FI_ETRUNC,
		.prov_errno = 77,
		.err_data = data,
		.err_data_size = sizeof(data),
	};

	core_cq_write_err(cq, &err, n);
}

static void read_err(struct core_cq *cq, uint64_t n)
{
	struct fi_cq_err_entry err;

	MUST(core_cq_front(cq)->src == n);
	MUST(core_cq_read_err(cq, &err) == 1);
	MUST(err.op_context == (void *)(uintptr_t)n);
	MUST(err.flags == FI_RECV);
	MUST(err.len == n);
	MUST(err.tag == n + 1);
	MUST(err.olen == 9);
	MUST(err.err == FI_ETRUNC);
	MUST(err.prov_errno == 77);
	MUST(!err.err_data);
	MUST(err.err_data_size == 0);
}

Test(core_cq, a_queue_with_any_hint_accepts_any_number_of_completions)
{
	static const size_t hints[] = { 0, 1, 2, 15, 16, 17, 100, 65535, 65536, SIZE_MAX };

	for (size_t h = 0; h < sizeof(hints) / sizeof(hints[0]); h++) {
		struct core_cq cq;

		MUST(core_cq_init(&cq, hints[h]) == 0);
		MUST(core_cq_is_empty(&cq));
		MUST(!core_cq_front(&cq));
		for (uint64_t n = 0; n < 70000; n++)
			write_one(&cq, n);
		MUST(!core_cq_is_empty(&cq));
		for (uint64_t n = 0; n < 70000; n++)
			read_one(&cq, n);
		MUST(core_cq_is_empty(&cq));
		MUST(!cq.overrun);
		core_cq_fini(&cq);
	}
}

/* Grows with the oldest entry at each position of the array, while the counters overflow. */
Test(core_cq, growth_keeps_the_order_wherever_the_array_wraps)
{
	for (uint64_t start = 0; start < 40; start++) {
		uint64_t first = UINT64_MAX - 20 + start;
		struct core_cq cq;

		MUST(core_cq_init(&cq, 1) == 0);
		cq.head = first;
		cq.tail = first;
		cq.full = first;
		for (uint64_t n = 0; n < 5; n++)
			write_one(&cq, n);
		for (uint64_t n = 0; n < 3; n++)
			read_one(&cq, n);
		for (uint64_t n = 5; n < 200; n++)
			write_one(&cq, n);
		for (uint64_t n = 3; n < 200; n++)
			read_one(&cq, n);
		MUST(core_cq_is_empty(&cq));
		core_cq_fini(&cq);
	}
}

Test(core_cq, a_queue_that_is_read_in_time_never_grows)
{
	struct core_cq cq;
	uint64_t mask;

	MUST(core_cq_init(&cq, 16) == 0);
	mask = cq.mask;
	for (uint64_t n = 0; n <= mask; n++)
		write_one(&cq, n);
	for (uint64_t n = 0; n < 3 * mask; n++) {
		read_one(&cq, n);
		write_one(&cq, n + mask + 1);
	}
	MUST(cq.mask == mask);
	core_cq_fini(&cq);
}

Test(core_cq, failed_completions_keep_their_place)
{
	struct fi_cq_err_entry err;
	struct core_cq cq;

	MUST(core_cq_init(&cq, 0) == 0);
	MUST(core_cq_read_err(&cq, &err) == -FI_EAGAIN);
	for (uint64_t n = 0; n < 1000; n++) {
		if (n % 3)
			write_one(&cq, n);
		else
			write_err(&cq, n);
	}
	for (uint64_t n = 0; n < 1000; n++) {
		if (n % 3) {
			MUST(core_cq_read_err(&cq, &err) == -FI_EAGAIN);
			read_one(&cq, n);
		} else {
			read_err(&cq, n);
		}
	}
	core_cq_fini(&cq);
}

Test(core_cq, unread_failures_are_freed_with_the_queue)
{
	size_t before = mallinfo2().uordblks;
	struct core_cq cq;

	MUST(core_cq_init(&cq, 0) == 0);
	for (uint64_t n = 0; n < 300; n++)
		write_err(&cq, n);
	core_cq_fini(&cq);
	/* The allocator keeps a few. */
	MUST(mallinfo2().uordblks < before + 100 * sizeof(struct fi_cq_err_entry));
}

/* A mask so large that twice the array cannot be addressed. */
Test(core_cq, lack_of_memory_is_an_overrun_and_keeps_earlier_completions)
{
	struct core_cq cq;
	uint64_t mask, tail;

	MUST(core_cq_init(&cq, 0) == 0);
	write_one(&cq, 0);
	write_one(&cq, 1);
	mask = cq.mask;
	tail = cq.tail;
	cq.mask = UINT64_MAX >> 1;
	cq.tail = cq.head + cq.mask + 1;
	cq.full = cq.tail;
	write_one(&cq, 2);
	write_err(&cq, 3);
	MUST(cq.overrun);
	MUST(cq.tail == cq.head + cq.mask + 1);
	cq.mask = mask;
	cq.tail = tail;
	read_one(&cq, 0);
	read_one(&cq, 1);
	core_cq_fini(&cq);
}

Test(core_cq, a_failure_that_cannot_be_recorded_is_an_overrun)
{
	struct no_memory *taken;
	struct core_cq cq;

	if (!NO_MEMORY_WORKS)
		cr_skip("a sanitizer needs the memory itself");
	MUST(core_cq_init(&cq, 0) == 0);
	taken = no_memory_begin();
	write_one(&cq, 0);
	write_err(&cq, 1);
	no_memory_end(taken);
	MUST(cq.overrun);
	read_one(&cq, 0);
	MUST(core_cq_is_empty(&cq));
	core_cq_fini(&cq);
}

static int notified;

static void count_notify(struct core_cq *cq)
{
	MUST(!core_cq_is_empty(cq));
	notified++;
}

Test(core_cq, each_completion_calls_notify)
{
	struct core_cq cq;

	MUST(core_cq_init(&cq, 0) == 0);
	write_one(&cq, 0);
	core_cq_set_notify(&cq, count_notify);
	write_one(&cq, 1);
	write_err(&cq, 2);
	MUST(notified == 2);
	core_cq_fini(&cq);
}

Test(core_cq, the_page_has_all_completions_after_the_end)
{
	struct copyrpc_stats_queue *row;
	struct fi_cq_err_entry err = { .err = FI_EIO }, nothing = { .err = FI_ENOMSG };
	struct core_cq cq;

	cr_assert_eq(core_cq_init(&cq, 16), 0);
	row = cq.stats;
	cr_assert_not_null(row);
	cr_expect_eq(row->row.state, COPYRPC_STATS_LIVE);
	for (int i = 0; i < 99; i++)
		core_cq_write(&cq, NULL, 0, 0, NULL, 0, 0, 0);
	core_cq_write_err(&cq, &err, 0);
	core_cq_write_err(&cq, &nothing, 0);
	cq.head += 40;
	core_cq_show(&cq);
	cr_expect_eq(row->completions, 101);
	cr_expect_eq(row->failed, 1);
	cr_expect_eq(row->unread, 61);
	cr_expect_eq(row->room, 128);
	core_cq_write(&cq, NULL, 0, 0, NULL, 0, 0, 0);
	core_cq_fini(&cq);
	cr_expect_eq(row->row.state, COPYRPC_STATS_ENDED);
	cr_expect_eq(row->completions, 102);
}
