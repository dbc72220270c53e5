/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One endpoint for trials: see info_fab.h. */
#include "info/info_fab.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "util/clock.h"

#define INFO_FAB_VERSION FI_VERSION(1, 17)

/* Finds the description of the endpoint. */
static int info_fab_find(struct info_fab *fab, const char *domain, const char *node)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	fab->step = "fi_getinfo";
	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("copyrpc");
	hints->domain_attr->name = strdup(domain);
	ret = fi_getinfo(INFO_FAB_VERSION, node, NULL, node ? FI_SOURCE : 0, hints, &fab->info);
	fi_freeinfo(hints);
	return ret;
}

static int info_fab_open_objects(struct info_fab *fab)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret;

	fab->step = "fi_fabric";
	ret = fi_fabric(fab->info->fabric_attr, &fab->fabric, NULL);
	if (ret)
		return ret;
	fab->step = "fi_domain";
	ret = fi_domain(fab->fabric, fab->info, &fab->domain, NULL);
	if (ret)
		return ret;
	fab->step = "fi_av_open";
	ret = fi_av_open(fab->domain, &av, &fab->av, NULL);
	if (ret)
		return ret;
	fab->step = "fi_cq_open";
	ret = fi_cq_open(fab->domain, &cq, &fab->cq, NULL);
	if (ret)
		return ret;
	fab->step = "fi_endpoint";
	return fi_endpoint(fab->domain, fab->info, &fab->ep, NULL);
}

static int info_fab_enable(struct info_fab *fab)
{
	int ret = fi_ep_bind(fab->ep, &fab->av->fid, 0);

	if (!ret)
		ret = fi_ep_bind(fab->ep, &fab->cq->fid, FI_TRANSMIT | FI_RECV);
	fab->step = "fi_enable";
	if (!ret)
		ret = fi_enable(fab->ep);
	fab->name_len = sizeof(fab->name);
	if (!ret)
		ret = fi_getname(&fab->ep->fid, fab->name, &fab->name_len);
	return ret;
}

int info_fab_open(struct info_fab *fab, const char *domain, const char *node)
{
	int ret;

	memset(fab, 0, sizeof(*fab));
	fab->buf = calloc(2, INFO_FAB_LONG);
	if (!fab->buf)
		return -FI_ENOMEM;
	ret = info_fab_find(fab, domain, node);
	if (!ret)
		ret = info_fab_open_objects(fab);
	if (!ret)
		ret = info_fab_enable(fab);
	return ret;
}

int info_fab_connect(struct info_fab *fab, const void *name)
{
	fab->step = "fi_av_insert";
	return fi_av_insert(fab->av, name, 1, &fab->peer, 0, NULL) == 1 ? 0 : -FI_EINVAL;
}

/* Reads the completion that is due. Returns 0 or the error of the operation. */
static int info_fab_wait(struct info_fab *fab, uint64_t end_ns)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t got;

	do {
		got = fi_cq_read(fab->cq, &entry, 1);
		if (got != -FI_EAGAIN)
			break;
	} while (util_clock_ns() < end_ns);
	if (got == 1)
		return 0;
	if (got != -FI_EAVAIL)
		return got == -FI_EAGAIN ? -FI_ETIMEDOUT : (int)got;
	got = fi_cq_readerr(fab->cq, &error, 0);
	return got == 1 ? -error.err : (int)got;
}

static int info_fab_send(struct info_fab *fab, size_t len, uint64_t end_ns)
{
	ssize_t ret;

	fab->step = "send";
	do {
		ret = fi_tsend(fab->ep, fab->buf, len, NULL, fab->peer, 1, NULL);
		if (ret == -FI_EAGAIN)
			fi_cq_read(fab->cq, NULL, 0);
	} while (ret == -FI_EAGAIN && util_clock_ns() < end_ns);
	return ret ? (int)ret : info_fab_wait(fab, end_ns);
}

static int info_fab_recv(struct info_fab *fab, size_t len, uint64_t end_ns)
{
	ssize_t ret =
		fi_trecv(fab->ep, fab->buf + INFO_FAB_LONG, len, NULL, FI_ADDR_UNSPEC, 1, 0, NULL);

	fab->step = "receive";
	return ret ? (int)ret : info_fab_wait(fab, end_ns);
}

int info_fab_ping(struct info_fab *fab, bool first, size_t len, unsigned rounds, uint64_t *ns)
{
	uint64_t begin_ns = util_clock_ns(), now_ns;
	uint64_t end_ns = begin_ns + INFO_FAB_SECONDS * UTIL_NS_PER_S;
	int ret = 0;

	for (unsigned i = 0; i < rounds && !ret; i++) {
		ret = first ? info_fab_send(fab, len, end_ns) : info_fab_recv(fab, len, end_ns);
		if (!ret)
			ret = first ? info_fab_recv(fab, len, end_ns)
				    : info_fab_send(fab, len, end_ns);
		now_ns = util_clock_ns();
		ns[i] = (now_ns - begin_ns) / 2;
		begin_ns = now_ns;
	}
	return ret;
}

void info_fab_close(struct info_fab *fab)
{
	struct fid *const all[] = { fab->ep ? &fab->ep->fid : NULL, fab->cq ? &fab->cq->fid : NULL,
				    fab->av ? &fab->av->fid : NULL,
				    fab->domain ? &fab->domain->fid : NULL,
				    fab->fabric ? &fab->fabric->fid : NULL };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i])
			fi_close(all[i]);
	fi_freeinfo(fab->info);
	free(fab->buf);
	memset(fab, 0, sizeof(*fab));
}
