/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bytes.h"
#include "fake_dev.h"

TestSuite(m5_poll, .timeout = 200);

static struct fake_dev *f;
static struct fake_link *l;
static struct dev_event ev;

static void setup(bool attach)
{
	f = fake_dev_make();
	l = fake_link_make(f, 16, FAKE_QPN);
	if (attach)
		cr_assert_eq(m5_link_attach(&l->link.ib.base), 0);
}

static void teardown(void)
{
	fake_link_free(l);
	fake_dev_free(f);
}

static bool poll_one(void)
{
	memset(&ev, 0, sizeof(ev));
	return m5_dev_ops_inline.poll((struct dev *)&f->dev, &ev);
}

static void expect_imm(uint32_t imm)
{
	cr_assert(poll_one());
	cr_assert_eq(ev.kind, DEV_EV_IMM);
	cr_assert_eq(ev.link, &l->link.ib.base);
	cr_assert_eq(ev.imm, imm);
}

Test(m5_poll, an_arrival_returns_link_and_immediate)
{
	setup(true);
	cr_expect(!poll_one());
	fake_arrive(f, FAKE_QPN, 0, 0xdeadbeef);
	expect_imm(0xdeadbeef);
	cr_expect(!poll_one());
	teardown();
}

Test(m5_poll, arrivals_for_closed_links_are_dropped_and_counted)
{
	setup(true);
	fake_arrive(f, 0x42, 0, 1);
	fake_arrive(f, FAKE_QPN, 1, 2);
	expect_imm(2);
	cr_expect_eq(f->dev.stray_cnt, 1);
	teardown();
}

Test(m5_poll, receive_wqes_return_in_bulk_behind_the_consumer_index)
{
	unsigned i;

	setup(true);
	cr_expect_eq(be32toh(f->srq_record), 7);
	for (i = 0; i < 60; i++) {
		uint32_t before = be32toh(f->srq_record);

		fake_arrive(f, FAKE_QPN, (uint16_t)(i % 8), i);
		expect_imm(i);
		if (be32toh(f->srq_record) != before)
			cr_expect_eq(be32toh(f->rx.record[0]), i + 1);
	}
	cr_expect_eq(be32toh(f->srq_record), 7 + 60);
	teardown();
}

Test(m5_poll, arrivals_before_attach_are_returned_first)
{
	setup(false);
	util_list_push_back(&f->dev.waiting, &l->link.ib.cold);
	fake_arrive(f, FAKE_QPN, 0, 1);
	fake_arrive(f, FAKE_QPN, 1, 2);
	cr_expect(!poll_one());
	cr_expect_eq(f->dev.stray_cnt, 0);
	cr_assert_eq(m5_link_attach(&l->link.ib.base), 0);
	fake_arrive(f, FAKE_QPN, 2, 3);
	expect_imm(1);
	expect_imm(2);
	expect_imm(3);
	cr_expect(!poll_one());
	teardown();
}

Test(m5_poll, an_error_is_reported_once_and_ends_only_its_link)
{
	struct fake_link *other;

	setup(true);
	other = fake_link_make(f, 16, 0x77);
	cr_assert_eq(m5_link_attach(&other->link.ib.base), 0);
	cr_assert_eq(m5_link_ops_inline.write_imm(&l->link.ib.base, 0, 32, 1), 0);
	cq_device_write(&f->tx, 0xd0, 0x09000000 | FAKE_QPN, 0, 0);
	cq_device_at(&f->tx, 0)[55] = 0x15; /* retries exceeded */
	cq_device_write(&f->tx, 0xd0, 0x09000000 | FAKE_QPN, 0, 0);
	cq_device_at(&f->tx, 1)[55] = 0x05; /* flushed */
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_DOWN);
	cr_expect_eq(ev.link, &l->link.ib.base);
	cr_expect_eq(ev.status, -FI_ETIMEDOUT);
	cr_expect(!poll_one());
	fake_arrive(f, FAKE_QPN, 0, 1);
	cr_expect(!poll_one(), "no event follows");
	fake_arrive(f, 0x77, 1, 2);
	cr_assert(poll_one());
	cr_expect_eq(ev.link, &other->link.ib.base);
	fake_link_free(other);
	teardown();
}

Test(m5_poll, what_arrived_between_the_reads_of_the_two_queues_comes_before_the_end)
{
	setup(true);
	cr_assert_eq(m5_link_ops_inline.write_imm(&l->link.ib.base, 0, 32, 1), 0);
	fake_arrive(f, FAKE_QPN, 0, 5);
	cq_device_write(&f->tx, 0xd0, 0x09000000 | FAKE_QPN, 0, 0);
	cq_device_at(&f->tx, 0)[55] = 0x15; /* retries exceeded */
	/* A poll that found the receive queue empty goes on here. */
	cr_expect_not(m5_poll_sends(&f->dev, &ev));
	expect_imm(5);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_DOWN);
	cr_expect_eq(ev.status, -FI_ETIMEDOUT);
	cr_expect(!poll_one());
	teardown();
}

Test(m5_poll, error_of_a_receive_gives_its_wqe_back)
{
	setup(true);
	cq_device_write(&f->rx, 0xe0, FAKE_QPN, 3, 0);
	cq_device_at(&f->rx, 0)[55] = 0x11;
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_DOWN);
	cr_expect_eq(ev.status, -FI_EACCES);
	cr_expect_eq(f->dev.srq.free, 1);
	cr_expect_eq(f->dev.srq.tail, 3);
	teardown();
}

static void read_word(void)
{
	uint64_t value;

	cr_assert_eq(m5_link_read_consumer(&l->link.ib.base, &value), 0);
	cq_device_write(&f->tx, 0, 0x10000000 | FAKE_QPN, (uint16_t)(l->link.sq.pi - 1), 0);
}

Test(m5_poll, consumer_word_comes_from_the_buffer)
{
	uint64_t in_buffer = 0x1122334455667788;

	setup(true);
	read_word();
	memcpy(l->page, &in_buffer, 8);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_READ);
	cr_expect_eq(ev.value, in_buffer);
	teardown();
}

Test(m5_poll, the_end_of_a_get_returns_it_and_frees_its_room)
{
	struct ibv_mr mr = { .lkey = 5 };
	struct ib_user user = { .mr = &mr };
	uint8_t buf[64];
	struct iovec iov = { buf, sizeof(buf) };
	struct dev_get get = { .iov = &iov, .iov_cnt = 1, .len = 64, .status = -1 };

	setup(true);
	get.mem[0] = &user.base;
	cr_assert_eq(m5_link_get(&l->link.ib.base, &get), 0);
	cr_expect(!poll_one());
	cq_device_write(&f->tx, 0, 0x10000000 | FAKE_QPN, 0, 0);
	cr_assert(poll_one());
	cr_expect_eq(ev.kind, DEV_EV_GET);
	cr_expect_eq(ev.get, &get);
	cr_expect_eq(get.status, 0);
	cr_expect_eq(l->link.ib.reads_out, 0);
	cr_expect_eq(m5_sq_in_flight(&l->link.sq), 0);
	cr_expect_eq(be32toh(f->tx.record[0]), 1, "published");
	teardown();
}

Test(m5_poll, completion_for_room_is_no_event)
{
	unsigned i;

	setup(true);
	for (i = 0; i < 4; i++)
		cr_assert_eq(m5_link_ops_inline.write_imm(&l->link.ib.base, 0, 1024, 1), 0);
	cq_device_write(&f->tx, 0, 0x09000000 | FAKE_QPN, 3, 0);
	cr_expect(!poll_one());
	cr_expect_eq(m5_sq_in_flight(&l->link.sq), 0);
	teardown();
}

Test(m5_poll, completion_of_no_wqe_is_dropped_and_counted)
{
	setup(true);
	cq_device_write(&f->tx, 0, 0x09000000 | FAKE_QPN, 9, 0);
	cr_expect(!poll_one());
	cr_expect_eq(f->dev.stray_cnt, 1);
	teardown();
}

Test(m5_poll, send_queues_take_turns)
{
	struct cq_device more;
	struct m5_scq second = { 0 };
	struct fake_link *other;
	uint64_t value;

	setup(true);
	cq_device_init(&more, FAKE_CQES, 64, 0);
	second.cq = more.cq;
	other = fake_link_make(f, 16, 0x77);
	other->link.scq = &second;
	cr_assert_eq(m5_link_attach(&other->link.ib.base), 0);
	cr_expect_eq(f->dev.active_cnt, 2);
	cr_assert_eq(m5_link_read_consumer(&other->link.ib.base, &value), 0);
	cq_device_write(&more, 0, 0x10000077, 0, 0);
	cr_expect(poll_one() || poll_one());
	cr_expect_eq(ev.link, &other->link.ib.base);
	fake_link_free(other);
	teardown();
	cq_device_fini(&more);
}

/* Failure that only an asynchronous event reports. */
Test(m5_poll, a_link_failed_by_the_device_ends_once_after_early_arrivals)
{
	struct fake_dev *d = fake_dev_make();
	struct fake_link *a = fake_link_make(d, 16, FAKE_QPN);
	struct fake_link *b = fake_link_make(d, 16, FAKE_QPN + 1);
	struct dev_event event;

	util_list_push_back(&d->dev.waiting, &a->link.ib.cold);
	fake_arrive(d, FAKE_QPN, 0, 7);
	cr_assert(!m5_poll((struct dev *)&d->dev, &event));
	cr_assert_eq(m5_link_attach(&a->link.ib.base), 0);
	cr_assert_eq(m5_link_attach(&b->link.ib.base), 0);
	m5_link_fail(&a->link, -FI_ENETDOWN);
	m5_link_fail(&b->link, -FI_EIO);
	m5_link_fail(&b->link, -FI_ENETDOWN);
	cr_expect_eq(m5_link_write_imm(&a->link.ib.base, 0, 32, 1), -FI_EAGAIN);
	cr_assert(m5_poll((struct dev *)&d->dev, &event));
	cr_expect_eq(event.kind, DEV_EV_IMM);
	cr_expect_eq(event.imm, 7);
	cr_assert(m5_poll((struct dev *)&d->dev, &event));
	cr_expect_eq(event.kind, DEV_EV_DOWN);
	cr_expect_eq(event.status, -FI_ENETDOWN);
	cr_expect_eq(event.link, &a->link.ib.base);
	cr_assert(m5_poll((struct dev *)&d->dev, &event));
	cr_expect_eq(event.status, -FI_EIO, "status of the first error");
	cr_expect(!m5_poll((struct dev *)&d->dev, &event));
	cq_device_write(&d->tx, M5_CQE_REQ_ERR << 4, FAKE_QPN, 0, 0);
	cr_expect(!m5_poll((struct dev *)&d->dev, &event), "reported once");
	fake_link_free(b);
	fake_link_free(a);
	fake_dev_free(d);
}
