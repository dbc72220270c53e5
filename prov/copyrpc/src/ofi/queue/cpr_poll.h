/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Poll sets: fi_poll over completion queues and counters. Opened by fi_poll_open. */
#ifndef OFI_QUEUE_CPR_POLL_H
#define OFI_QUEUE_CPR_POLL_H

#include <rdma/fi_domain.h>

int cpr_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset);

#endif
