/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receivers that request a retry at once: see rnr_soon.h. */
#include "rnr_soon.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>

#define RNR_TIMER_10US 1

bool rnr_is_soon;

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int) =
		(__typeof__(real))dlsym(RTLD_NEXT, "ibv_modify_qp");

	if (rnr_is_soon && mask & IBV_QP_MIN_RNR_TIMER)
		attr->min_rnr_timer = RNR_TIMER_10US;
	return real(qp, attr, mask);
}
