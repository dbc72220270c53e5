/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of event channels: events arrive in order, once each, and poll() reports them. */
#include "unit/model/kernel/border_bench.h"

#include "model/kernel/krn_chan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

TestSuite(krn_chan, .init = border_setup, .fini = border_teardown);

static bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static int open_chan(enum krn_chan_kind kind, uint32_t *index)
{
	int fd = krn_chan_open(kind, index);

	cr_assert_geq(fd, 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/*
 * Raises more events than a socket holds datagrams. All arrive, and the descriptor stays readable
 * until then.
 */
Test(krn_chan, more_events_than_a_socket_holds)
{
	uint32_t index;
	int fd = open_chan(KRN_CHAN_COMP, &index);
	uint64_t element;

	for (int lap = 0; lap < 3; lap++) {
		cr_expect_not(readable(fd));
		for (uint64_t i = 1; i <= MDL_CHAN_DEPTH; i++)
			cr_assert(krn_chan_push(index, i, 0, 1));
		cr_expect_not(krn_chan_push(index, 9, 0, 1), "it is full");
		for (uint64_t i = 1; i <= MDL_CHAN_DEPTH; i++) {
			cr_assert(readable(fd));
			cr_assert_eq(krn_chan_read(fd, index, &element, sizeof(element)), 8);
			cr_assert_eq(element, i);
		}
		cr_expect_eq(krn_chan_read(fd, index, &element, sizeof(element)), -EAGAIN);
	}
}

Test(krn_chan, async_events_have_a_type)
{
	struct ib_uverbs_async_event_desc desc;
	uint32_t index;
	int fd = open_chan(KRN_CHAN_ASYNC, &index);

	krn_chan_push(index, 0x1234, 3, 1);
	cr_expect_eq(krn_chan_read(fd, index, &desc, sizeof(desc)), sizeof(desc));
	cr_expect_eq(desc.element, 0x1234);
	cr_expect_eq(desc.event_type, 3);
}

Test(krn_chan, events_of_an_object_that_goes_are_not_read)
{
	uint32_t index;
	int fd = open_chan(KRN_CHAN_COMP, &index);
	uint64_t element;

	krn_chan_push(index, 1, 0, 5 | KRN_ABOUT_CQ);
	krn_chan_push(index, 2, 0, 6 | KRN_ABOUT_CQ);
	krn_chan_push(index, 3, 0, 5 | KRN_ABOUT_CQ);
	krn_chan_push(index, 4, 0, 5 | KRN_ABOUT_QP);
	cr_expect_eq(krn_chan_purge(index, 5 | KRN_ABOUT_CQ), 2);
	cr_expect_eq(krn_chan_read(fd, index, &element, sizeof(element)), 8);
	cr_expect_eq(element, 2);
	cr_expect_eq(krn_chan_read(fd, index, &element, sizeof(element)), 8);
	cr_expect_eq(element, 4);
	cr_expect_eq(krn_chan_read(fd, index, &element, sizeof(element)), -EAGAIN);
}

/* DESTROY_CQ reports the events that were read, so that libibverbs waits for no other. */
Test(krn_chan, a_cq_counts_the_events_that_were_read)
{
	uint32_t ctx = border_open(), number = border_cq(ctx, 15), index;
	struct ib_uverbs_destroy_cq req = { .cq_handle = number };
	struct ib_uverbs_destroy_cq_resp resp;
	struct mdl_cq *cq = mdl_cq_find(number);
	int fd = open_chan(KRN_CHAN_COMP, &index);
	uint64_t element;

	cq->chan = index;
	for (int i = 0; i < 5; i++)
		krn_cq_event(cq);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(krn_chan_read(fd, index, &element, sizeof(element)), 8);
	cr_expect_eq(element, 77, "the cookie of the CQ");
	krn_cq_async(cq, 0);
	cr_assert_gt(border_command(ctx, IB_USER_VERBS_CMD_DESTROY_CQ, &req, sizeof(req), NULL, 0,
				    &resp, sizeof(resp)),
		     0);
	cr_expect_eq(resp.comp_events_reported, 2);
	cr_expect_eq(resp.async_events_reported, 0);
}

/* Events that did not fit are not counted either. */
Test(krn_chan, an_event_that_found_no_room_is_none)
{
	uint32_t ctx = border_open(), number = border_cq(ctx, 15), index;
	struct ib_uverbs_destroy_cq req = { .cq_handle = number };
	struct ib_uverbs_destroy_cq_resp resp;
	struct mdl_cq *cq = mdl_cq_find(number);
	int fd = open_chan(KRN_CHAN_COMP, &index);
	uint64_t element;

	cq->chan = index;
	for (int i = 0; i < MDL_CHAN_DEPTH + 5; i++) {
		krn_cq_event(cq);
		krn_cq_async(cq, 0);
	}
	for (int i = 0; i < MDL_CHAN_DEPTH; i++)
		cr_assert_eq(krn_chan_read(fd, index, &element, sizeof(element)), 8);
	cr_assert_gt(border_command(ctx, IB_USER_VERBS_CMD_DESTROY_CQ, &req, sizeof(req), NULL, 0,
				    &resp, sizeof(resp)),
		     0);
	cr_expect_eq(resp.comp_events_reported, MDL_CHAN_DEPTH);
	cr_expect_eq(resp.async_events_reported, 0);
}

/* Another channel reuses the entry of a closed one. Calls with the old number do not touch it. */
Test(krn_chan, a_stale_channel_number_has_no_effect)
{
	uint32_t gone, here, other;
	int old = open_chan(KRN_CHAN_ASYNC, &gone), fd, fd2;
	uint64_t element;

	krn_chan_release(gone);
	fd = open_chan(KRN_CHAN_COMP, &here);
	cr_assert_eq(here % MDL_CHAN_MAX, gone % MDL_CHAN_MAX, "the same place");
	krn_chan_release(gone);
	cr_expect_not(krn_chan_push(gone, 1, 0, 5));
	cr_expect(krn_chan_push(here, 2, 0, 5));
	cr_expect_eq(krn_chan_purge(gone, 5), 0);
	fd2 = open_chan(KRN_CHAN_ASYNC, &other);
	cr_expect_neq(other % MDL_CHAN_MAX, here % MDL_CHAN_MAX, "it is taken");
	cr_expect_not(readable(fd2));
	cr_expect(readable(fd));
	cr_expect_eq(krn_chan_read(fd, here, &element, sizeof(element)), 8);
	cr_expect_eq(element, 2);
	close(old);
}
