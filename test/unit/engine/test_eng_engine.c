/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Selection and polling of transports, with whole engines and the handshake. (eng_engine.h) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "eng_fixture.h"
#include "support/ring_pair.h"
#include "util/param.h"

static const struct eng_transports direct = { .cnt = 1, .ops = { &ring_pair_direct_transport } };

static struct eng_transport *transport_of(const struct whole *w)
{
	return eng_conn_of(w->chan)->transport;
}

static void send_and_see(struct whole *from, struct whole *to)
{
	struct iovec iov = { .iov_base = "some", .iov_len = 4 };
	struct core_frame frame = ring_frame(1, &iov);

	to->msgs = 0;
	cr_assert_eq(from->chan->ops->send(from->chan, &frame, 0), 0);
	wholes_until(&to->msgs);
	cr_expect_eq(to->msgs, 1);
}

Test(eng_engine, two_engines_connect_and_exchange_messages, .timeout = 200)
{
	wholes_meet(&direct, &direct);
	send_and_see(&wholes[0], &wholes[1]);
	/* One end closes: the other is notified once, and can close its channel. */
	whole_close_chan(&wholes[0]);
	wholes_until(&wholes[1].down);
	cr_expect_eq(wholes[1].err, -FI_ESHUTDOWN);
	wholes_close();
}

Test(eng_engine, an_endpoint_may_close_in_the_middle_of_a_handshake, .timeout = 200)
{
	for (unsigned i = 0; i < 20; i++) {
		memset(wholes, 0, sizeof(wholes));
		whole_open(&wholes[0], &direct);
		whole_open(&wholes[1], &direct);
		wholes_connect();
		usleep(100 * i);
		whole_close(&wholes[i % 2]);
		whole_close(&wholes[!(i % 2)]);
	}
}

Test(eng_engine, engines_on_a_nic_connect_by_datagrams, .timeout = 200)
{
	wholes_meet(&ring_pair_transports_nic, &ring_pair_transports_nic);
	cr_expect_eq(transport_of(&wholes[0])->ops, &ring_pair_nic_transport);
	send_and_see(&wholes[0], &wholes[1]);
	send_and_see(&wholes[1], &wholes[0]);
	whole_close_chan(&wholes[0]);
	wholes_until(&wholes[1].down);
	cr_expect_eq(wholes[1].err, -FI_ESHUTDOWN);
	wholes_close();
}

Test(eng_engine, the_first_common_transport_is_used, .timeout = 200)
{
	wholes_meet(&ring_pair_transports_both, &ring_pair_transports_both);
	cr_expect_eq(transport_of(&wholes[0]), eng_transport_at(wholes[0].engine, 0));
	cr_expect_eq(transport_of(&wholes[1]), eng_transport_at(wholes[1].engine, 0));
	send_and_see(&wholes[0], &wholes[1]);
	wholes_close();
}

Test(eng_engine, a_transport_that_one_end_lacks_is_not_used, .timeout = 200)
{
	wholes_meet(&ring_pair_transports_both, &ring_pair_transports_nic);
	cr_expect_eq(transport_of(&wholes[0]), eng_transport_at(wholes[0].engine, 1));
	send_and_see(&wholes[0], &wholes[1]);
	send_and_see(&wholes[1], &wholes[0]);
	wholes_close();
}

Test(eng_engine, memory_of_connections_counts_against_the_budget, .timeout = 200)
{
	const struct ring_conn *conn;

	wholes_meet(&ring_pair_transports_nic, &ring_pair_transports_nic);
	conn = ring_conn_of(wholes[0].chan);
	cr_expect_eq(wholes[0].engine->mem, conn->link->rx_len + conn->link->tx_len);
	cr_expect_eq(eng_mem_left(wholes[0].engine), util_params.mem - wholes[0].engine->mem);
	whole_close_chan(&wholes[0]);
	cr_expect_eq(wholes[0].engine->mem, 0);
	wholes_until(&wholes[1].down);
	wholes_close();
}

Test(eng_engine, a_link_that_goes_down_ends_its_connection_and_the_pair_reconnects, .timeout = 200)
{
	wholes_meet(&ring_pair_transports_nic, &ring_pair_transports_nic);
	fake_link_of(ring_conn_of(wholes[0].chan)->link)->down = -FI_EIO;
	wholes_until(&wholes[0].down);
	cr_expect_eq(wholes[0].err, -FI_EIO);
	wholes_until(&wholes[1].down);
	wholes[0].up = wholes[1].up = 0;
	wholes_connect();
	wholes_until(&wholes[0].up);
	wholes_until(&wholes[1].up);
	send_and_see(&wholes[0], &wholes[1]);
	wholes_close();
}

/* ---- fake transports ---- */

static struct core_engine *open_fake(const struct eng_transports *transports)
{
	static const struct core_upcalls none;
	struct core_engine *engine;

	cr_assert_eq(eng_open(transports, &none, &engine), 0);
	return engine;
}

Test(eng_engine, a_device_that_fails_to_open_is_skipped_if_another_opens)
{
	static const struct core_upcalls none;
	struct core_engine *engine;

	fake_cfg.fail_open[0] = -FI_ENODEV;
	engine = open_fake(&fake_transports_both);
	cr_expect_eq(engine->transport_cnt, 1);
	cr_expect_eq(eng_transport_at(engine, 0)->ops, &fake_transport_ops[1]);
	eng_close(&engine->base);
	cr_expect_eq(eng_open(&fake_transports_first, &none, &engine), -FI_ENODEV);
	fake_cfg.fail_open[1] = -FI_EMFILE;
	cr_expect_eq(eng_open(&fake_transports_both, &none, &engine), -FI_EMFILE);
}

Test(eng_engine, only_transports_with_connections_are_polled, .timeout = 200)
{
	wholes_meet(&fake_transports_both, &fake_transports_second);
	whole_progress(&wholes[0]);
	cr_expect_eq(fake_polls[0], 0);
	cr_expect_gt(fake_polls[1], 0);
	whole_close_chan(&wholes[0]);
	wholes_until(&wholes[1].down);
	fake_polls[1] = 0;
	whole_progress(&wholes[0]);
	whole_progress(&wholes[1]);
	cr_expect_eq(fake_polls[1], 0);
	wholes_close();
}

/** Connects over the transport behind the first one. */
static void meet_behind(void)
{
	wholes_meet(&fake_transports_both, &fake_transports_second);
	fake_polls[0] = fake_polls[1] = 0;
}

Test(eng_engine, transports_behind_the_first_are_a_standing_event_while_connected, .timeout = 200)
{
	struct core_engine *engine;

	meet_behind();
	engine = wholes[0].engine;
	cr_expect(eng_has_attention(engine));
	cr_expect_not(eng_has_events(engine));
	eng_progress_cold(engine);
	cr_expect_eq(fake_polls[0], 0, "the first one is the caller's");
	cr_expect_eq(fake_polls[1], 1);
	cr_expect(eng_has_attention(engine));
	cr_expect_not(eng_has_attention(wholes[1].engine), "there it is the first one");
	whole_close_chan(&wholes[0]);
	cr_expect_not(eng_has_attention(engine));
	wholes_until(&wholes[1].down);
	wholes_close();
}

Test(eng_engine, a_standing_event_permits_sleep_and_a_busy_transport_does_not, .timeout = 200)
{
	struct core_engine *engine;

	meet_behind();
	engine = wholes[0].engine;
	cr_expect_eq(eng_arm(&engine->base), 0);
	cr_expect_eq(fake_polls[0], 1, "an idle transport is polled before a sleep");
	cr_expect_eq(fake_polls[1], 0);
	eng_disarm(&engine->base);
	fake_cfg.busy = true;
	cr_expect_eq(eng_arm(&engine->base), -FI_EAGAIN);
	whole_close_chan(&wholes[0]);
	wholes_until(&wholes[1].down);
	wholes_close();
}
