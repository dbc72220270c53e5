/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that peers may access, and the address and key they need, in every mode of registration.
 */
#ifndef FT_MR_H
#define FT_MR_H

#include "ft_fab.h"

/** Address and key of a region, as sent to a peer. */
struct ft_target {
	uint64_t base, key; /* base: the address of its first byte */
	uint64_t len;
};

struct ft_region {
	uint8_t *buf; /* with guards: ft_data.h */
	struct fid_mr *mr;
	struct ft_target here, there; /* this region, and the other rank's */
};

/**
 * Registers `len` new bytes, 0xEE, for `access`. The case chooses the key unless the provider does.
 */
void ft_region_open(struct ft_fab *fab, struct ft_region *region, size_t len, uint64_t access,
		    uint64_t key);
/** Exchanges targets with `rank`. */
void ft_region_swap(struct ft_fab *fab, struct ft_region *region, int rank);
void ft_region_close(struct ft_region *region);
/** Fills the region with 0xEE again. */
void ft_region_clear(struct ft_region *region);

#endif
