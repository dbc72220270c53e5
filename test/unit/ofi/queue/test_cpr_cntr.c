/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters (fi_cntr(3)). */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/clock.h"

static struct ofi_pair p;

static void open_pair(enum fi_wait_obj wait_obj)
{
	struct ofi_options opts = { .counters = true,
				    .wait_obj = wait_obj,
				    .threading = FI_THREAD_SAFE,
				    .bind_flags = FI_SELECTIVE_COMPLETION };

	ofi_pair_open(&p, &opts);
}

static void send_one(void)
{
	static char out[5] = "hello", in[16];

	cr_assert_eq(fi_trecv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], out, 5, p.addr[1], 1)), 0);
}

static uint64_t read_until(struct fid_cntr *cntr, uint64_t value)
{
	uint64_t end = util_clock_ns() + 60 * UTIL_NS_PER_S;
	uint64_t now;

	while ((now = fi_cntr_read(cntr)) < value && util_clock_ns() < end)
		;
	return now;
}

Test(cpr_cntr, add_and_set_change_values_and_errors_apart)
{
	open_pair(FI_WAIT_NONE);
	cr_expect_eq(fi_cntr_set(p.tx_cntr[0], 10), 0);
	cr_expect_eq(fi_cntr_add(p.tx_cntr[0], 5), 0);
	cr_expect_eq(fi_cntr_seterr(p.tx_cntr[0], 7), 0);
	cr_expect_eq(fi_cntr_adderr(p.tx_cntr[0], 1), 0);
	cr_expect_eq(fi_cntr_read(p.tx_cntr[0]), 15);
	cr_expect_eq(fi_cntr_readerr(p.tx_cntr[0]), 8);
	ofi_pair_close(&p);
}

Test(cpr_cntr, sends_and_receives_are_counted_without_completions)
{
	struct fi_cq_tagged_entry e;

	open_pair(FI_WAIT_NONE);
	send_one();
	send_one();
	cr_expect_eq(read_until(p.rx_cntr[1], 2), 2);
	cr_expect_eq(read_until(p.tx_cntr[0], 2), 2, "injected ones too");
	cr_expect_eq(fi_cntr_read(p.rx_cntr[0]), 0);
	cr_expect_eq(fi_cq_read(p.cq[1], &e, 1), -FI_EAGAIN);
	ofi_pair_close(&p);
}

/* A caller that sends, reads the change, and sends again, also receives. */
Test(cpr_cntr, reads_of_a_changing_counter_make_progress)
{
	static char out[5] = "hello", in[16];
	uint64_t end = util_clock_ns() + 60 * UTIL_NS_PER_S;
	uint64_t before;

	open_pair(FI_WAIT_NONE);
	send_one();
	cr_assert_eq(read_until(p.rx_cntr[1], 1), 1); /* connected */
	before = fi_cntr_read(p.rx_cntr[0]);
	cr_assert_eq(fi_trecv(p.ep[0], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[1], out, 5, p.addr[0], 1)), 0);
	while (memcmp(in, out, sizeof(out)) && util_clock_ns() < end) {
		cr_assert_eq(fi_cntr_add(p.tx_cntr[0], 1), 0);
		fi_cntr_read(p.tx_cntr[0]);
	}
	cr_expect_arr_eq(in, out, sizeof(out));
	cr_expect_eq(read_until(p.rx_cntr[0], before + 1), before + 1);
	ofi_pair_close(&p);
}

Test(cpr_cntr, a_read_returns_the_current_value)
{
	open_pair(FI_WAIT_NONE);
	for (uint64_t i = 1; i < 10; i++) {
		cr_assert_eq(fi_cntr_add(p.tx_cntr[0], 1), 0);
		cr_expect_eq(fi_cntr_read(p.tx_cntr[0]), i);
	}
	ofi_pair_close(&p);
}

Test(cpr_cntr, a_cancelled_receive_is_an_error)
{
	char in[4];
	int ctx;

	open_pair(FI_WAIT_NONE);
	cr_assert_eq(fi_trecv(p.ep[0], in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, &ctx), 0);
	cr_assert_eq(fi_cancel(&p.ep[0]->fid, &ctx), 0);
	cr_expect_eq(fi_cntr_readerr(p.rx_cntr[0]), 1);
	cr_expect_eq(fi_cntr_read(p.rx_cntr[0]), 0);
	ofi_pair_close(&p);
}

Test(cpr_cntr, wait_ends_at_the_threshold_or_in_time)
{
	uint64_t t0;

	open_pair(FI_WAIT_UNSPEC);
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 0, -1), 0);
	t0 = util_clock_ns();
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 1, 30), -FI_ETIMEDOUT);
	cr_expect_geq(util_clock_ns() - t0, 30 * UTIL_NS_PER_MS);
	send_one();
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 1, 60000), 0);
	ofi_pair_close(&p);
}

Test(cpr_cntr, a_signal_handler_does_not_end_a_wait)
{
	struct ofi_kicker kicker;
	uint64_t t0;

	open_pair(FI_WAIT_FD);
	ofi_kicker_start(&kicker);
	t0 = util_clock_ns();
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 1, 100), -FI_ETIMEDOUT);
	cr_expect_geq(util_clock_ns() - t0, 100 * UTIL_NS_PER_MS);
	ofi_kicker_stop(&kicker);
	ofi_pair_close(&p);
}

Test(cpr_cntr, wait_without_a_wait_object_polls)
{
	open_pair(FI_WAIT_NONE);
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 0, 0), 0);
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 1, 20), -FI_ETIMEDOUT);
	send_one();
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[1], 1, 60000), 0);
	ofi_pair_close(&p);
}

static void *add_error_later(void *arg)
{
	usleep(30000);
	fi_cntr_adderr(arg, 1);
	return NULL;
}

static void *add_later(void *arg)
{
	usleep(30000);
	fi_cntr_add(arg, 3);
	return NULL;
}

Test(cpr_cntr, an_error_and_an_addition_end_a_wait)
{
	pthread_t thread;

	open_pair(FI_WAIT_FD);
	pthread_create(&thread, NULL, add_error_later, p.rx_cntr[0]);
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[0], 1, 60000), -FI_EAVAIL);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, add_later, p.rx_cntr[0]);
	cr_expect_eq(fi_cntr_wait(p.rx_cntr[0], 3, 60000), 0);
	pthread_join(thread, NULL);
	ofi_pair_close(&p);
}
