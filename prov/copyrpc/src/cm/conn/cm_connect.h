/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm_connect and cm_connect_cancel of cm.h, with the lock held.
 *
 * Tested by test/unit/cm/conn/test_cm_req.c.
 */
#ifndef CM_CONN_CM_CONNECT_H
#define CM_CONN_CM_CONNECT_H

#include <stdbool.h>

#include "cm/base/cm_addr.h"

struct cm_ep;

/** `list`: the addresses of the peer's name. */
int cm_connect_locked(struct cm_ep *cep, const union cm_addr *list, unsigned cnt, bool was_up);
void cm_connect_cancel_locked(struct cm_ep *cep, const union cm_addr *list, unsigned cnt);

#endif
