/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exposures: local memory that the peer of a link may get, and the sender's half of shared copies.
 * Called by the engine through dev_link_ops, by shm_share_poll and by shm_link.c.
 *
 * A peer names an exposure by its key, an index with a generation into the device's table, and
 * never by an address. The sender copies only bytes of an exposure of that link that is not
 * revoked, within its bounds, and no more of them than it has: a peer gets no other memory, and no
 * more of the sender's time.
 *
 * Owner: the polling thread.
 */
#ifndef DEV_SHM_SHM_EXPOSE_H
#define DEV_SHM_SHM_EXPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/dev.h"
#include "util/list.h"

struct shm_dev;
struct shm_link;

struct shm_exposure {
	struct dev_mem mem;            /* first member: remote_key */
	struct shm_link *link;         /* NULL: revoked */
	struct util_list exposed_link; /* in shm_link.exposures */
	const uint8_t *addr;
	size_t len;
	size_t left; /* bytes that this end may still copy for the peer */
};

/** Implement dev_link_ops.expose and unexpose. */
int shm_expose(struct dev_link *link, const void *addr, size_t len, struct dev_mem **mem);
void shm_unexpose(struct dev_link *link, struct dev_mem *mem);

/** Revokes all exposures of a link. Their memory stays until shm_unexpose. */
void shm_expose_revoke_all(struct shm_link *link);

/** Writes one part of the peer's offer, if there is one. Returns true if a part was claimed. */
bool shm_expose_help(struct shm_link *link);

#endif
