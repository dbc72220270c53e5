/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RPC extension: fi_open_ops on an endpoint or a domain.
 *
 * The table is constant and shared. Its calls check parameters, take the domain's lock as transfers
 * do, and call core (core_rpc.h).
 */
#ifndef OFI_XFER_CPR_RPC_H
#define OFI_XFER_CPR_RPC_H

#include <rdma/fabric.h>

/** Implement fi_ops.ops_open of endpoints and domains. */
int cpr_rpc_ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context);
int cpr_rpc_domain_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			    void *context);

#endif
