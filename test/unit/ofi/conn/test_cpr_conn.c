/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connected endpoints: fi_cm(3), fi_eq(3), fi_endpoint(3). */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/ofi/conn_fixture.h"

static struct conn_world w;
static struct fid_ep *ep[2];

static void setup(void)
{
	conn_world_open(&w, OFI_API);
	conn_listen(&w);
}

static void teardown(void)
{
	conn_world_close(&w);
}

TestSuite(cpr_conn, .init = setup, .fini = teardown);

static void close_pair(void)
{
	conn_close(&ep[0]->fid);
	conn_close(&ep[1]->fid);
}

static void expect_received(void *context, size_t len, uint64_t flag)
{
	struct fi_cq_tagged_entry e;

	do {
		cr_assert_eq(ofi_read(w.cq, &e), 1);
	} while (!(e.flags & FI_RECV));
	cr_expect_eq(e.op_context, context);
	cr_expect_eq(e.len, len);
	cr_expect(e.flags & flag);
}

Test(cpr_conn, requests_and_replies_carry_data_of_every_length)
{
	static const size_t lens[] = { 0, 1, CONN_DATA_MAX - 1, CONN_DATA_MAX };
	char data[CONN_DATA_MAX];

	memset(data, 'q', sizeof(data));
	for (size_t i = 0; i < 4; i++) {
		ep[0] = conn_ep(&w, w.info);
		cr_assert_eq(fi_connect(ep[0], &w.addr, data, lens[i]), 0);
		cr_assert_eq(conn_event(&w), FI_CONNREQ);
		cr_expect_eq(w.entry.fid, &w.pep->fid);
		cr_expect_eq(w.data_len, lens[i]);
		cr_expect_arr_eq(w.entry.data, data, lens[i]);
		ep[1] = conn_ep(&w, w.entry.info);
		fi_freeinfo(w.entry.info);
		cr_assert_eq(fi_accept(ep[1], data, lens[i]), 0);
		for (int k = 0; k < 2; k++) {
			cr_assert_eq(conn_event(&w), FI_CONNECTED);
			cr_expect_null(w.entry.info);
			cr_expect_eq(w.data_len, w.entry.fid == &ep[0]->fid ? lens[i] : 0);
		}
		close_pair();
	}
}

Test(cpr_conn, more_data_than_fits_is_refused)
{
	char data[CONN_DATA_MAX + 1] = { 0 };
	size_t max = 0, len = sizeof(max);

	ep[0] = conn_ep(&w, w.info);
	cr_expect_eq(fi_getopt(&ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &max, &len), 0);
	cr_expect_eq(max, CONN_DATA_MAX);
	len = 4;
	cr_expect_eq(fi_getopt(&ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &max, &len),
		     -FI_ETOOSMALL);
	cr_expect_eq(fi_connect(ep[0], &w.addr, data, sizeof(data)), -FI_EINVAL);
	conn_close(&ep[0]->fid);
	cr_expect(conn_is_quiet(&w));
}

Test(cpr_conn, receives_may_come_first_and_sends_may_not)
{
	char in[8];

	ep[0] = conn_ep(&w, w.info);
	cr_expect_eq(fi_recv(ep[0], in, 8, NULL, 0, NULL), -FI_EOPBADSTATE, "before fi_enable");
	cr_assert_eq(fi_enable(ep[0]), 0);
	cr_assert_eq(fi_recv(ep[0], in, 8, NULL, 0, in), 0);
	cr_expect_eq(fi_send(ep[0], in, 1, NULL, 0, NULL), -FI_ENOTCONN);
	cr_expect_eq(fi_inject(ep[0], in, 1, 0), -FI_ENOTCONN);
	cr_expect_eq(fi_shutdown(ep[0], 0), -FI_ENOTCONN);
	conn_close(&ep[0]->fid);
}

Test(cpr_conn, getpeer_returns_the_peers_own_name)
{
	struct sockaddr_in own, peer;
	size_t len;

	conn_pair(&w, ep);
	for (int i = 0; i < 2; i++) {
		len = sizeof(own);
		cr_assert_eq(fi_getname(&ep[i]->fid, &own, &len), 0);
		cr_assert_eq(fi_getpeer(ep[!i], &peer, &len), 0);
		cr_expect_arr_eq(&own, &peer, sizeof(own));
	}
	cr_expect_arr_eq(&own, &w.addr, sizeof(own), "accepted: the listener's");
	len = 3;
	cr_expect_eq(fi_getpeer(ep[0], &peer, &len), -FI_ETOOSMALL);
	cr_expect_eq(len, sizeof(own));
	close_pair();
}

Test(cpr_conn, shutdown_is_reported_once_after_all_messages)
{
	char in[4][8];
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };

	conn_pair(&w, ep);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(fi_recv(ep[1], in[i], 8, NULL, 0, in[i]), 0);
	cr_assert_eq(fi_inject(ep[0], "1", 2, 0), 0);
	cr_assert_eq(fi_inject(ep[0], "2", 2, 0), 0);
	cr_assert_eq(fi_shutdown(ep[0], 0), 0);
	cr_expect_eq(fi_shutdown(ep[0], 0), 0, "it is over already");
	cr_expect_eq(conn_event(&w), FI_SHUTDOWN);
	cr_expect_eq(conn_event(&w), FI_SHUTDOWN);
	expect_received(in[0], 2, FI_MSG);
	expect_received(in[1], 2, FI_MSG);
	cr_assert_eq(fi_cq_read(w.cq, &e, 1), -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(w.cq, &err, 0), 1);
	cr_expect_eq(err.err, FI_ECANCELED);
	cr_expect_eq(err.op_context, in[2]);
	cr_expect_eq(fi_send(ep[1], "x", 1, NULL, 0, NULL), -FI_ESHUTDOWN);
	cr_expect_eq(fi_send(ep[0], "x", 1, NULL, 0, NULL), -FI_ESHUTDOWN);
	cr_assert_eq(fi_recv(ep[1], in[3], 8, NULL, 0, in[3]), 0);
	cr_assert_eq(fi_cq_readerr(w.cq, &err, 0), 1, "a receive that comes too late");
	cr_expect_eq(err.op_context, in[3]);
	close_pair();
	cr_expect(conn_is_quiet(&w));
}

Test(cpr_conn, closing_an_endpoint_shuts_down_the_connection)
{
	conn_pair(&w, ep);
	conn_close(&ep[0]->fid);
	cr_expect_eq(conn_event(&w), FI_SHUTDOWN);
	cr_expect_eq(w.entry.fid, &ep[1]->fid);
	conn_close(&ep[1]->fid);
	cr_expect(conn_is_quiet(&w));
}

Test(cpr_conn, connecting_without_a_listener_is_refused)
{
	ep[0] = conn_ep(&w, w.info);
	conn_close(&w.pep->fid);
	w.pep = NULL;
	cr_assert_eq(fi_connect(ep[0], &w.addr, NULL, 0), 0);
	cr_expect_eq(conn_event(&w), -1);
	cr_expect_eq(w.err.err, FI_ECONNREFUSED);
	cr_expect_eq(w.err.fid, &ep[0]->fid);
	cr_expect_eq(w.err.err_data_size, 0);
	cr_expect_eq(fi_connect(ep[0], &w.addr, NULL, 0), -FI_EISCONN, "once in its lifetime");
	conn_close(&ep[0]->fid);
}

Test(cpr_conn, invalid_calls_are_refused)
{
	struct fid_av *av;
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = 7 };

	cr_assert_eq(fi_endpoint(w.domain, w.info, &ep[0], NULL), 0);
	cr_expect_eq(fi_enable(ep[0]), -FI_ENOEQ);
	cr_assert_eq(fi_av_open(w.domain, &attr, &av, NULL), 0);
	cr_expect_eq(fi_ep_bind(ep[0], &av->fid, 0), -FI_EINVAL);
	conn_close(&av->fid);
	conn_close(&ep[0]->fid);
	ep[0] = conn_ep(&w, w.info);
	cr_expect_eq(fi_connect(ep[0], NULL, NULL, 0), -FI_EINVAL);
	cr_expect_eq(fi_connect(ep[0], &in6, NULL, 0), -FI_EINVAL);
	cr_expect_eq(fi_accept(ep[0], NULL, 0), -FI_EINVAL, "no request");
	cr_expect_eq(fi_shutdown(ep[0], 1), -FI_EBADFLAGS);
	conn_close(&ep[0]->fid);
}

Test(cpr_conn, a_receive_posted_to_a_closed_endpoint_is_refused)
{
	char in[8];

	for (int i = 0; i < 3; i++) {
		conn_pair(&w, ep);
		close_pair();
		cr_expect_eq(fi_recv(ep[0], in, 8, NULL, 0, NULL), -FI_EOPBADSTATE);
		cr_expect_eq(fi_send(ep[1], in, 8, NULL, 0, NULL), -FI_EOPBADSTATE);
	}
}
