/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every call that sends or receives, on connected endpoints: fi_msg(3), fi_tagged(3), and fi_cm(3)
 * after the end.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/ofi/conn_fixture.h"

#define TAG  7
#define DATA 5

static struct conn_world w;
static struct fid_ep *ep[2];

static void setup(void)
{
	conn_world_open(&w, OFI_API);
	conn_listen(&w);
	conn_pair(&w, ep);
}

static void teardown(void)
{
	conn_close(&ep[0]->fid);
	conn_close(&ep[1]->fid);
	conn_world_close(&w);
}

TestSuite(cpr_conn_xfer, .init = setup, .fini = teardown);

/** Addresses that are ignored. */
static const fi_addr_t nowhere[] = { FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL, 0, 1, 99 };

enum how { PLAIN, V, MSG, INJECT, WITH_DATA, INJECT_DATA, HOW };

static ssize_t send_it(enum how how, bool tagged, char *text, size_t len, fi_addr_t to)
{
	struct iovec iov[2] = { { text, 1 }, { text + 1, len - 1 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .addr = to, .context = text };
	struct fi_msg_tagged t = {
		.msg_iov = iov, .iov_count = 2, .addr = to, .tag = TAG, .context = text
	};

	switch (how) {
	case PLAIN:
		return tagged ? fi_tsend(ep[0], text, len, NULL, to, TAG, text)
			      : fi_send(ep[0], text, len, NULL, to, text);
	case V:
		return tagged ? fi_tsendv(ep[0], iov, NULL, 2, to, TAG, text)
			      : fi_sendv(ep[0], iov, NULL, 2, to, text);
	case MSG:
		return tagged ? fi_tsendmsg(ep[0], &t, FI_COMPLETION)
			      : fi_sendmsg(ep[0], &m, FI_COMPLETION);
	case INJECT:
		return tagged ? fi_tinject(ep[0], text, len, to, TAG)
			      : fi_inject(ep[0], text, len, to);
	case WITH_DATA:
		return tagged ? fi_tsenddata(ep[0], text, len, NULL, DATA, to, TAG, text)
			      : fi_senddata(ep[0], text, len, NULL, DATA, to, text);
	case INJECT_DATA:
		return tagged ? fi_tinjectdata(ep[0], text, len, DATA, to, TAG)
			      : fi_injectdata(ep[0], text, len, DATA, to);
	case HOW: break;
	}
	return -1;
}

static ssize_t recv_it(enum how how, bool tagged, char *room, size_t len, fi_addr_t from)
{
	struct iovec iov[2] = { { room, 2 }, { room + 2, len - 2 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .addr = from, .context = room };
	struct fi_msg_tagged t = {
		.msg_iov = iov, .iov_count = 2, .addr = from, .tag = TAG, .context = room
	};

	switch (how) {
	case PLAIN:
		return tagged ? fi_trecv(ep[1], room, len, NULL, from, TAG, 0, room)
			      : fi_recv(ep[1], room, len, NULL, from, room);
	case V:
		return tagged ? fi_trecvv(ep[1], iov, NULL, 2, from, TAG, 0, room)
			      : fi_recvv(ep[1], iov, NULL, 2, from, room);
	default:
		return tagged ? fi_trecvmsg(ep[1], &t, FI_COMPLETION)
			      : fi_recvmsg(ep[1], &m, FI_COMPLETION);
	}
}

/** Expects the completion of one receive and, unless it was injected, of one send. */
static void both_end(enum how how, bool tagged, char *text, char *room)
{
	bool left = how == INJECT || how == INJECT_DATA, came = false;
	bool data = how == WITH_DATA || how == INJECT_DATA;
	struct fi_cq_tagged_entry e;

	while (!left || !came) {
		cr_assert_eq(ofi_read(w.cq, &e), 1);
		if (e.flags & FI_SEND) {
			cr_assert_eq(e.op_context, text);
			cr_assert_not(left);
			left = true;
			continue;
		}
		cr_assert_not(came);
		came = true;
		cr_expect_eq(e.op_context, room);
		cr_expect_eq(e.len, 6);
		cr_expect_eq(!!(e.flags & FI_TAGGED), tagged);
		cr_expect_eq(!!(e.flags & FI_MSG), !tagged);
		cr_expect_eq(!!(e.flags & FI_REMOTE_CQ_DATA), data);
		cr_expect(!data || e.data == DATA);
	}
}

Test(cpr_conn_xfer, transfers_ignore_the_address)
{
	char text[8] = "hello", room[8];

	for (unsigned i = 0; i < 2 * HOW * 5; i++) {
		enum how how = (enum how)(i / 2 % HOW);
		bool tagged = i % 2;
		fi_addr_t to = nowhere[i / 2 / HOW];

		memset(room, 0, sizeof(room));
		cr_assert_eq(recv_it(how % 3, tagged, room, 8, to), 0);
		cr_assert_eq(send_it(how, tagged, text, 6, to), 0, "%u", i);
		both_end(how, tagged, text, room);
		cr_expect_str_eq(room, "hello", "%u", i);
	}
}

Test(cpr_conn_xfer, after_shutdown_sends_are_refused_and_receives_complete)
{
	struct fi_cq_err_entry err;
	char text[8] = "late", room[8];

	cr_assert_eq(fi_shutdown(ep[0], 0), 0);
	cr_expect_eq(conn_event(&w), FI_SHUTDOWN);
	cr_expect_eq(conn_event(&w), FI_SHUTDOWN);
	for (unsigned i = 0; i < 2 * HOW; i++)
		cr_expect_eq(send_it((enum how)(i / 2), i % 2, text, 5, 0), -FI_ESHUTDOWN, "%u", i);
	for (unsigned i = 0; i < 6; i++) {
		memset(&err, 0, sizeof(err));
		cr_assert_eq(recv_it((enum how)(i / 2), i % 2, room, 8, FI_ADDR_UNSPEC), 0);
		cr_assert_eq(fi_cq_readerr(w.cq, &err, 0), 1, "%u", i);
		cr_expect_eq(err.op_context, room);
		cr_expect_eq(err.err, FI_ECANCELED);
	}
}
