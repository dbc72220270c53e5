/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Number of messages that each libfabric provider carried for this process.
 *
 * A library for LD_PRELOAD between a program and libfabric, independent of any provider.
 * fi_fabric() is the origin of every object that can send; from there the op tables of the fabric,
 * of its domains, of their endpoints and of aliases are replaced by tables of this library. At exit
 * a line for each endpoint, `<provider> <messages sent>`, is written to the file
 * $CARRIER_DIR/<pid>; messages of an alias are those of its endpoint. Only the
 * fi_tagged family is counted, because Open MPI and the like use no other; receives are not
 * counted, since the sender's line shows them. A rank that leaves without MPI_Finalize leaves no
 * such file, but a line on stderr, and an exit status that lets mpirun end the job.
 *
 * CARRIER_REFUSE=N: of 2 N operations of an endpoint N in a row are refused with -FI_EAGAIN, as a
 * provider does whose queues are full. A program that finds the symbol carrier_refuse_recvs has all
 * receives refused while it is not 0.
 *
 * These tables exist as long as the process: an endpoint may be closed before its counter is read.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define CARRIER_EPS_MAX 256

/** Messages of an endpoint and its aliases. */
struct carrier_traffic {
	char provider[64];
	atomic_ulong sent;
	atomic_ulong calls; /* with CARRIER_REFUSE */
};

/**
 * An endpoint or alias. The op table is the first member, so that its address leads to the struct.
 */
struct carrier_ep {
	struct fi_ops_tagged ops;
	const struct fi_ops_tagged *real;
	struct fi_ops fid_ops;
	const struct fi_ops *fid_real;
	struct carrier_traffic *traffic;
};

struct carrier_fabric {
	struct fi_ops_fabric ops;
	const struct fi_ops_fabric *real;
	char provider[64];
};

struct carrier_domain {
	struct fi_ops_domain ops;
	const struct fi_ops_domain *real;
	char provider[64];
};

static struct carrier_traffic *carrier_eps[CARRIER_EPS_MAX];
static atomic_uint carrier_ep_cnt;
static unsigned long carrier_refuse; /* 0: nothing is refused */

static struct carrier_ep *carrier_ep_of(struct fid_ep *ep)
{
	return (struct carrier_ep *)ep->tagged;
}

static bool carrier_is_full(struct fid_ep *ep)
{
	return carrier_refuse &&
	       atomic_fetch_add(&carrier_ep_of(ep)->traffic->calls, 1) / carrier_refuse % 2;
}

__attribute__((visibility("default"))) extern atomic_int carrier_refuse_recvs;
atomic_int carrier_refuse_recvs;

static bool carrier_takes_no_recv(struct fid_ep *ep)
{
	return atomic_load_explicit(&carrier_refuse_recvs, memory_order_relaxed) ||
	       carrier_is_full(ep);
}

/* Not a fetch_add: two threads may lose a count, which does not matter here. */
static ssize_t carrier_count(struct fid_ep *ep, ssize_t rc)
{
	atomic_ulong *sent = &carrier_ep_of(ep)->traffic->sent;

	if (rc == 0)
		atomic_store_explicit(sent, atomic_load_explicit(sent, memory_order_relaxed) + 1,
				      memory_order_relaxed);
	return rc;
}

static ssize_t carrier_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			    uint64_t tag, uint64_t ignore, void *context)
{
	if (carrier_takes_no_recv(ep))
		return -FI_EAGAIN;
	return carrier_ep_of(ep)->real->recv(ep, buf, len, desc, src, tag, ignore, context);
}

static ssize_t carrier_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	if (carrier_takes_no_recv(ep))
		return -FI_EAGAIN;
	return carrier_ep_of(ep)->real->recvv(ep, iov, desc, count, src, tag, ignore, context);
}

static ssize_t carrier_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	if (carrier_takes_no_recv(ep))
		return -FI_EAGAIN;
	return carrier_ep_of(ep)->real->recvmsg(ep, msg, flags);
}

static ssize_t carrier_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    fi_addr_t dest, uint64_t tag, void *context)
{
	const struct fi_ops_tagged *real = carrier_ep_of(ep)->real;

	if (carrier_is_full(ep))
		return -FI_EAGAIN;
	return carrier_count(ep, real->send(ep, buf, len, desc, dest, tag, context));
}

static ssize_t carrier_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t dest, uint64_t tag, void *context)
{
	const struct fi_ops_tagged *real = carrier_ep_of(ep)->real;

	if (carrier_is_full(ep))
		return -FI_EAGAIN;
	return carrier_count(ep, real->sendv(ep, iov, desc, count, dest, tag, context));
}

static ssize_t carrier_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	if (carrier_is_full(ep))
		return -FI_EAGAIN;
	return carrier_count(ep, carrier_ep_of(ep)->real->sendmsg(ep, msg, flags));
}

static ssize_t carrier_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t tag)
{
	if (carrier_is_full(ep))
		return -FI_EAGAIN;
	return carrier_count(ep, carrier_ep_of(ep)->real->inject(ep, buf, len, dest, tag));
}

static ssize_t carrier_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	const struct fi_ops_tagged *real = carrier_ep_of(ep)->real;

	if (carrier_is_full(ep))
		return -FI_EAGAIN;
	return carrier_count(ep, real->senddata(ep, buf, len, desc, data, dest, tag, context));
}

static ssize_t carrier_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				  fi_addr_t dest, uint64_t tag)
{
	const struct fi_ops_tagged *real = carrier_ep_of(ep)->real;

	if (carrier_is_full(ep))
		return -FI_EAGAIN;
	return carrier_count(ep, real->injectdata(ep, buf, len, data, dest, tag));
}

/*
 * Every entry calls through the real table each time, since a provider may fill it in when the
 * endpoint is enabled.
 */
static const struct fi_ops_tagged carrier_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = carrier_recv,
	.recvv = carrier_recvv,
	.recvmsg = carrier_recvmsg,
	.send = carrier_send,
	.sendv = carrier_sendv,
	.sendmsg = carrier_sendmsg,
	.inject = carrier_inject,
	.senddata = carrier_senddata,
	.injectdata = carrier_injectdata,
};

__attribute__((constructor)) static void carrier_configure(void)
{
	const char *refuse = getenv("CARRIER_REFUSE");

	carrier_refuse = refuse ? strtoul(refuse, NULL, 10) : 0;
}

static void carrier_watch(struct fid_ep *ep, struct carrier_traffic *traffic);

static int carrier_control(struct fid *fid, int command, void *arg)
{
	const struct carrier_ep *c = carrier_ep_of((struct fid_ep *)fid);
	int rc = c->fid_real->control(fid, command, arg);

	if (rc == 0 && command == FI_ALIAS)
		carrier_watch((struct fid_ep *)*((struct fi_alias *)arg)->fid, c->traffic);
	return rc;
}

static void carrier_watch(struct fid_ep *ep, struct carrier_traffic *traffic)
{
	struct carrier_ep *c = calloc(1, sizeof(*c));

	if (!c || !ep->tagged)
		return;
	c->ops = carrier_ops;
	c->real = ep->tagged;
	c->fid_ops = *ep->fid.ops;
	c->fid_ops.control = carrier_control;
	c->fid_real = ep->fid.ops;
	c->traffic = traffic;
	ep->tagged = &c->ops;
	ep->fid.ops = &c->fid_ops;
}

static void carrier_watch_ep(struct fid_ep *ep, const char *provider)
{
	struct carrier_traffic *traffic = calloc(1, sizeof(*traffic));
	unsigned idx = atomic_fetch_add(&carrier_ep_cnt, 1);

	if (!traffic || idx >= CARRIER_EPS_MAX)
		return;
	strcpy(traffic->provider, provider);
	carrier_eps[idx] = traffic;
	carrier_watch(ep, traffic);
}

static int carrier_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			    void *context)
{
	struct carrier_domain *c = (struct carrier_domain *)domain->ops;
	int rc = c->real->endpoint(domain, info, ep, context);

	if (rc == 0)
		carrier_watch_ep(*ep, c->provider);
	return rc;
}

static int carrier_domain(struct fid_fabric *fabric, struct fi_info *info,
			  struct fid_domain **domain, void *context)
{
	struct carrier_fabric *f = (struct carrier_fabric *)fabric->ops;
	int rc = f->real->domain(fabric, info, domain, context);
	struct carrier_domain *c;

	if (rc || !(c = calloc(1, sizeof(*c))))
		return rc;
	c->ops = *(*domain)->ops;
	c->real = (*domain)->ops;
	strcpy(c->provider, f->provider);
	c->ops.endpoint = carrier_endpoint;
	(*domain)->ops = &c->ops;
	return 0;
}

__attribute__((visibility("default"))) int fi_fabric(struct fi_fabric_attr *attr,
						     struct fid_fabric **fabric, void *context)
{
	int (*real)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	struct carrier_fabric *c;
	int rc;

	*(void **)&real = dlsym(RTLD_NEXT, "fi_fabric");
	rc = real(attr, fabric, context);
	if (rc || !(c = calloc(1, sizeof(*c))))
		return rc;
	c->ops = *(*fabric)->ops;
	c->real = (*fabric)->ops;
	snprintf(c->provider, sizeof(c->provider), "%s", attr->prov_name);
	c->ops.domain = carrier_domain;
	(*fabric)->ops = &c->ops;
	return 0;
}

static bool carrier_mpi_flag(const char *name)
{
	int (*get)(int *), flag = 0;

	*(void **)&get = dlsym(RTLD_DEFAULT, name);
	if (get)
		get(&flag);
	return flag;
}

static void carrier_check_end(void)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");

	if (!carrier_mpi_flag("MPI_Initialized") || carrier_mpi_flag("MPI_Finalized"))
		return;
	fprintf(stderr, "carrier: rank %s left without MPI_Finalize\n", rank ? rank : "?");
	fflush(NULL);
	_exit(1);
}

__attribute__((destructor)) static void carrier_report(void)
{
	const char *dir = getenv("CARRIER_DIR");
	unsigned cnt = atomic_load(&carrier_ep_cnt);
	char path[4096];
	FILE *out;

	if (!dir || cnt == 0)
		return;
	carrier_check_end();
	snprintf(path, sizeof(path), "%s/%d", dir, (int)getpid());
	out = fopen(path, "w");
	if (!out)
		return;
	for (unsigned i = 0; i < cnt && i < CARRIER_EPS_MAX; i++)
		if (carrier_eps[i])
			fprintf(out, "%s %lu\n", carrier_eps[i]->provider,
				atomic_load(&carrier_eps[i]->sent));
	fclose(out);
}
