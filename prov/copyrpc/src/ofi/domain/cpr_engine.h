/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which engine drives an endpoint? The only place in ofi/ that names one: a new engine, a new row.
 *
 * Shown by test/unit/ofi/domain/test_cpr_engine.c.
 */
#ifndef CPR_ENGINE_H
#define CPR_ENGINE_H

#include <rdma/fabric.h>

#include "core/core_chan.h"

struct cm_node;

/** Reliable endpoints: rings with datagrams as the last resort, or datagrams alone. */
enum cpr_kind {
	CPR_RC,
	CPR_UD,
};

/** The engine of a kind's endpoints. */
const struct core_engine_ops *cpr_engine_of(enum cpr_kind kind);

/** The control thread of all engines, counted: 0 or -FI_E*. */
int cpr_engine_get_cm(struct cm_node **cm);
void cpr_engine_put_cm(struct cm_node *cm);
/** Stops it for good, whatever is open: the process ends, or libfabric is unloaded. */
void cpr_engine_halt_cm(void);

/**
 * Could a domain be opened, as FI_COPYRPC_PATHS and FI_COPYRPC_ENDPOINT stand? 0 or -FI_ENODATA; with
 * a line, once, if no endpoint could be.
 */
int cpr_engine_check(enum cpr_kind kind);

/** What info->nic tells: 0, *nic (NULL: there is none), or -FI_ENOMEM. */
int cpr_engine_nic(enum cpr_kind kind, struct fid_nic **nic);

#endif
