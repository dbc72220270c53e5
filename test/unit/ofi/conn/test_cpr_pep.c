/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Passive endpoints and connection requests (fi_cm(3), fi_endpoint(3), fi_eq(3)). */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/ofi/conn_fixture.h"

static struct conn_world w;

static void setup(void)
{
	conn_world_open(&w, OFI_API);
}

static void teardown(void)
{
	conn_world_close(&w);
}

TestSuite(cpr_pep, .init = setup, .fini = teardown);

static struct fid_ep *call(const char *data)
{
	struct fid_ep *ep = conn_ep(&w, w.info);

	cr_assert_eq(fi_connect(ep, &w.addr, data, strlen(data)), 0);
	return ep;
}

Test(cpr_pep, a_rejection_carries_data_and_ends_the_request)
{
	struct fid_ep *ep, *other;
	struct fi_info *info;

	conn_listen(&w);
	ep = call("please");
	cr_assert_eq(conn_event(&w), FI_CONNREQ);
	info = w.entry.info;
	cr_expect_eq(fi_reject(w.pep, info->handle, "never", 5), 0);
	cr_expect_eq(fi_reject(w.pep, info->handle, "never", 5), -FI_EINVAL, "already replied to");
	cr_expect_eq(fi_endpoint(w.domain, w.info, &other, NULL), 0);
	conn_close(&other->fid);
	cr_expect_eq(conn_event(&w), -1);
	cr_expect_eq(w.err.err, FI_ECONNREFUSED);
	cr_expect_eq(w.err.err_data_size, 5);
	cr_expect_arr_eq(w.err_data, "never", 5);
	conn_close(&ep->fid);
	fi_freeinfo(info);
}

Test(cpr_pep, error_data_without_a_user_buffer_is_in_the_queue)
{
	struct fi_eq_err_entry err = { 0 };
	struct fid_ep *ep;

	conn_listen(&w);
	ep = call("");
	cr_assert_eq(conn_event(&w), FI_CONNREQ);
	cr_expect_eq(fi_reject(w.pep, w.entry.info->handle, "never", 5), 0);
	fi_freeinfo(w.entry.info);
	cr_assert_eq(fi_eq_sread(w.eq, &w.event, w.room, sizeof(w.room), 5000, 0), -FI_EAVAIL);
	cr_assert_eq(fi_eq_readerr(w.eq, &err, 0), sizeof(err));
	cr_expect_eq(err.err_data_size, 5);
	cr_expect_arr_eq(err.err_data, "never", 5);
	conn_close(&ep->fid);
}

Test(cpr_pep, a_short_buffer_cuts_only_the_data)
{
	struct fi_eq_cm_entry entry;
	struct fid_ep *ep;

	conn_listen(&w);
	ep = call("please");
	cr_expect_eq(fi_eq_sread(w.eq, &w.event, &entry, sizeof(entry) - 1, 5000, 0),
		     -FI_ETOOSMALL);
	cr_expect_eq(fi_eq_sread(w.eq, &w.event, w.room, sizeof(entry) + 3, 5000, FI_PEEK),
		     sizeof(entry) + 3);
	cr_expect_eq(fi_eq_sread(w.eq, &w.event, &entry, sizeof(entry), 5000, 0), sizeof(entry));
	cr_expect_eq(fi_reject(w.pep, entry.info->handle, NULL, 0), 0);
	fi_freeinfo(entry.info);
	conn_close(&ep->fid);
}

Test(cpr_pep, a_request_serves_one_endpoint)
{
	struct fid_ep *ep = NULL, *host, *second;

	conn_listen(&w);
	ep = call("");
	cr_assert_eq(conn_event(&w), FI_CONNREQ);
	cr_expect_eq(w.entry.info->dest_addrlen, sizeof(w.addr));
	host = conn_ep(&w, w.entry.info);
	cr_expect_eq(fi_endpoint(w.domain, w.entry.info, &second, NULL), -FI_EINVAL);
	cr_expect_eq(fi_reject(w.pep, w.entry.info->handle, NULL, 0), -FI_EINVAL);
	cr_expect_eq(fi_connect(host, &w.addr, NULL, 0), -FI_EINVAL, "opened to accept");
	fi_freeinfo(w.entry.info);
	conn_close(&host->fid);
	cr_expect_eq(conn_event(&w), -1, "closed without a reply");
	cr_expect_eq(w.err.err, FI_ECONNREFUSED);
	conn_close(&ep->fid);
}

Test(cpr_pep, closing_a_passive_endpoint_rejects_unread_requests)
{
	struct fid_ep *ep;

	conn_listen(&w);
	ep = call("");
	while (fi_eq_read(w.eq, &w.event, w.room, sizeof(w.room), FI_PEEK) < 0)
		;
	conn_close(&w.pep->fid);
	w.pep = NULL;
	cr_expect_eq(conn_event(&w), -1);
	cr_expect_eq(w.err.err, FI_ECONNREFUSED);
	conn_close(&ep->fid);
}

Test(cpr_pep, requests_outlive_the_passive_endpoint_but_not_the_fabric)
{
	struct fid_ep *ep, *host;

	conn_listen(&w);
	ep = call("");
	cr_assert_eq(conn_event(&w), FI_CONNREQ);
	conn_close(&w.pep->fid);
	w.pep = NULL;
	host = conn_ep(&w, w.entry.info);
	fi_freeinfo(w.entry.info);
	cr_expect_eq(fi_accept(host, NULL, 0), 0);
	cr_expect_eq(conn_event(&w), FI_CONNECTED);
	cr_expect_eq(conn_event(&w), FI_CONNECTED);
	conn_close(&ep->fid);
	conn_close(&host->fid);
	conn_listen(&w);
	ep = call("");
	cr_assert_eq(conn_event(&w), FI_CONNREQ);
	fi_freeinfo(w.entry.info); /* without a reply */
	conn_close(&ep->fid);
}

Test(cpr_pep, the_address_comes_from_info_or_setname_and_may_be_in_use)
{
	struct fid_pep *second;
	struct sockaddr_in sin;
	size_t len = sizeof(sin);

	cr_assert_eq(fi_passive_ep(w.fabric, w.info, &second, NULL), 0);
	cr_expect_eq(fi_listen(second), -FI_ENOEQ);
	cr_assert_eq(fi_pep_bind(second, &w.eq->fid, 0), 0);
	conn_listen(&w);
	cr_expect_neq(w.addr.sin_port, 0);
	cr_expect_eq(fi_setname(&w.pep->fid, &w.addr, sizeof(w.addr)), -FI_EOPBADSTATE);
	cr_expect_eq(fi_listen(w.pep), -FI_EOPBADSTATE);
	cr_assert_eq(fi_setname(&second->fid, &w.addr, sizeof(w.addr)), 0);
	cr_assert_eq(fi_getname(&second->fid, &sin, &len), 0);
	cr_expect_arr_eq(&sin, &w.addr, sizeof(sin));
	cr_expect_eq(fi_listen(second), -FI_EADDRINUSE);
	conn_close(&second->fid);
}

Test(cpr_pep, an_active_endpoint_may_take_its_address)
{
	struct sockaddr_in sin;
	struct fid_ep *ep;
	size_t len = sizeof(sin);
	struct fi_info *info;

	conn_listen(&w); /* a port that is free for datagrams */
	conn_close(&w.pep->fid);
	cr_assert_eq(fi_passive_ep(w.fabric, w.info, &w.pep, NULL), 0);
	cr_assert_eq(fi_setname(&w.pep->fid, &w.addr, sizeof(w.addr)), 0);
	info = fi_dupinfo(w.info);
	info->handle = &w.pep->fid;
	ep = conn_ep(&w, info);
	cr_assert_eq(fi_enable(ep), 0);
	cr_assert_eq(fi_getname(&ep->fid, &sin, &len), 0);
	cr_expect_arr_eq(&sin, &w.addr, sizeof(sin));
	cr_expect_eq(fi_listen(w.pep), -FI_EOPBADSTATE, "already used");
	conn_close(&ep->fid);
	fi_freeinfo(info);
}

Test(cpr_pep, the_backlog_can_be_set_until_it_listens)
{
	int backlog = 3, none = 0;

	cr_assert_eq(fi_passive_ep(w.fabric, w.info, &w.pep, NULL), 0);
	cr_expect_eq(fi_control(&w.pep->fid, FI_BACKLOG, &backlog), 0);
	cr_expect_eq(fi_control(&w.pep->fid, FI_BACKLOG, &none), -FI_EINVAL);
	cr_expect_eq(fi_control(&w.pep->fid, FI_GETWAIT, &none), -FI_ENOSYS);
}
