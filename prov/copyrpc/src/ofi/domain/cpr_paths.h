/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paths: selects the transports for FI_COPYRPC_PATHS that have a device, in order of preference.
 * Called by cpr_engine.
 *
 * A path without a device is left out silently if others remain, unless FI_COPYRPC_DEVICE names a
 * device. If none remains, an error is logged once. The handshake then finds the transports that
 * both ends have (docs/handshake.md).
 */
#ifndef OFI_DOMAIN_CPR_PATHS_H
#define OFI_DOMAIN_CPR_PATHS_H

#include <stdbool.h>

#include "engine/eng_transport.h"

/** Name of a path and the transports that can carry it, best first, NULL behind the last one. */
struct cpr_path {
	const char *name; /* NULL: the end of a table */
	const struct eng_transport_ops *const *transports;
};

struct cpr_paths {
	struct eng_transports transports;    /* best first; several may carry one path */
	const struct eng_transport_ops *nic; /* the first of them that is a NIC's, or NULL */
	struct dev_about about;              /* the NIC */
};

/**
 * Reads `text`, a list as in FI_COPYRPC_PATHS, of names in `table`. Returns 0, -FI_EINVAL if the
 * list has an unknown name, or -FI_ENODEV if no path in it has a device. With `log` an error is
 * logged with a remedy.
 */
int cpr_paths_read(const struct cpr_path *table, const char *text, bool log,
		   struct cpr_paths *paths);

#endif
