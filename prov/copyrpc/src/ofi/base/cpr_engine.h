/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engines by kind of endpoint. Called by domains, fabrics and ofi/info. The only file in ofi/ that
 * names engines and transports: a new transport is a new row in a table.
 *
 * Tested by test/unit/ofi/domain/test_cpr_engine.c.
 */
#ifndef OFI_BASE_CPR_ENGINE_H
#define OFI_BASE_CPR_ENGINE_H

#include <rdma/fabric.h>

#include "core/core_engine.h"

struct cm_node;

/**
 * Kinds of reliable endpoints: rings with datagrams as the last resort (rc), or datagrams alone
 * (ud).
 */
enum cpr_kind {
	CPR_RC,
	CPR_UD,
};

/** Returns the engine of a kind's endpoints. */
const struct core_progress_ops *cpr_engine_of(enum cpr_kind kind);

/**
 * Returns the control thread of all engines and counts a user. Returns 0 or a negative error code.
 */
int cpr_engine_get_cm(struct cm_node **cm);
void cpr_engine_put_cm(struct cm_node *cm);
/**
 * Stops the control thread for good, whatever is open: the process ends or libfabric is unloaded.
 */
void cpr_engine_halt_cm(void);

/**
 * Returns 0 if a domain could be opened with the current FI_COPYRPC_PATHS and FI_COPYRPC_ENDPOINT,
 * else -FI_ENODATA. Logs once if no endpoint could be opened.
 */
int cpr_engine_check(enum cpr_kind kind);

/** Fills *nic for info->nic, NULL if there is no device. Returns 0 or -FI_ENOMEM. */
int cpr_engine_nic(enum cpr_kind kind, struct fid_nic **nic);

#endif
