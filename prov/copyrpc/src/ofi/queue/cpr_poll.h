/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which of these queues and counters have news? Poll sets (fi_poll). */
#ifndef CPR_POLL_H
#define CPR_POLL_H

#include <rdma/fi_domain.h>

int cpr_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset);

#endif
