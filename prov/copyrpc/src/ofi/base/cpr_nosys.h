/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entries of op tables for calls that are not offered. Used by every object of ofi.
 *
 * No member of an op table is NULL: a call that is not offered returns -FI_ENOSYS. The tables of
 * transfers exist twice: for endpoints without the capability, and, with -FI_EOPBADSTATE, for
 * endpoints that are not enabled yet.
 */
#ifndef CPR_NOSYS_H
#define CPR_NOSYS_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

extern struct fi_ops_msg cpr_no_msg_ops;
extern struct fi_ops_msg cpr_early_msg_ops;
extern struct fi_ops_tagged cpr_no_tagged_ops;
extern struct fi_ops_tagged cpr_early_tagged_ops;
extern struct fi_ops_rma cpr_no_rma_ops;
extern struct fi_ops_rma cpr_early_rma_ops;
extern struct fi_ops_atomic cpr_no_atomic_ops;
extern struct fi_ops_atomic cpr_early_atomic_ops;
extern struct fi_ops_collective cpr_no_collective_ops;

/* struct fi_ops */
int cpr_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int cpr_no_control(struct fid *fid, int command, void *arg);
int cpr_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int cpr_no_tostr(const struct fid *fid, char *buf, size_t len);
int cpr_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

/* struct fi_ops_domain */
int cpr_no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
		       void *context);
int cpr_no_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			    struct fi_collective_attr *attr, uint64_t flags);

/* struct fi_ops_av */
int cpr_no_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set,
		  void *context);

/* struct fi_ops_cq */
ssize_t cpr_no_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout);
ssize_t cpr_no_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr,
			    const void *cond, int timeout);
int cpr_no_cq_signal(struct fid_cq *cq);

/* struct fi_ops_cntr */
int cpr_no_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout);

/* struct fi_ops_eq */
ssize_t cpr_no_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags);

/* struct fi_ops_ep */
int cpr_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		  void *context);
int cpr_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		  void *context);
ssize_t cpr_no_size_left(struct fid_ep *ep);

/* struct fi_ops_cm */
int cpr_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int cpr_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int cpr_no_listen(struct fid_pep *pep);
int cpr_no_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int cpr_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
int cpr_no_shutdown(struct fid_ep *ep, uint64_t flags);
int cpr_no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		void *context);

#endif
