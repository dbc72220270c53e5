/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which device carries the messages? info->nic, as fi_nic(3) describes it.
 *
 * Filled when FI_COPYRPC_PATHS leaves room for an RDMA device and there is one; NULL where memory
 * is all there is. The object is one allocation and belongs to its info: fi_freeinfo closes it,
 * fi_dupinfo copies it (FI_DUP), fi_tostr prints it.
 *
 * Shown by test/unit/ofi/base/test_cpr_nic.c and test/suite.d/62-verbs-model.
 */
#ifndef CPR_NIC_H
#define CPR_NIC_H

#include <rdma/fabric.h>

#include "dev/dev.h"

/** 0 and *out, or -FI_ENOMEM. `driver` says which code of ours drives it. */
int cpr_nic_make(const struct dev_about *about, const char *driver, struct fid_nic **out);

#endif
