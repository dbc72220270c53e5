/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions and their table. See core_mr.h. */
#include "core/core_mr.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/core_dom.h"
#include "core/core_module.h"

#define CORE_MR_SLOTS_MIN 16u

void core_mr_table_init(struct core_mr_table *table)
{
	memset(table, 0, sizeof(*table));
	pthread_mutex_init(&table->use_lock, NULL);
}

void core_mr_table_fini(struct core_mr_table *table)
{
	free(table->slots);
	pthread_mutex_destroy(&table->use_lock);
}

/**
 * Returns the slot of a key. Keys are often small numbers or addresses: the upper bits of the
 * product depend on all bits of the key.
 */
static struct core_mr **core_mr_slot(const struct core_mr_table *table, uint64_t key)
{
	return &table->slots[(key * 0x9E3779B97F4A7C15u >> 32) & (table->slot_cnt - 1)];
}

static struct core_mr *core_mr_find(const struct core_mr_table *table, uint64_t key)
{
	struct core_mr *mr;

	if (!table->slot_cnt)
		return NULL;
	for (mr = *core_mr_slot(table, key); mr && mr->key != key; mr = mr->next)
		;
	return mr;
}

static void core_mr_link(struct core_mr_table *table, struct core_mr *mr)
{
	struct core_mr **slot = core_mr_slot(table, mr->key);

	mr->next = *slot;
	*slot = mr;
}

/** Makes room for one more region: doubles the slots when there are as many regions. */
static int core_mr_table_grow(struct core_mr_table *table)
{
	uint64_t old_cnt = table->slot_cnt, cnt = old_cnt ? 2 * old_cnt : CORE_MR_SLOTS_MIN;
	struct core_mr **old = table->slots, **slots, *mr, *next;

	if (table->cnt < old_cnt)
		return 0;
	slots = calloc(cnt, sizeof(*slots));
	if (!slots)
		return -FI_ENOMEM;
	table->slots = slots;
	table->slot_cnt = cnt;
	for (uint64_t i = 0; i < old_cnt; i++) {
		for (mr = old[i]; mr; mr = next) {
			next = mr->next;
			core_mr_link(table, mr);
		}
	}
	free(old);
	return 0;
}

/** Draws a random number. */
static int core_mr_draw(struct core_mr_table *table, uint64_t *v)
{
	if (!table->key_cnt) {
		if (getrandom(table->keys, sizeof(table->keys), 0) != sizeof(table->keys))
			return -FI_EIO;
		table->key_cnt = CORE_MR_KEYS;
	}
	*v = table->keys[--table->key_cnt];
	table->keys[table->key_cnt] = 0;
	return 0;
}

/** Chooses a key that no region of the table has, and that fi_mr_key never returns for an error. */
static int core_mr_choose_key(struct core_mr_table *table, uint64_t *key)
{
	int ret;

	do {
		ret = core_mr_draw(table, key);
	} while (!ret && (!*key || *key == FI_KEY_NOTAVAIL || core_mr_find(table, *key)));
	return ret;
}

int core_mr_add(struct core_dom *dom, struct core_mr *mr, bool prov_key)
{
	struct core_mr_table *table = dom->mrs;
	int ret = prov_key ? core_mr_choose_key(table, &mr->key) : 0;

	mr->listed = false;
	mr->users = 0;
	util_list_init(&mr->exposures);
	if (ret)
		return ret;
	if (!(mr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE)))
		return 0;
	if (core_mr_find(table, mr->key))
		return -FI_ENOKEY;
	ret = core_mr_table_grow(table);
	if (ret)
		return ret;
	core_mr_link(table, mr);
	mr->listed = true;
	table->cnt++;
	return 0;
}

void core_mr_remove(struct core_dom *dom, struct core_mr *mr)
{
	struct core_mr **at;

	if (!mr->listed)
		return;
	for (at = core_mr_slot(dom->mrs, mr->key); *at != mr; at = &(*at)->next)
		;
	*at = mr->next;
	mr->listed = false;
	dom->mrs->cnt--;
	CORE_MODULES_CALL(mr_revoke, mr, false);
}

void core_mr_use(struct core_dom *dom, struct core_mr *mr, bool counts, struct util_list *exposure)
{
	pthread_mutex_lock(&dom->mrs->use_lock);
	mr->users += counts;
	if (exposure)
		util_list_push_back(&mr->exposures, exposure);
	pthread_mutex_unlock(&dom->mrs->use_lock);
}

void core_mr_unuse(struct core_dom *dom, struct core_mr *mr, bool counts,
		   struct util_list *exposure)
{
	pthread_mutex_lock(&dom->mrs->use_lock);
	mr->users -= counts;
	util_list_remove(exposure);
	pthread_mutex_unlock(&dom->mrs->use_lock);
}

/** Finds and checks the region of an access. Returns 0 and the offset in the region, or -FI_E*. */
static int core_mr_locate(struct core_dom *dom, uint64_t key, uint64_t addr, size_t len,
			  uint64_t access, struct core_mr **out, uint64_t *off)
{
	struct core_mr *mr = core_mr_find(dom->mrs, key);

	if (!mr)
		return -FI_EKEYREJECTED;
	if (access & ~mr->access)
		return -FI_EACCES;
	/* Each compares with the rest: no sum that could wrap. */
	if (addr < mr->base || addr - mr->base > mr->len || len > mr->len - (addr - mr->base))
		return -FI_EINVAL;
	*off = addr - mr->base;
	*out = mr;
	return 0;
}

int core_mr_reach_iov(struct core_dom *dom, uint64_t key, uint64_t addr, size_t len,
		      uint64_t access, struct iovec iov[CORE_MR_IOV_MAX], size_t *iov_cnt,
		      struct core_mr **mr)
{
	uint64_t off;
	size_t cnt = 0, part;
	int ret = core_mr_locate(dom, key, addr, len, access, mr, &off);

	if (ret)
		return ret;
	for (size_t i = 0; i < (*mr)->iov_cnt && (len || !cnt); i++) {
		const struct iovec *from = &(*mr)->iov[i];

		if (off > from->iov_len || (off == from->iov_len && len)) {
			off -= from->iov_len;
			continue;
		}
		part = from->iov_len - off < len ? from->iov_len - off : len;
		iov[cnt].iov_base = (uint8_t *)from->iov_base + off;
		iov[cnt++].iov_len = part;
		len -= part;
		off = 0;
	}
	*iov_cnt = cnt;
	return 0;
}
