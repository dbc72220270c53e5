/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address table of datagram endpoints: the table behind fi_av.
 *
 * Stores the device's descriptions (dev.h); the device converts users' addresses (dgram_over.h). A
 * repeated description keeps its number and counts references. A removed number is reused, lowest
 * first. Not locked.
 *
 * Separate from core_av: an address of an RDMA device has 48 bytes, and packing would gain nothing
 * here.
 */
#ifndef DGRAM_DGRAM_AV_H
#define DGRAM_DGRAM_AV_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "dgram/dgram_map.h"

struct dgram_av_entry {
	struct dgram_key key; /* Bytes of the description */
	uint32_t refs;        /* 0: free */
	uint32_t len;
};

struct dgram_av {
	struct dgram_av_entry *entries;
	uint64_t end; /* Number of entries ever used */
	uint64_t max;
	uint64_t free_from; /* No lower number is free */
	struct dgram_map map;
};

struct dgram_av *dgram_av_open(void); /* Returns NULL if memory is exhausted */
void dgram_av_close(struct dgram_av *av);

/**
 * Returns 0 and *idx (the same number for a known description), -FI_EINVAL if the description is
 * too long, or -FI_ENOMEM.
 */
int dgram_av_insert(struct dgram_av *av, const struct dev_desc *desc, uint64_t *idx);
/**
 * Drops one reference. Returns 0, or -FI_EINVAL for an unused number. Sets *gone if the reference
 * was the last one.
 */
int dgram_av_remove(struct dgram_av *av, uint64_t idx, bool *gone);
/** Returns false if the number is unused. */
bool dgram_av_desc(const struct dgram_av *av, uint64_t idx, struct dev_desc *desc);

#endif
