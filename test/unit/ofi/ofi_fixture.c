/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fabrics, domains and pairs of endpoints for tests: see ofi_fixture.h. */
#include "unit/ofi/ofi_fixture.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofi/cpr_prov.h"
#include "util/clock.h"

#define OFI_PATIENCE_NS (60 * UTIL_NS_PER_S)

struct fi_provider *ofi_provider(void)
{
	static struct fi_provider *prov;

	if (!prov)
		prov = fi_prov_ini();
	return prov;
}

int ofi_getinfo(const struct fi_info *hints, struct fi_info **info)
{
	return ofi_provider()->getinfo(OFI_API, NULL, NULL, 0, hints, info);
}

struct fi_info *ofi_hints(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct sockaddr_in *sin = calloc(1, sizeof(*sin));

	cr_assert(hints && sin);
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	hints->src_addr = sin;
	hints->src_addrlen = sizeof(*sin);
	return hints;
}

void ofi_domain_open(struct ofi_pair *p, const struct ofi_options *opts)
{
	uint32_t api = opts->api ? opts->api : OFI_API;
	struct fi_info *hints = ofi_hints();

	memset(p, 0, sizeof(*p));
	hints->caps = opts->caps;
	hints->mode = opts->mode;
	hints->ep_attr->type = opts->ep_type;
	hints->tx_attr->op_flags = opts->tx_op_flags;
	hints->rx_attr->op_flags = opts->rx_op_flags;
	hints->domain_attr->threading = opts->threading ? opts->threading : FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = opts->progress;
	hints->domain_attr->mr_mode = opts->mr_mode;
	cr_assert_eq(ofi_provider()->getinfo(api, NULL, NULL, 0, hints, &p->info), 0);
	fi_freeinfo(hints);
	p->info->fabric_attr->api_version = api; /* set by libfabric's core */
	cr_assert_eq(ofi_provider()->fabric(p->info->fabric_attr, &p->fabric, NULL), 0);
	cr_assert_eq(fi_domain(p->fabric, p->info, &p->domain, NULL), 0);
}

static void ofi_pair_open_cq(struct ofi_pair *p, const struct ofi_options *opts, int i)
{
	struct fi_cq_attr attr = {
		.format = opts->format ? opts->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = opts->wait_obj,
		.wait_cond = opts->wait_cond,
	};

	cr_assert_eq(fi_cq_open(p->domain, &attr, &p->cq[i], &p->cq[i]), 0);
}

static void ofi_pair_open_cntrs(struct ofi_pair *p, const struct ofi_options *opts, int i)
{
	struct fi_cntr_attr attr = { .wait_obj = opts->wait_obj };

	cr_assert_eq(fi_cntr_open(p->domain, &attr, &p->tx_cntr[i], NULL), 0);
	cr_assert_eq(fi_cntr_open(p->domain, &attr, &p->rx_cntr[i], NULL), 0);
	cr_assert_eq(fi_ep_bind(p->ep[i], &p->tx_cntr[i]->fid, FI_SEND), 0);
	cr_assert_eq(fi_ep_bind(p->ep[i], &p->rx_cntr[i]->fid, FI_RECV), 0);
}

static void ofi_pair_open_ep(struct ofi_pair *p, const struct ofi_options *opts, int i)
{
	struct sockaddr_in sin;
	size_t len = sizeof(sin);

	ofi_pair_open_cq(p, opts, i);
	cr_assert_eq(fi_endpoint(p->domain, p->info, &p->ep[i], NULL), 0);
	cr_assert_eq(fi_ep_bind(p->ep[i], &p->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(p->ep[i], &p->cq[i]->fid, FI_TRANSMIT | FI_RECV | opts->bind_flags),
		     0);
	if (opts->counters)
		ofi_pair_open_cntrs(p, opts, i);
	cr_assert_eq(fi_enable(p->ep[i]), 0);
	cr_assert_eq(fi_getname(&p->ep[i]->fid, &sin, &len), 0);
	cr_assert_eq(fi_av_insert(p->av, &sin, 1, &p->addr[i], 0, NULL), 1);
}

void ofi_pair_open(struct ofi_pair *p, const struct ofi_options *opts)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };

	ofi_domain_open(p, opts);
	cr_assert_eq(fi_av_open(p->domain, &attr, &p->av, NULL), 0);
	ofi_pair_open_ep(p, opts, 0);
	ofi_pair_open_ep(p, opts, 1);
}

static void ofi_close(struct fid *fid)
{
	cr_assert_eq(fi_close(fid), 0);
}

void ofi_pair_close(struct ofi_pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (p->ep[i])
			ofi_close(&p->ep[i]->fid);
		if (p->cq[i])
			ofi_close(&p->cq[i]->fid);
		if (p->tx_cntr[i])
			ofi_close(&p->tx_cntr[i]->fid);
		if (p->rx_cntr[i])
			ofi_close(&p->rx_cntr[i]->fid);
	}
	if (p->av)
		ofi_close(&p->av->fid);
	if (p->domain)
		ofi_close(&p->domain->fid);
	if (p->fabric)
		ofi_close(&p->fabric->fid);
	fi_freeinfo(p->info);
	memset(p, 0, sizeof(*p));
}

void ofi_pair_progress(struct ofi_pair *p)
{
	fi_cq_read(p->cq[0], NULL, 0);
}

ssize_t ofi_read(struct fid_cq *cq, void *entry)
{
	uint64_t end = util_clock_ns() + OFI_PATIENCE_NS;
	ssize_t ret;

	do {
		ret = fi_cq_read(cq, entry, 1);
	} while (ret == -FI_EAGAIN && util_clock_ns() < end);
	return ret;
}

struct fid_ep *ofi_pair_new_ep(struct ofi_pair *p, struct fid_cq *tx, struct fid_cq *rx)
{
	struct fid_ep *ep;

	cr_assert_eq(fi_endpoint(p->domain, p->info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &p->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &tx->fid, FI_TRANSMIT), 0);
	cr_assert_eq(fi_ep_bind(ep, &rx->fid, FI_RECV), 0);
	cr_assert_eq(fi_enable(ep), 0);
	return ep;
}

/* Both endpoints are in one domain: any read makes the progress of both. */
ssize_t ofi_pair_read(struct ofi_pair *p, int which, void *entry)
{
	return ofi_read(p->cq[which], entry);
}

void ofi_pair_expect(struct ofi_pair *p, int which, uint64_t flags, const void *context)
{
	struct fi_cq_tagged_entry e;

	cr_assert_eq(ofi_pair_read(p, which, &e), 1);
	cr_expect_eq(e.flags, flags);
	cr_expect_eq(e.op_context, context);
}

void ofi_pair_expect_error(struct ofi_pair *p, int which, uint64_t flags, int err,
			   const void *context)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_tagged_entry good;

	cr_assert_eq(ofi_pair_read(p, which, &good), -FI_EAVAIL);
	cr_assert_eq(fi_cq_readerr(p->cq[which], &e, 0), 1);
	cr_expect_eq(e.flags, flags);
	cr_expect_eq(e.err, err);
	cr_expect_eq(e.op_context, context);
}

void ofi_open_unbound(struct ofi_pair *p)
{
	struct ofi_options opts = { 0 };
	struct fi_av_attr av_attr = { 0 };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };

	ofi_domain_open(p, &opts);
	cr_assert_eq(fi_av_open(p->domain, &av_attr, &p->av, NULL), 0);
	cr_assert_eq(fi_cq_open(p->domain, &cq_attr, &p->cq[0], NULL), 0);
	cr_assert_eq(fi_endpoint(p->domain, p->info, &p->ep[0], p), 0);
}

void ofi_bind_all(struct ofi_pair *p)
{
	cr_assert_eq(fi_ep_bind(p->ep[0], &p->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(p->ep[0], &p->cq[0]->fid, FI_TRANSMIT | FI_RECV), 0);
}

static void on_kick(int sig)
{
	(void)sig;
}

static void *kick(void *arg)
{
	struct ofi_kicker *kicker = arg;

	while (!__atomic_load_n(&kicker->over, __ATOMIC_RELAXED)) {
		usleep(10000);
		pthread_kill(kicker->sleeper, SIGUSR1);
	}
	return NULL;
}

void ofi_kicker_start(struct ofi_kicker *kicker)
{
	struct sigaction action = { .sa_handler = on_kick, .sa_flags = SA_RESTART };

	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	*kicker = (struct ofi_kicker){ .sleeper = pthread_self() };
	cr_assert_eq(pthread_create(&kicker->thread, NULL, kick, kicker), 0);
}

void ofi_kicker_stop(struct ofi_kicker *kicker)
{
	__atomic_store_n(&kicker->over, true, __ATOMIC_RELAXED);
	pthread_join(kicker->thread, NULL);
}
