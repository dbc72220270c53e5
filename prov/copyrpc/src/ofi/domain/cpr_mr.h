/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions: fi_mr over core's regions (core/core_mr.h). Adds attributes, events, bindings.
 * Opened by fi_mr_reg and its variants.
 *
 * Only memory that peers access needs registration. The user chooses keys, and peers count from the
 * beginning of a region, unless the domain was opened with FI_MR_BASIC or with FI_MR_PROV_KEY and
 * FI_MR_VIRT_ADDR. Memory is pinned only where the user has agreed to keep it mapped
 * (cpr_domain.fixed_mrs), and only once a device needs it.
 *
 * fi_close waits for transfers in progress in the region, and for the leases of peers
 * (core/rma/core_rma_lease.h); its memory is not accessed afterwards.
 */
#ifndef OFI_DOMAIN_CPR_MR_H
#define OFI_DOMAIN_CPR_MR_H

#include <rdma/fi_domain.h>

extern struct fi_ops_mr cpr_mr_ops;

/** Implements fi_mr_map_raw and fi_mr_unmap_key: a raw key is the key's eight bytes. */
int cpr_mr_map_raw(const struct fi_mr_map_raw *map);

#endif
