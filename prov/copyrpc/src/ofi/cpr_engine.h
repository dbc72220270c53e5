/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which engine drives an endpoint? The only place in ofi/ that names one: a new engine, a new row. */
#ifndef CPR_ENGINE_H
#define CPR_ENGINE_H

#include <rdma/fabric.h>

#include "core/core_chan.h"

struct cm_node;

/** The engine of the rc endpoints. */
const struct core_engine_ops *cpr_engine_rc(void);

/** The control thread of all engines, counted: 0 or -FI_E*. */
int cpr_engine_get_cm(struct cm_node **cm);
void cpr_engine_put_cm(void);
/** Stops it for good, whatever is open: the process ends, or libfabric is unloaded. */
void cpr_engine_halt_cm(void);

/** Could a domain be opened, as FI_COPYRPC_PATHS stands? 0 or -FI_ENODATA, with a line, once. */
int cpr_engine_check(void);

/** What info->nic tells: 0, *nic (NULL: there is none), or -FI_ENOMEM. */
int cpr_engine_nic(struct fid_nic **nic);

#endif
