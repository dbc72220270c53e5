/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Binding of an object to an event queue (ofi/queue/cpr_eq.h), embedded in the object. */
#ifndef OFI_BASE_CPR_EQ_USER_H
#define OFI_BASE_CPR_EQ_USER_H

#include "util/list.h"

struct cpr_domain;
struct cpr_eq;

struct cpr_eq_user {
	struct util_list link;
	struct cpr_eq *eq; /* NULL: not bound */
	struct cpr_domain *domain;
};

#endif
