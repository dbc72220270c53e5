/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Refusals of calls that are not transfers: see cpr_nosys.h. No function here reads its arguments.
 */
#include "ofi/base/cpr_nosys.h"

#include <rdma/fi_errno.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* struct fi_ops */
int cpr_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int cpr_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int cpr_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return -FI_ENOSYS;
}

int cpr_no_tostr(const struct fid *fid, char *buf, size_t len)
{
	return -FI_ENOSYS;
}

int cpr_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	return -FI_ENOSYS;
}

/* struct fi_ops_domain */
int cpr_no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
		       void *context)
{
	return -FI_ENOSYS;
}

int cpr_no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			    struct fi_collective_attr *attr, uint64_t flags)
{
	return -FI_ENOSYS;
}

/* struct fi_ops_av */
int cpr_no_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set,
		  void *context)
{
	return -FI_ENOSYS;
}

/* struct fi_ops_cq */
ssize_t cpr_no_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout)
{
	return -FI_ENOSYS;
}

ssize_t cpr_no_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr,
			    const void *cond, int timeout)
{
	return -FI_ENOSYS;
}

int cpr_no_cq_signal(struct fid_cq *cq)
{
	return -FI_ENOSYS;
}

/* struct fi_ops_cntr */
int cpr_no_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return -FI_ENOSYS;
}

/* struct fi_ops_eq */
ssize_t cpr_no_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	return -FI_ENOSYS;
}

/* struct fi_ops_ep */
int cpr_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		  void *context)
{
	return -FI_ENOSYS;
}

int cpr_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		  void *context)
{
	return -FI_ENOSYS;
}

ssize_t cpr_no_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

/* struct fi_ops_cm */
int cpr_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return -FI_ENOSYS;
}

int cpr_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int cpr_no_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

int cpr_no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int cpr_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int cpr_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}

int cpr_no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		void *context)
{
	return -FI_ENOSYS;
}
