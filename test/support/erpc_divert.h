/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Up-calls of one session, while the other sessions of its endpoint keep theirs.
 *
 * Up-calls belong to an endpoint. Tests of invalid content watch one session with their own, beside
 * the sessions of an erpc_pair.
 */
#ifndef SUPPORT_ERPC_DIVERT_H
#define SUPPORT_ERPC_DIVERT_H

#include "erpc/base/erpc_session.h"

/** Directs the up-calls of `s` to `up`, one session at a time. NULL: `s` must have none. */
void erpc_divert(struct erpc_session *s, const struct core_upcalls *up);

#endif
