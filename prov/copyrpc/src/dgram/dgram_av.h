/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which address has number n? The table behind fi_av of datagram endpoints.
 *
 * It keeps what the device asks for, descriptions (dev.h); to write and read users' addresses is
 * the device's business (dgram_over.h). The same description keeps its number and counts its
 * references; a removed number is handed out again, lowest first. Not locked.
 *
 * Why not core_av: an RDMA device's address has 48 bytes, and nothing is gained here by packing.
 *
 * Shown by test/unit/dgram/test_dgram_av.c.
 */
#ifndef DGRAM_AV_H
#define DGRAM_AV_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "dgram/dgram_map.h"

struct dgram_av_entry {
	struct dgram_key key; /* the description's bytes */
	uint32_t refs;        /* 0: free */
	uint32_t len;
};

struct dgram_av {
	struct dgram_av_entry *entries;
	uint64_t end; /* numbers ever used */
	uint64_t max;
	uint64_t free_from; /* none below is free */
	struct dgram_map map;
};

struct dgram_av *dgram_av_open(void); /* NULL: no memory */
void dgram_av_close(struct dgram_av *av);

/** 0 and *idx (known already: the same number again); -FI_EINVAL (too long), -FI_ENOMEM. */
int dgram_av_insert(struct dgram_av *av, const struct dev_desc *desc, uint64_t *idx);
/** Drops one reference: 0, or -FI_EINVAL for a number that is not in use. *gone: the last one. */
int dgram_av_remove(struct dgram_av *av, uint64_t idx, bool *gone);
/** False: the number is not in use. */
bool dgram_av_desc(const struct dgram_av *av, uint64_t idx, struct dev_desc *desc);

#endif
