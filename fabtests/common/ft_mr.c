/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registers memory: see ft_mr.h. */
#include "ft_mr.h"
#include "ft_data.h"
#include "util/fi_old.h"

void ft_region_open(struct ft_fab *fab, struct ft_region *region, size_t len, uint64_t access,
		    uint64_t key)
{
	int mode = fab->info->domain_attr->mr_mode;

	region->buf = ft_buf_new(len);
	FT_OK(fi_mr_reg(fab->domain, region->buf, len, access, 0, key, 0, &region->mr, NULL));
	if (mode & FI_MR_ENDPOINT) {
		FT_OK(fi_mr_bind(region->mr, &fab->ep->fid, 0));
		FT_OK(fi_mr_enable(region->mr));
	}
	region->here.base = mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC) ? (uintptr_t)region->buf : 0;
	region->here.key = fi_mr_key(region->mr);
	region->here.len = len;
	region->there = region->here;
}

void ft_region_swap(struct ft_fab *fab, struct ft_region *region, int rank)
{
	ft_swap(fab->ft, rank, &region->here, &region->there, sizeof(region->here));
}

void ft_region_close(struct ft_region *region)
{
	FT_CLOSE(region->mr);
	ft_buf_free(region->buf);
	region->buf = NULL;
}

void ft_region_clear(struct ft_region *region)
{
	memset(region->buf, 0xEE, region->here.len);
}
