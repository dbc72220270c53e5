/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Table of addresses: see dgram_av.h. */
#include "dgram/dgram_av.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

struct dgram_av *dgram_av_open(void)
{
	return calloc(1, sizeof(struct dgram_av));
}

void dgram_av_close(struct dgram_av *av)
{
	dgram_map_fini(&av->map);
	free(av->entries);
	free(av);
}

static int dgram_av_grow(struct dgram_av *av)
{
	uint64_t max = av->max ? 2 * av->max : 16;
	struct dgram_av_entry *entries = realloc(av->entries, max * sizeof(*entries));

	if (!entries)
		return -FI_ENOMEM;
	av->entries = entries;
	av->max = max;
	return 0;
}

/* Finds the lowest unused number; does not reserve it. */
static int dgram_av_lowest_free(struct dgram_av *av, uint64_t *idx)
{
	while (av->free_from < av->end && av->entries[av->free_from].refs)
		av->free_from++;
	*idx = av->free_from;
	return *idx == av->max ? dgram_av_grow(av) : 0;
}

static int dgram_av_add(struct dgram_av *av, const struct dgram_av_entry *e, uint64_t *idx)
{
	int ret = dgram_av_lowest_free(av, idx);

	if (!ret)
		ret = dgram_map_put(&av->map, &e->key, *idx);
	if (ret)
		return ret;
	av->entries[*idx] = *e;
	if (av->end <= *idx)
		av->end = *idx + 1;
	return 0;
}

int dgram_av_insert(struct dgram_av *av, const struct dev_desc *desc, uint64_t *idx)
{
	struct dgram_av_entry e = { .refs = 1, .len = desc->len };
	uint64_t known;

	if (desc->len > sizeof(e.key))
		return -FI_EINVAL;
	memcpy(&e.key, desc->bytes, desc->len);
	known = dgram_map_get(&av->map, &e.key);
	if (known == DGRAM_NONE)
		return dgram_av_add(av, &e, idx);
	if (av->entries[known].refs == UINT32_MAX)
		return -FI_ENOMEM;
	av->entries[known].refs++;
	*idx = known;
	return 0;
}

int dgram_av_remove(struct dgram_av *av, uint64_t idx, bool *gone)
{
	if (idx >= av->end || !av->entries[idx].refs)
		return -FI_EINVAL;
	*gone = !--av->entries[idx].refs;
	if (!*gone)
		return 0;
	dgram_map_erase(&av->map, &av->entries[idx].key);
	if (av->free_from > idx)
		av->free_from = idx;
	return 0;
}

bool dgram_av_desc(const struct dgram_av *av, uint64_t idx, struct dev_desc *desc)
{
	if (idx >= av->end || !av->entries[idx].refs)
		return false;
	desc->len = av->entries[idx].len;
	desc->fd_cnt = 0;
	memcpy(desc->bytes, &av->entries[idx].key, desc->len);
	return true;
}
