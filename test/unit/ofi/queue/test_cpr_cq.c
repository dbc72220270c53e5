/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues (fi_cq(3)): formats, errors, waiting. The messages go through the endpoints. */
#include "ofi/queue/cpr_cq.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/clock.h"

static struct ofi_pair p;

static void open_pair(enum fi_cq_format format, enum fi_wait_obj wait_obj)
{
	struct ofi_options opts = { .format = format,
				    .wait_obj = wait_obj,
				    .caps = FI_MSG | FI_TAGGED | FI_SOURCE };

	ofi_pair_open(&p, &opts);
}

/* Sends one tagged message with data from endpoint 0 to endpoint 1, which has a receive for it. */
static void send_one(void *ctx)
{
	static char out[5] = "hello", in[16];

	cr_assert_eq(fi_trecv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0xAB, 0, ctx), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tinjectdata(p.ep[0], out, 5, 0x1234, p.addr[1], 0xAB)), 0);
}

Test(cpr_cq, each_format_is_a_prefix_of_the_tagged_entry)
{
	static const struct {
		enum fi_cq_format format;
		size_t len;
	} formats[] = { { FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
			{ FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
			{ FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
			{ FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) } };
	union {
		struct fi_cq_tagged_entry e;
		uint8_t bytes[sizeof(struct fi_cq_tagged_entry) + 8];
	} got;
	size_t i, b;

	for (i = 0; i < 4; i++) {
		open_pair(formats[i].format, FI_WAIT_NONE);
		send_one(&i);
		memset(&got, 0xEE, sizeof(got));
		cr_assert_eq(ofi_read(p.cq[1], &got), 1);
		cr_expect_eq(got.e.op_context, &i);
		for (b = formats[i].len; b < sizeof(got.bytes); b++)
			cr_expect_eq(got.bytes[b], 0xEE, "format %zu writes byte %zu", i, b);
		if (formats[i].format != FI_CQ_FORMAT_TAGGED) {
			ofi_pair_close(&p);
			continue;
		}
		cr_expect_eq(got.e.len, 5);
		cr_expect_eq(got.e.tag, 0xAB);
		cr_expect_eq(got.e.data, 0x1234);
		cr_expect_eq(got.e.flags & (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA),
			     FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
		ofi_pair_close(&p);
	}
}

Test(cpr_cq, readfrom_names_the_sender)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src = 99;
	ssize_t ret;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	send_one(NULL);
	while ((ret = fi_cq_readfrom(p.cq[1], &e, 1, &src)) == -FI_EAGAIN)
		;
	cr_expect_eq(ret, 1);
	cr_expect_eq(src, p.addr[0]);
	ofi_pair_close(&p);
}

Test(cpr_cq, several_completions_come_in_one_read)
{
	struct fi_cq_tagged_entry e[8];
	char c = 0;
	int i;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	for (i = 0; i < 4; i++)
		cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], &c, 1, NULL, p.addr[0], 1, &e[i])), 0);
	cr_expect_eq(fi_cq_read(p.cq[0], e, 3), 3);
	cr_expect_eq(fi_cq_read(p.cq[0], e, 8), 1);
	cr_expect_eq(fi_cq_read(p.cq[0], e, 8), -FI_EAGAIN);
	ofi_pair_close(&p);
}

Test(cpr_cq, count_zero_makes_progress_and_takes_nothing)
{
	struct fi_cq_tagged_entry e;
	char c = 0;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	cr_expect_eq(fi_cq_read(p.cq[0], NULL, 0), -FI_EAGAIN);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], &c, 1, NULL, p.addr[0], 1, NULL)), 0);
	cr_expect_eq(fi_cq_read(p.cq[0], NULL, 0), 0);
	cr_expect_eq(fi_cq_read(p.cq[0], &e, 1), 1);
	ofi_pair_close(&p);
}

Test(cpr_cq, a_queue_holds_whatever_completes)
{
	struct fi_cq_tagged_entry e[64];
	char c = 0;
	ssize_t ret;
	int i, got = 0;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	for (i = 0; i < 3000; i++)
		cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], &c, 1, NULL, p.addr[0], 1, NULL)), 0);
	while ((ret = fi_cq_read(p.cq[0], e, 64)) > 0)
		got += (int)ret;
	cr_expect_eq(got, 3000);
	ofi_pair_close(&p);
}

/* Cancels a receive: one failed completion. */
static void cancel_one(void *ctx)
{
	static char in[4];

	cr_assert_eq(fi_trecv(p.ep[1], in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, ctx), 0);
	cr_assert_eq(fi_cancel(&p.ep[1]->fid, ctx), 0);
}

Test(cpr_cq, a_failed_operation_stops_reads_until_its_error_is_read)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	char buf[64];
	int ctx;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	cr_expect_eq(fi_cq_readerr(p.cq[1], &err, 0), -FI_EAGAIN);
	cancel_one(&ctx);
	cr_expect_eq(fi_cq_read(p.cq[1], &e, 1), -FI_EAVAIL);
	cr_expect_eq(fi_cq_read(p.cq[1], NULL, 0), -FI_EAVAIL);
	cr_expect_eq(fi_cq_readerr(p.cq[1], &err, 0), 1);
	cr_expect_eq(err.err, FI_ECANCELED);
	cr_expect_eq(err.op_context, &ctx);
	cr_expect_str_eq(fi_cq_strerror(p.cq[1], err.prov_errno, err.err_data, buf, sizeof(buf)),
			 "The receive was cancelled");
	cr_expect_eq(fi_cq_read(p.cq[1], &e, 1), -FI_EAGAIN);
	cr_expect_eq(fi_cq_readerr(p.cq[1], &err, 0), -FI_EAGAIN);
	ofi_pair_close(&p);
}

Test(cpr_cq, err_data_of_the_user_is_not_replaced)
{
	struct fi_cq_err_entry err = { 0 };
	char mine[8];

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	cancel_one(&p);
	err.err_data = mine;
	err.err_data_size = sizeof(mine);
	cr_expect_eq(fi_cq_readerr(p.cq[1], &err, 0), 1);
	cr_expect_eq(err.err_data, mine);
	cr_expect_eq(err.err_data_size, 0);
	ofi_pair_close(&p);
}

/*
 * Words of an error entry that a program of this API version has: 1.5 added err_data_size, 1.20
 * src_addr. A program's struct ends there, whatever header the provider was built with.
 */
static void expect_words_written(uint32_t api, size_t words)
{
	struct ofi_options opts = { .api = api };
	union {
		struct fi_cq_err_entry e;
		uint64_t word[16];
	} err;

	ofi_pair_open(&p, &opts);
	cancel_one(&p);
	memset(&err, 0x5a, sizeof(err));
	cr_expect_eq(p.cq[1]->ops->readerr(p.cq[1], &err.e, 0), 1);
	cr_expect_eq(err.e.err, FI_ECANCELED);
	cr_expect_neq(err.word[words - 1], 0x5a5a5a5a5a5a5a5a, "word %zu", words - 1);
	for (size_t i = words; i < 16; i++)
		cr_expect_eq(err.word[i], 0x5a5a5a5a5a5a5a5a, "word %zu", i);
	if (words == 11)
		cr_expect_eq(err.word[10], FI_ADDR_NOTAVAIL);
	ofi_pair_close(&p);
}

Test(cpr_cq, an_error_entry_is_as_long_as_the_api_version_has_it)
{
	expect_words_written(FI_VERSION(1, 4), 9);
	expect_words_written(FI_VERSION(1, 5), 10);
	expect_words_written(FI_VERSION(1, 19), 10);
	expect_words_written(FI_VERSION(1, 20), 11);
	expect_words_written(FI_VERSION(2, 0), 11);
}

Test(cpr_cq, sread_needs_a_wait_object)
{
	struct ofi_options opts = { 0 };
	struct fi_cq_attr attr = { 0 };
	struct fi_cq_tagged_entry e;
	enum fi_wait_obj obj;
	struct fid_cq *cq;
	int fd;

	ofi_domain_open(&p, &opts);
	attr.wait_obj = FI_WAIT_NONE;
	cr_assert_eq(fi_cq_open(p.domain, &attr, &cq, NULL), 0);
	cr_expect_eq(fi_cq_sread(cq, &e, 1, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_cq_signal(cq), -FI_ENOSYS);
	cr_expect_eq(fi_control(&cq->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
	cr_expect_eq(fi_close(&cq->fid), 0);
	attr.wait_obj = FI_WAIT_FD;
	cr_assert_eq(fi_cq_open(p.domain, &attr, &cq, NULL), 0);
	cr_expect_eq(fi_control(&cq->fid, FI_GETWAIT, &fd), 0);
	cr_expect_geq(fd, 0);
	cr_expect_eq(fi_control(&cq->fid, FI_GETWAITOBJ, &obj), 0);
	cr_expect_eq(obj, FI_WAIT_FD);
	cr_expect_eq(fi_close(&cq->fid), 0);
	ofi_pair_close(&p);
}

Test(cpr_cq, sizes_from_zero_to_65536_open_in_every_format)
{
	struct ofi_options opts = { 0 };
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cq *cq;

	ofi_domain_open(&p, &opts);
	for (attr.size = 0; attr.size <= 65536; attr.size = attr.size ? attr.size * 2 : 1) {
		attr.format = (enum fi_cq_format)(attr.size % 5);
		cr_assert_eq(fi_cq_open(p.domain, &attr, &cq, NULL), 0, "size %zu", attr.size);
		cr_expect_eq(fi_close(&cq->fid), 0);
	}
	ofi_pair_close(&p);
}

Test(cpr_cq, sread_returns_what_is_there_or_waits_its_time)
{
	struct fi_cq_tagged_entry e;
	uint64_t t0;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, 0), -FI_EAGAIN);
	t0 = util_clock_ns();
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, 30), -FI_EAGAIN);
	cr_expect_geq(util_clock_ns() - t0, 30 * UTIL_NS_PER_MS);
	send_one(&e);
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, 60000), 1);
	cr_expect_eq(e.op_context, &e);
	ofi_pair_close(&p);
}

Test(cpr_cq, a_signal_before_sread_ends_it_once)
{
	struct fi_cq_tagged_entry e;
	uint64_t t0 = util_clock_ns();

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
	cr_expect_eq(fi_cq_signal(p.cq[0]), 0);
	cr_expect_eq(fi_cq_sread(p.cq[0], &e, 1, NULL, 100000), -FI_EAGAIN);
	cr_expect_lt(util_clock_ns() - t0, 100 * UTIL_NS_PER_S);
	t0 = util_clock_ns();
	cr_expect_eq(fi_cq_sread(p.cq[0], &e, 1, NULL, 30), -FI_EAGAIN);
	cr_expect_geq(util_clock_ns() - t0, 30 * UTIL_NS_PER_MS);
	ofi_pair_close(&p);
}

static void *signal_later(void *arg)
{
	usleep(30000);
	fi_cq_signal(arg);
	return NULL;
}

Test(cpr_cq, a_signal_ends_sread_without_a_time)
{
	struct fi_cq_tagged_entry e;
	pthread_t thread;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC);
	pthread_create(&thread, NULL, signal_later, p.cq[0]);
	cr_expect_eq(fi_cq_sread(p.cq[0], &e, 1, NULL, -1), -FI_EAGAIN);
	pthread_join(thread, NULL);
	ofi_pair_close(&p);
}

Test(cpr_cq, a_signal_handler_ends_sread, .timeout = 60)
{
	struct fi_cq_tagged_entry e;
	struct ofi_kicker kicker;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_FD);
	ofi_kicker_start(&kicker);
	cr_expect_eq(fi_cq_sread(p.cq[0], &e, 1, NULL, -1), -FI_EAGAIN);
	ofi_kicker_stop(&kicker);
	ofi_pair_close(&p);
}

static void *send_later(void *arg)
{
	usleep(30000);
	send_one(arg);
	return NULL;
}

Test(cpr_cq, a_message_of_another_thread_ends_sread)
{
	struct ofi_options opts = { .wait_obj = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE };
	struct fi_cq_tagged_entry e;
	pthread_t thread;

	ofi_pair_open(&p, &opts);
	pthread_create(&thread, NULL, send_later, &e);
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, 60000), 1);
	cr_expect_eq(e.op_context, &e);
	pthread_join(thread, NULL);
	ofi_pair_close(&p);
}

Test(cpr_cq, a_threshold_is_waited_for_but_not_for_ever)
{
	struct ofi_options opts = { .wait_obj = FI_WAIT_UNSPEC, .wait_cond = FI_CQ_COND_THRESHOLD };
	struct fi_cq_tagged_entry e[4];
	uint64_t t0;
	ssize_t ret;
	char c = 0;

	ofi_pair_open(&p, &opts);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], &c, 1, NULL, p.addr[0], 1, NULL)), 0);
	/* The message may still be in flight when the time is over. */
	do {
		t0 = util_clock_ns();
		ret = fi_cq_sread(p.cq[0], e, 4, (void *)2, 30);
		cr_assert_geq(util_clock_ns() - t0, 30 * UTIL_NS_PER_MS);
	} while (ret == -FI_EAGAIN);
	cr_expect_eq(ret, 1);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], &c, 1, NULL, p.addr[0], 1, NULL)), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(p.ep[0], &c, 1, NULL, p.addr[0], 1, NULL)), 0);
	cr_expect_eq(fi_cq_sread(p.cq[0], e, 4, (void *)2, -1), 2);
	ofi_pair_close(&p);
}

Test(cpr_cq, the_descriptor_becomes_readable_when_something_completes)
{
	struct fi_cq_tagged_entry e;
	struct pollfd pfd = { .events = POLLIN };
	struct fid *fids[1];
	int i;

	open_pair(FI_CQ_FORMAT_TAGGED, FI_WAIT_FD);
	/* The first message connects. */
	send_one(&e);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_assert_eq(fi_control(&p.cq[1]->fid, FI_GETWAIT, &pfd.fd), 0);
	fids[0] = &p.cq[1]->fid;
	for (i = 0; i < 3; i++) {
		while (fi_trywait(p.fabric, fids, 1) == -FI_EAGAIN)
			fi_cq_read(p.cq[1], NULL, 0);
		cr_expect_eq(poll(&pfd, 1, 0), 0, "round %d: readable without a reason", i);
		send_one(&e);
		cr_expect_eq(poll(&pfd, 1, 5000), 1);
		cr_expect_eq(ofi_read(p.cq[1], &e), 1);
	}
	ofi_pair_close(&p);
}
