/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * info->nic, the description of the device that carries the messages, as in fi_nic(3). Called by
 * ofi/info.
 *
 * Filled if FI_COPYRPC_PATHS allows an RDMA device and there is one, else NULL. The object is one
 * allocation and belongs to its info: fi_freeinfo closes it, fi_dupinfo copies it (FI_DUP),
 * fi_tostr prints it.
 *
 * Tested by test/unit/ofi/base/test_cpr_nic.c and test/suite.d/62-verbs-model.
 */
#ifndef OFI_BASE_CPR_NIC_H
#define OFI_BASE_CPR_NIC_H

#include <rdma/fabric.h>

#include "dev/dev.h"

/**
 * Allocates the description. `driver` names the part of this provider that drives the device.
 * Returns 0 and *out, or -FI_ENOMEM.
 */
int cpr_nic_make(const struct dev_about *about, const char *driver, struct fid_nic **out);

#endif
