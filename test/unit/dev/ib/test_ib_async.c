/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/ib/ib_async.h"

#include <criterion/criterion.h>

Test(ib_async, every_event_has_a_meaning)
{
	for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_GID_CHANGE; type++)
		cr_expect_str_neq(ib_async_meaning((enum ibv_event_type)type)->text,
				  "unknown event", "event %d", type);
	cr_expect_eq(ib_async_meaning((enum ibv_event_type)99)->what, IB_ASYNC_LOGGED);
	cr_expect_eq(ib_async_meaning((enum ibv_event_type) - 1)->what, IB_ASYNC_LOGGED);
}

/* Events that end links must be warnings; others must not end any. */
Test(ib_async, events_that_end_links_are_warnings)
{
	static const enum ibv_event_type all[] = { IBV_EVENT_CQ_ERR, IBV_EVENT_DEVICE_FATAL,
						   IBV_EVENT_SRQ_ERR };
	static const enum ibv_event_type one[] = { IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,
						   IBV_EVENT_QP_ACCESS_ERR };
	unsigned ends = 0;

	for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_GID_CHANGE; type++) {
		const struct ib_async_row *row = ib_async_meaning((enum ibv_event_type)type);

		if (row->what == IB_ASYNC_QP || row->what == IB_ASYNC_ALL) {
			ends++;
			cr_expect(row->is_warning, "event %d", type);
		}
	}
	cr_expect_eq(ends, 6);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(ib_async_meaning(all[i])->what, IB_ASYNC_ALL);
		cr_expect_eq(ib_async_meaning(one[i])->what, IB_ASYNC_QP);
	}
	cr_expect_eq(ib_async_meaning(IBV_EVENT_PORT_ERR)->what, IB_ASYNC_PORT_DOWN);
	cr_expect_eq(ib_async_meaning(IBV_EVENT_PORT_ACTIVE)->what, IB_ASYNC_PORT_UP);
	cr_expect_eq(ib_async_meaning(IBV_EVENT_LID_CHANGE)->what, IB_ASYNC_LID);
}

Test(ib_async, a_zeroed_device_has_no_event)
{
	struct ib_async async = { 0 };
	struct ib_async_event event;

	cr_expect(!ib_async_next(&async, &event));
	ib_async_fini(&async);
}

Test(ib_async, idle_polls_read_events_at_intervals)
{
	struct ib_async async = { .ticks = (uint32_t)-3 };
	unsigned due = 0;

	for (uint32_t i = 0; i < 4 * IB_ASYNC_TICKS; i++)
		due += ib_async_is_due(&async);
	cr_expect_eq(due, 4);
}

Test(ib_async, a_failed_device_stays_so_and_a_port_comes_back)
{
	struct ib_async async = { 0 };

	cr_expect_eq(ib_async_health(&async), 0);
	async.is_down = true;
	cr_expect_eq(ib_async_health(&async), -FI_ENETDOWN);
	async.has_failed = true;
	cr_expect_eq(ib_async_health(&async), -FI_EIO, "it must be opened again all the same");
}
