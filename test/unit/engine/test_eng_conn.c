/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that a transport receives during the life of a connection, and their order. (eng_conn.h) */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <netinet/in.h>
#include <string.h>

#include "eng_fixture.h"

/** Returns the recorded calls, reduced to `letters`. */
static const char *only(const char *letters)
{
	static char left[sizeof(fake_story)];
	size_t len = 0;

	for (const char *at = fake_story; *at; at++)
		if (strchr(letters, *at))
			left[len++] = *at;
	left[len] = '\0';
	return left;
}

static void meet(void)
{
	wholes_meet(&fake_transports_second, &fake_transports_second);
	cr_assert_eq(fake_calls('a'), 2);
	memset(fake_story, 0, sizeof(fake_story));
}

Test(eng_conn, a_connection_is_made_reported_and_freed_once_at_each_end, .timeout = 200)
{
	meet();
	whole_close_chan(&wholes[0]);
	cr_expect_str_eq(fake_story, "sf", "nothing had gone wrong");
	wholes_until(&wholes[1].down);
	cr_expect_str_eq(fake_story, "sfdxsf", "the peer drains, ends, and closes");
	cr_expect_eq(wholes[1].err, -FI_ESHUTDOWN);
	wholes_close();
}

Test(eng_conn, a_failed_connection_receives_nothing_and_is_reported_once, .timeout = 200)
{
	struct eng_conn *conn;

	meet();
	conn = eng_conn_of(wholes[0].chan);
	eng_conn_fail(conn, -FI_EIO);
	eng_conn_fail(conn, -FI_ENOMEM);
	cr_expect_eq(conn->err, -FI_EIO);
	cr_expect(eng_has_events(wholes[0].engine));
	whole_progress(&wholes[0]);
	cr_expect_str_eq(fake_story, "xsf");
	cr_expect_eq(wholes[0].down, 1);
	cr_expect_eq(wholes[0].err, -FI_EIO);
	wholes_until(&wholes[1].down);
	cr_expect_eq(wholes[1].err, -FI_EIO, "the peer receives the error");
	wholes_close();
}

Test(eng_conn, a_failed_connection_with_a_dead_peer_ends_once, .timeout = 200)
{
	struct eng_conn *conn;

	meet();
	conn = eng_conn_of(wholes[0].chan);
	eng_conn_fail(conn, -FI_EIO);
	eng_conn_down(conn, -FI_ECONNRESET);
	cr_expect_str_eq(fake_story, "xsf");
	whole_progress(&wholes[0]);
	cr_expect_eq(wholes[0].down, 1);
	cr_expect_eq(wholes[0].err, -FI_EIO, "the first reason counts");
	wholes_until(&wholes[1].down);
	wholes_close();
}

/* A buffer is given back when core is notified. */
Test(eng_conn, a_failure_is_reported_once_the_peer_cannot_write_any_more, .timeout = 200)
{
	struct eng_conn *conn;

	meet();
	conn = eng_conn_of(wholes[0].chan);
	fake_cfg.peer_writes = true;
	eng_conn_fail(conn, -FI_EIO);
	whole_progress(&wholes[0]);
	whole_progress(&wholes[0]);
	cr_expect_str_eq(fake_story, "w", "asked once, then the transport calls");
	eng_conn_down(conn, -FI_ECONNRESET);
	cr_expect_str_eq(fake_story, "ww");
	cr_expect_eq(wholes[0].down, 0);
	fake_cfg.peer_writes = false;
	eng_conn_withdrawn(conn);
	whole_progress(&wholes[0]);
	cr_expect_str_eq(fake_story, "wwxsf");
	cr_expect_eq(wholes[0].down, 1);
	cr_expect_eq(wholes[0].err, -FI_EIO);
	wholes_until(&wholes[1].down);
	wholes_close();
}

Test(eng_conn, a_channel_whose_peer_writes_is_failed_instead_of_closed, .timeout = 200)
{
	struct core_chan *chan;

	meet();
	chan = wholes[0].chan;
	cr_expect(eng_chan_withdraw(chan));
	fake_cfg.peer_writes = true;
	cr_expect(!eng_chan_withdraw(chan));
	cr_expect_eq(eng_conn_of(chan)->err, -FI_ECONNABORTED);
	fake_cfg.peer_writes = false;
	whole_progress(&wholes[0]);
	cr_expect_eq(wholes[0].down, 1);
	wholes_until(&wholes[1].down);
	wholes_close();
}

Test(eng_conn, a_channel_that_core_fails_goes_down, .timeout = 200)
{
	meet();
	eng_chan_fail(wholes[0].chan, -FI_ETIMEDOUT);
	eng_chan_fail(wholes[0].chan, -FI_EIO);
	cr_expect_eq(wholes[0].down, 0);
	whole_progress(&wholes[0]);
	cr_expect_eq(wholes[0].down, 1);
	cr_expect_eq(wholes[0].err, -FI_ETIMEDOUT);
	wholes_until(&wholes[1].down);
	cr_expect_eq(wholes[1].err, -FI_EIO, "a peer that lives is notified");
	wholes_close();
}

Test(eng_conn, drain_keeps_a_connection_unless_it_failed, .timeout = 200)
{
	struct eng_conn *conn;

	meet();
	conn = eng_conn_of(wholes[0].chan);
	eng_chan_drain(&conn->chan);
	cr_expect_str_eq(fake_story, "d");
	eng_conn_fail(conn, -FI_EIO);
	eng_chan_drain(&conn->chan);
	cr_expect_str_eq(fake_story, "d", "nothing more is received");
	whole_progress(&wholes[0]);
	cr_expect_str_eq(fake_story, "dxsf");
	wholes_until(&wholes[1].down);
	wholes_close();
}

Test(eng_conn, stopping_keeps_the_memory_until_it_is_closed, .timeout = 200)
{
	struct core_chan *chan;

	meet();
	chan = wholes[0].chan;
	chan->ops->stop(chan);
	cr_expect_str_eq(fake_story, "s");
	chan->ops->stop(chan);
	cr_expect_str_eq(fake_story, "s");
	wholes_until(&wholes[1].down);
	memset(fake_story, 0, sizeof(fake_story));
	whole_close_chan(&wholes[0]);
	cr_expect_str_eq(fake_story, "f");
	wholes_close();
}

Test(eng_conn, a_failed_attach_is_a_failed_connect, .timeout = 200)
{
	fake_cfg.fail_attach = -FI_ENOMEM;
	whole_open(&wholes[0], &fake_transports_first);
	whole_open(&wholes[1], &fake_transports_first);
	wholes_connect();
	wholes_until(&wholes[0].failed);
	cr_expect_eq(wholes[0].err, -FI_ENOMEM);
	cr_expect_eq(wholes[0].up, 0);
	cr_expect_arr_eq(&wholes[0].failed_addr, &wholes[1].addr, sizeof(struct sockaddr_in));
	wholes_close();
	cr_expect_eq(fake_calls('f'), fake_calls('p'), "every connection made is freed");
	cr_expect_str_eq(only("dx"), "", "the channel was never reported");
}
