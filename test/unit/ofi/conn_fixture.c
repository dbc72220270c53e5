/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connected endpoints for tests: see conn_fixture.h. */
#include "unit/ofi/conn_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

void conn_close(struct fid *fid)
{
	cr_assert_eq(fi_close(fid), 0);
}

void conn_world_open(struct conn_world *w, uint32_t api)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_info *hints = ofi_hints();

	memset(w, 0, sizeof(*w));
	hints->ep_attr->type = FI_EP_MSG;
	cr_assert_eq(ofi_provider()->getinfo(api, NULL, NULL, 0, hints, &w->info), 0);
	fi_freeinfo(hints);
	w->info->fabric_attr->api_version = api;
	cr_assert_eq(ofi_provider()->fabric(w->info->fabric_attr, &w->fabric, NULL), 0);
	cr_assert_eq(fi_domain(w->fabric, w->info, &w->domain, NULL), 0);
	cr_assert_eq(fi_eq_open(w->fabric, &eq_attr, &w->eq, NULL), 0);
	cr_assert_eq(fi_cq_open(w->domain, &cq_attr, &w->cq, NULL), 0);
}

void conn_world_close(struct conn_world *w)
{
	if (w->pep)
		conn_close(&w->pep->fid);
	conn_close(&w->cq->fid);
	conn_close(&w->domain->fid);
	conn_close(&w->eq->fid);
	conn_close(&w->fabric->fid);
	fi_freeinfo(w->info);
}

void conn_listen(struct conn_world *w)
{
	size_t len = sizeof(w->addr);

	cr_assert_eq(fi_passive_ep(w->fabric, w->info, &w->pep, NULL), 0);
	cr_assert_eq(fi_pep_bind(w->pep, &w->eq->fid, 0), 0);
	cr_assert_eq(fi_listen(w->pep), 0);
	cr_assert_eq(fi_getname(&w->pep->fid, &w->addr, &len), 0);
}

struct fid_ep *conn_ep(struct conn_world *w, struct fi_info *info)
{
	struct fid_ep *ep;

	cr_assert_eq(fi_endpoint(w->domain, info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &w->eq->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &w->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	return ep;
}

int conn_event(struct conn_world *w)
{
	ssize_t ret = fi_eq_sread(w->eq, &w->event, &w->room, sizeof(w->room), 10000, 0);

	if (ret == -FI_EAVAIL) {
		memset(&w->err, 0, sizeof(w->err));
		w->err.err_data = w->err_data;
		w->err.err_data_size = sizeof(w->err_data);
		cr_assert_eq(fi_eq_readerr(w->eq, &w->err, 0), sizeof(w->err));
		return -1;
	}
	cr_assert_geq(ret, (ssize_t)sizeof(w->entry), "%zd", ret);
	w->data_len = (size_t)ret - sizeof(w->entry);
	return (int)w->event;
}

bool conn_is_quiet(struct conn_world *w)
{
	return fi_eq_sread(w->eq, &w->event, &w->room, sizeof(w->room), 30, 0) == -FI_EAGAIN;
}

void conn_pair(struct conn_world *w, struct fid_ep *ep[2])
{
	ep[0] = conn_ep(w, w->info);
	cr_assert_eq(fi_connect(ep[0], &w->addr, NULL, 0), 0);
	cr_assert_eq(conn_event(w), FI_CONNREQ);
	ep[1] = conn_ep(w, w->entry.info);
	fi_freeinfo(w->entry.info);
	cr_assert_eq(fi_accept(ep[1], NULL, 0), 0);
	cr_assert_eq(conn_event(w), FI_CONNECTED);
	cr_assert_eq(conn_event(w), FI_CONNECTED);
}
