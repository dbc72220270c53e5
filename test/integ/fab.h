/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of test programs that call libfabric themselves.
 *
 * One endpoint with all objects it needs, of the provider that FI_PROVIDER names: a completion
 * queue, an address vector, an optional source address. Every call that fails ends the program with
 * a line that names it.
 */
#ifndef FAB_H
#define FAB_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/** Ends the program unless `call` returns at least 0. */
#define FAB_CHECK(call)                                                                            \
	do {                                                                                       \
		long fab_ret = (long)(call);                                                       \
		if (fab_ret < 0)                                                                   \
			fab_fail(__FILE__, __LINE__, #call, fi_strerror((int)-fab_ret));           \
	} while (0)

/** Ends the program unless `cond` holds. */
#define FAB_TRUE(cond)                                                                             \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fab_fail(__FILE__, __LINE__, #cond, "not so");                             \
	} while (0)

struct fab {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct sockaddr_in addr; /* address of the endpoint */
	enum fi_wait_obj wait;   /* of the queue; set before fab_open, or FI_WAIT_NONE */
};

static inline void fab_fail(const char *file, int line, const char *what, const char *why)
{
	fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
	exit(1);
}

static inline double fab_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void fab_find(struct fab *fab, const struct sockaddr_in *src,
			    enum fi_threading threading, enum fi_progress progress)
{
	struct fi_info *hints = fi_allocinfo();

	FAB_TRUE(hints);
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = threading;
	hints->domain_attr->data_progress = progress;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = malloc(sizeof(*src));
	FAB_TRUE(hints->src_addr);
	memcpy(hints->src_addr, src, sizeof(*src));
	hints->src_addrlen = sizeof(*src);
	FAB_CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &fab->info));
	fi_freeinfo(hints);
}

/** Opens an endpoint as fab->info says, which fab_find has set. */
static inline void fab_open_found(struct fab *fab)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = fab->wait };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	size_t len = sizeof(fab->addr);

	FAB_CHECK(fi_fabric(fab->info->fabric_attr, &fab->fabric, NULL));
	FAB_CHECK(fi_domain(fab->fabric, fab->info, &fab->domain, NULL));
	FAB_CHECK(fi_av_open(fab->domain, &av_attr, &fab->av, NULL));
	FAB_CHECK(fi_cq_open(fab->domain, &cq_attr, &fab->cq, NULL));
	FAB_CHECK(fi_endpoint(fab->domain, fab->info, &fab->ep, NULL));
	FAB_CHECK(fi_ep_bind(fab->ep, &fab->av->fid, 0));
	FAB_CHECK(fi_ep_bind(fab->ep, &fab->cq->fid, FI_TRANSMIT | FI_RECV));
	FAB_CHECK(fi_enable(fab->ep));
	FAB_CHECK(fi_getname(&fab->ep->fid, &fab->addr, &len));
}

/** Opens an endpoint at `src`, an IPv4 address; port 0: any. */
static inline void fab_open(struct fab *fab, const struct sockaddr_in *src,
			    enum fi_threading threading, enum fi_progress progress)
{
	fab_find(fab, src, threading, progress);
	fab_open_found(fab);
}

static inline void fab_close(struct fab *fab)
{
	FAB_CHECK(fi_close(&fab->ep->fid));
	FAB_CHECK(fi_close(&fab->cq->fid));
	FAB_CHECK(fi_close(&fab->av->fid));
	FAB_CHECK(fi_close(&fab->domain->fid));
	FAB_CHECK(fi_close(&fab->fabric->fid));
	fi_freeinfo(fab->info);
}

static inline fi_addr_t fab_insert(struct fab *fab, const struct sockaddr_in *addr)
{
	fi_addr_t fi_addr;

	FAB_TRUE(fi_av_insert(fab->av, addr, 1, &fi_addr, 0, NULL) == 1);
	return fi_addr;
}

/**
 * Reads one completion. Returns its context, and 0 or the error (positive) in *err; false if there
 * is none.
 */
static inline bool fab_poll(struct fab *fab, struct fi_cq_tagged_entry *entry, int *err)
{
	struct fi_cq_err_entry bad = { 0 };
	ssize_t ret = fi_cq_read(fab->cq, entry, 1);

	*err = 0;
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == 1)
		return true;
	FAB_TRUE(ret == -FI_EAVAIL);
	FAB_TRUE(fi_cq_readerr(fab->cq, &bad, 0) == 1);
	entry->op_context = bad.op_context;
	entry->flags = bad.flags;
	*err = bad.err;
	return true;
}

static inline struct sockaddr_in fab_addr(const char *ip, int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	FAB_TRUE(inet_pton(AF_INET, ip, &addr.sin_addr) == 1);
	return addr;
}

#endif
