/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connects endpoints of -e msg: rank 0 listens and sends its address to the others, which connect.
 */
#include "ft_fab.h"
#include "ft_op.h"

#include <stdlib.h>
#include <string.h>

void ft_cm_listen(struct ft_fab *fab)
{
	FT_OK(fi_passive_ep(fab->fabric, fab->info, &fab->pep, NULL));
	FT_OK(fi_pep_bind(fab->pep, &fab->eq->fid, 0));
	FT_OK(fi_listen(fab->pep));
	fab->name_len = FT_NAME_LEN;
	FT_OK(fi_getname(&fab->pep->fid, fab->name[fab->ft->rank], &fab->name_len));
}

int ft_cm_event(struct ft_fab *fab, struct fi_eq_cm_entry *entry, size_t len, ssize_t *got,
		struct fi_eq_err_entry *err, double seconds)
{
	double end = ft_now() + seconds;
	struct fi_eq_err_entry unread = { 0 };
	uint32_t event = 0;
	ssize_t ret;

	do {
		ret = fi_eq_read(fab->eq, &event, entry, len, 0);
		if (ret == -FI_EAGAIN && fab->tx_cq)
			fi_cq_read(fab->tx_cq, NULL, 0);
	} while (ret == -FI_EAGAIN && ft_now() < end);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL) {
		err = err ? err : &unread;
		memset(err, 0, sizeof(*err));
		FT_CHECK(fi_eq_readerr(fab->eq, err, 0) > 0, "no error on the queue that has one");
		return -err->err;
	}
	FT_CHECK(ret > 0, "fi_eq_read: %zd (%s)", ret, ft_err_name(ret));
	if (got)
		*got = ret;
	return (int)event;
}

static void expect_event(struct ft_fab *fab, int want, struct fi_eq_cm_entry *entry)
{
	int event = ft_cm_event(fab, entry, sizeof(*entry), NULL, NULL, fab->ft->opts->limit / 2);

	FT_CHECK(event == want, "event %d (%s), expected %d", event,
		 event < 0 ? ft_err_name(event) : "an event", want);
}

static void objects_open(struct ft_fab *fab)
{
	FT_OK(fi_domain(fab->fabric, fab->info, &fab->domain, NULL));
	ft_fab_queues(fab);
}

static void eq_open(struct ft_fab *fab)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	FT_OK(fi_eq_open(fab->fabric, &attr, &fab->eq, NULL));
}

static void passive(struct ft_fab *fab)
{
	struct fi_eq_cm_entry entry;
	struct fid_eq *listen_eq;

	eq_open(fab);
	ft_cm_listen(fab);
	ft_tell(fab->ft, 1, fab->name[0], FT_NAME_LEN);
	ft_tell(fab->ft, 1, &fab->name_len, sizeof(fab->name_len));
	expect_event(fab, FI_CONNREQ, &entry);
	FT_CHECK(entry.fid == &fab->pep->fid, "FI_CONNREQ with another fid");
	FT_CHECK(entry.info && entry.info->handle, "FI_CONNREQ without info or handle");
	fi_freeinfo(fab->info);
	fab->info = entry.info;
	listen_eq = fab->eq;
	objects_open(fab);
	ft_fab_endpoint(fab);
	ft_fab_enable(fab);
	FT_OK(fi_accept(fab->ep, NULL, 0));
	expect_event(fab, FI_CONNECTED, &entry);
	FT_CHECK(entry.fid == &fab->ep->fid, "FI_CONNECTED with another fid");
	FT_CLOSE(fab->pep);
	FT_OK(fi_close(&listen_eq->fid));
}

static void active(struct ft_fab *fab)
{
	struct fi_eq_cm_entry entry;

	ft_hear(fab->ft, 0, fab->name[0], FT_NAME_LEN);
	ft_hear(fab->ft, 0, &fab->name_len, sizeof(fab->name_len));
	objects_open(fab);
	ft_fab_endpoint(fab);
	ft_fab_enable(fab);
	FT_OK(fi_connect(fab->ep, fab->name[0], NULL, 0));
	expect_event(fab, FI_CONNECTED, &entry);
	FT_CHECK(entry.fid == &fab->ep->fid, "FI_CONNECTED with another fid");
}

void ft_cm_join(struct ft_fab *fab)
{
	FT_OK(fi_fabric(fab->info->fabric_attr, &fab->fabric, NULL));
	if (fab->ft->rank == 0)
		passive(fab);
	else
		active(fab);
	for (int rank = 0; rank < FT_PROCS_MAX; rank++)
		fab->addr[rank] = FI_ADDR_UNSPEC;
	fab->ft->fab = fab;
	ft_sync(fab->ft);
}
