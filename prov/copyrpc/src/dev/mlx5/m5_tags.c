/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Changes of a table of tagged receives that completions report: see m5_tags.h. */
#include "dev/mlx5/m5_tags.h"

#include <stddef.h>

static enum m5_tags_state m5_tags_state(const struct m5_tags *tags, uint32_t index)
{
	return index < tags->cnt ? tags->entry[index].state : M5_TAGS_FREE;
}

void *m5_tags_matched(struct m5_tags *tags, uint32_t index, uint32_t qpn)
{
	enum m5_tags_state state = m5_tags_state(tags, index);

	if (state != M5_TAGS_LISTED && state != M5_TAGS_REMOVING)
		return NULL;
	tags->entry[index].state = state == M5_TAGS_LISTED ? M5_TAGS_MATCHED : M5_TAGS_MISSED;
	tags->entry[index].qpn = qpn;
	tags->listed_cnt--;
	return tags->entry[index].user;
}

void *m5_tags_ended(struct m5_tags *tags, uint32_t index)
{
	switch (m5_tags_state(tags, index)) {
	case M5_TAGS_MATCHED: m5_tags_free(tags, index); return tags->entry[index].user;
	case M5_TAGS_MISSED:
		tags->entry[index].state = M5_TAGS_LATE;
		return tags->entry[index].user;
	default: return NULL;
	}
}

static bool m5_tags_remove_failed(struct m5_tags *tags, uint32_t index)
{
	switch (m5_tags_state(tags, index)) {
	case M5_TAGS_MISSED: tags->entry[index].state = M5_TAGS_MATCHED; return true;
	case M5_TAGS_LATE: m5_tags_free(tags, index); return true;
	default: return false;
	}
}

bool m5_tags_removed(struct m5_tags *tags, uint32_t index, bool success, void **user)
{
	*user = NULL;
	if (!success)
		return m5_tags_remove_failed(tags, index);
	if (m5_tags_state(tags, index) == M5_TAGS_DROPPED) {
		m5_tags_free(tags, index);
		return true;
	}
	if (m5_tags_state(tags, index) != M5_TAGS_REMOVING)
		return false;
	*user = tags->entry[index].user;
	tags->listed_cnt--;
	m5_tags_free(tags, index);
	return true;
}

void *m5_tags_abandon(struct m5_tags *tags, uint32_t qpn)
{
	for (uint32_t i = 0; i < tags->cnt; i++)
		if (tags->entry[i].qpn == qpn && (tags->entry[i].state == M5_TAGS_MATCHED ||
						  tags->entry[i].state == M5_TAGS_MISSED))
			return m5_tags_ended(tags, i);
	return NULL;
}
