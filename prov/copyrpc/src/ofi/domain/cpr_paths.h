/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which ways to reach a peer does this process have, and in which order does it like them?
 *
 * What FI_COPYRPC_PATHS names, as far as there is a device for it. A path that is one of several
 * and has no device is left out without a word, unless FI_COPYRPC_DEVICE names one; one that was named
 * alone is an error, said once.
 * The handshake then finds what both ends have (docs/handshake.md).
 *
 * Shown by test/unit/ofi/domain/test_cpr_paths.c.
 */
#ifndef CPR_PATHS_H
#define CPR_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/eng_transport.h"

/** What a user may name, and who could carry it, best first, NULL behind the last one. */
struct cpr_path {
	const char *name; /* NULL: the end of a table */
	const struct eng_transport_ops *const *transports;
};

struct cpr_paths {
	struct eng_transports transports;    /* best first; several may carry the same path */
	const struct eng_transport_ops *nic; /* the first of them that is a NIC's, or NULL */
	struct dev_about about;              /* the NIC */
};

/**
 * Reads `text`, a list as in FI_COPYRPC_PATHS, of names in `table`: 0; -FI_EINVAL: it is not one;
 * -FI_ENODEV: there is no device for any path that it names. `tell`: logs an error with what can be
 * done.
 */
int cpr_paths_read(const struct cpr_path *table, const char *text, bool tell,
		   struct cpr_paths *paths);

#endif
