/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that peers may reach, and what they must say to reach it, in every mode of registration. */
#ifndef FT_MR_H
#define FT_MR_H

#include "ft_fab.h"

/** What a peer needs of a region. */
struct ft_target {
	uint64_t base, key; /* base: the address of its first byte */
	uint64_t len;
};

struct ft_region {
	uint8_t *buf; /* with guards: ft_data.h */
	struct fid_mr *mr;
	struct ft_target here, there; /* ours, and the other rank's */
};

/** Registers `len` new bytes, 0xEE, for `access`; a key of our choice, unless the provider chooses. */
void ft_region_open(struct ft_fab *fab, struct ft_region *region, size_t len, uint64_t access,
		    uint64_t key);
/** Tells rank `rank` of it, and learns of theirs. */
void ft_region_swap(struct ft_fab *fab, struct ft_region *region, int rank);
void ft_region_close(struct ft_region *region);
/** All of it 0xEE again. */
void ft_region_clear(struct ft_region *region);

#endif
