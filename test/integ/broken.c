/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Faults added to a provider, to show that the conformance suite detects them.
 *
 * A library for LD_PRELOAD between a program and libfabric, as carrier.c: from fi_fabric() on, the
 * op tables of completion queues and endpoints are replaced by tables of this library. BROKEN names
 * one fault, which occurs at every seventh opportunity:
 *
 * 	drop      a completion is taken and never reported
 * 	twice     a completion is reported again
 * 	good      an error completion is reported as a good one
 * 	bytes     a byte of a sent message is changed
 * 	lose      an injected message is not sent at all
 * 	swap      an injected message leaves after the next one
 * 	grow      a receive's completion names one byte more than came
 * 	tag       ... another tag
 * 	limit     fi_tinject takes messages beyond inject_size, and shortens them
 * 	unasked   an injected message has a completion
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define EVERY 7

static const struct fi_ops_fabric *real_fabric;
static const struct fi_ops_domain *real_domain;
static const struct fi_ops_cq *real_cq;
static const struct fi_ops_tagged *real_tagged;
static const struct fi_ops *real_fid;
static struct fi_ops_fabric ops_fabric;
static struct fi_ops_domain ops_domain;
static struct fi_ops_cq ops_cq;
static struct fi_ops_tagged ops_tagged;
static struct fi_ops ops_fid; /* of endpoints */

static size_t entry_size, inject_size;
static int unasked;
static struct fi_cq_tagged_entry kept; /* completion to be reported again */
static bool have_kept;
static struct { /* injected message that waits for the next one */
	bool used;
	char bytes[4096];
	size_t len;
	uint64_t data, tag;
	fi_addr_t to;
	bool has_data;
} held;

/* Returns true at every seventh call with the selected fault. */
static bool turn(const char *fault)
{
	static unsigned seen;
	const char *wanted = getenv("BROKEN");

	return wanted && !strcmp(wanted, fault) && ++seen % EVERY == 0;
}

/* ---- completions ---- */

static bool is_recv(const struct fi_cq_tagged_entry *entry)
{
	return entry_size == sizeof(*entry) && entry->flags & FI_RECV;
}

static ssize_t read_good(struct fid_cq *cq, void *buf)
{
	struct fi_cq_err_entry bad = { 0 };
	struct fi_cq_tagged_entry entry = { 0 };

	if (real_cq->readerr(cq, &bad, 0) != 1)
		return -FI_EAGAIN;
	entry.op_context = bad.op_context;
	entry.flags = bad.flags;
	entry.len = bad.len;
	memcpy(buf, &entry, entry_size);
	return 1;
}

static ssize_t broken_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct fi_cq_tagged_entry *entry = buf;
	ssize_t ret;

	if (count && have_kept) {
		have_kept = false;
		memcpy(buf, &kept, entry_size);
		return 1;
	}
	if (count && unasked) {
		unasked = 0;
		memset(buf, 0, entry_size);
		return 1;
	}
	ret = real_cq->read(cq, buf, count ? 1 : 0);
	if (ret == -FI_EAVAIL && turn("good"))
		return read_good(cq, buf);
	if (ret != 1)
		return ret;
	if (turn("drop"))
		return -FI_EAGAIN;
	if (turn("twice")) {
		memcpy(&kept, buf, entry_size);
		have_kept = true;
	}
	if (is_recv(entry) && turn("grow"))
		entry->len++;
	if (is_recv(entry) && turn("tag"))
		entry->tag ^= 1;
	return ret;
}

static int broken_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
			  void *context)
{
	static const size_t sizes[] = {
		[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
		[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
		[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
		[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
	};
	int ret = real_domain->cq_open(domain, attr, cq, context);

	if (ret)
		return ret;
	entry_size = sizes[attr->format];
	real_cq = (*cq)->ops;
	ops_cq = *real_cq;
	ops_cq.read = broken_read;
	(*cq)->ops = &ops_cq;
	return 0;
}

/* ---- messages ---- */

static ssize_t broken_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
			   uint64_t tag, void *context)
{
	if (len && turn("bytes"))
		((char *)(uintptr_t)buf)[len / 2] ^= 0x40;
	return real_tagged->send(ep, buf, len, desc, to, tag, context);
}

static ssize_t inject(struct fid_ep *ep, const void *buf, size_t len, bool has_data, uint64_t data,
		      fi_addr_t to, uint64_t tag)
{
	return has_data ? real_tagged->injectdata(ep, buf, len, data, to, tag)
			: real_tagged->inject(ep, buf, len, to, tag);
}

static bool hold(const void *buf, size_t len, bool has_data, uint64_t data, fi_addr_t to,
		 uint64_t tag)
{
	if (held.used || len > sizeof(held.bytes))
		return false;
	memcpy(held.bytes, buf, len);
	held.len = len;
	held.has_data = has_data;
	held.data = data;
	held.to = to;
	held.tag = tag;
	held.used = true;
	return true;
}

static ssize_t broken_any(struct fid_ep *ep, const void *buf, size_t len, bool has_data,
			  uint64_t data, fi_addr_t to, uint64_t tag)
{
	ssize_t ret;

	if (turn("lose"))
		return 0;
	if (turn("swap") && hold(buf, len, has_data, data, to, tag))
		return 0;
	if (inject_size && len > inject_size && getenv("BROKEN") &&
	    !strcmp(getenv("BROKEN"), "limit"))
		len = inject_size;
	ret = inject(ep, buf, len, has_data, data, to, tag);
	if (!ret && turn("unasked"))
		unasked = 1;
	if (!ret && held.used) {
		held.used = false;
		while (inject(ep, held.bytes, held.len, held.has_data, held.data, held.to,
			      held.tag) == -FI_EAGAIN)
			;
	}
	return ret;
}

static ssize_t broken_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to,
			     uint64_t tag)
{
	return broken_any(ep, buf, len, false, 0, to, tag);
}

static ssize_t broken_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				 fi_addr_t to, uint64_t tag)
{
	return broken_any(ep, buf, len, true, data, to, tag);
}

/* ---- replaced tables ---- */

/* Replaces the tables of providers that fill them in when an endpoint is enabled. */
static int broken_control(struct fid *fid, int command, void *arg)
{
	struct fid_ep *ep = (struct fid_ep *)fid;
	int ret = real_fid->control(fid, command, arg);

	if (ret || command != FI_ENABLE)
		return ret;
	real_tagged = ep->tagged;
	ops_tagged = *real_tagged;
	ops_tagged.send = broken_send;
	ops_tagged.inject = broken_inject;
	ops_tagged.injectdata = broken_injectdata;
	ep->tagged = &ops_tagged;
	return 0;
}

static int broken_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			   void *context)
{
	int ret = real_domain->endpoint(domain, info, ep, context);

	if (ret)
		return ret;
	inject_size = info->tx_attr->inject_size;
	real_fid = (*ep)->fid.ops;
	ops_fid = *real_fid;
	ops_fid.control = broken_control;
	(*ep)->fid.ops = &ops_fid;
	return 0;
}

static int broken_domain(struct fid_fabric *fabric, struct fi_info *info,
			 struct fid_domain **domain, void *context)
{
	int ret = real_fabric->domain(fabric, info, domain, context);

	if (ret)
		return ret;
	real_domain = (*domain)->ops;
	ops_domain = *real_domain;
	ops_domain.cq_open = broken_cq_open;
	ops_domain.endpoint = broken_endpoint;
	(*domain)->ops = &ops_domain;
	return 0;
}

__attribute__((visibility("default"))) int fi_fabric(struct fi_fabric_attr *attr,
						     struct fid_fabric **fabric, void *context)
{
	int (*real)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	int ret;

	*(void **)&real = dlsym(RTLD_NEXT, "fi_fabric");
	ret = real(attr, fabric, context);
	if (ret)
		return ret;
	real_fabric = (*fabric)->ops;
	ops_fabric = *real_fabric;
	ops_fabric.domain = broken_domain;
	(*fabric)->ops = &ops_fabric;
	return 0;
}
