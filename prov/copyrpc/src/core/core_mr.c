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
	util_idmap_init(&table->descs);
	pthread_mutex_init(&table->use_lock, NULL);
}

void core_mr_table_fini(struct core_mr_table *table)
{
	free(table->slots);
	util_idmap_fini(&table->descs);
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

struct core_mr *core_mr_find(const struct core_mr_table *table, uint64_t key)
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

/** Enters a region in the slots. */
static int core_mr_list(struct core_mr_table *table, struct core_mr *mr)
{
	int ret;

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

/** Assigns a descriptor. Without memory for one, the region has none, which is correct too. */
static void core_mr_describe(struct core_mr_table *table, struct core_mr *mr)
{
	uint32_t id;

	if (!util_idmap_alloc(&table->descs, mr, &id))
		mr->desc = (void *)((uintptr_t)id + 1);
}

int core_mr_add(struct core_dom *dom, struct core_mr *mr, bool prov_key)
{
	struct core_mr_table *table = dom->mrs;
	int ret = prov_key ? core_mr_choose_key(table, &mr->key) : 0;

	mr->listed = false;
	mr->users = 0;
	mr->table = table;
	mr->desc = NULL;
	mr->regs = NULL;
	mr->unfit = false;
	util_list_init(&mr->deferred);
	util_list_init(&mr->lessees);
	if (!ret && (mr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE)))
		ret = core_mr_list(table, mr);
	if (!ret)
		core_mr_describe(table, mr);
	return ret;
}

void core_mr_remove(struct core_dom *dom, struct core_mr *mr)
{
	struct core_mr **at;

	if (mr->desc)
		util_idmap_release(&dom->mrs->descs, (uint32_t)((uintptr_t)mr->desc - 1));
	mr->desc = NULL;
	if (!mr->listed)
		return;
	for (at = core_mr_slot(dom->mrs, mr->key); *at != mr; at = &(*at)->next)
		;
	*at = mr->next;
	mr->listed = false;
	dom->mrs->cnt--;
	CORE_MODULES_CALL(mr_revoke, mr, false);
}

void core_mr_use(struct core_dom *dom, struct core_mr *mr, bool counts, struct util_list *link)
{
	pthread_mutex_lock(&dom->mrs->use_lock);
	mr->users += counts;
	util_list_push_back(&mr->deferred, link);
	pthread_mutex_unlock(&dom->mrs->use_lock);
}

void core_mr_add_lessee(struct core_dom *dom, struct core_mr *mr, struct util_list *lessee)
{
	pthread_mutex_lock(&dom->mrs->use_lock);
	util_list_push_back(&mr->lessees, lessee);
	pthread_mutex_unlock(&dom->mrs->use_lock);
}

void core_mr_unuse(struct core_dom *dom, struct core_mr *mr, bool counts, struct util_list *link)
{
	pthread_mutex_lock(&dom->mrs->use_lock);
	mr->users -= counts;
	util_list_remove(link);
	pthread_mutex_unlock(&dom->mrs->use_lock);
}

static struct core_reg *core_mr_find_reg(const struct core_mr *mr, const void *dev, unsigned access)
{
	struct core_reg *reg = __atomic_load_n(&mr->regs, __ATOMIC_ACQUIRE);

	while (reg && (reg->dev != dev || reg->access != access))
		reg = reg->next;
	return reg;
}

/** Registers a region. The domain's lock is held: no other thread does so with this device. */
static struct core_reg *core_mr_new_reg(struct core_mr *mr, struct core_chan *chan, unsigned access)
{
	struct core_reg *reg;

	if (!mr->fixed || mr->iov_cnt != 1 || __atomic_load_n(&mr->unfit, __ATOMIC_RELAXED))
		return NULL;
	if (chan->ops->reg(chan, mr->iov[0].iov_base, mr->len, access, &reg)) {
		__atomic_store_n(&mr->unfit, true, __ATOMIC_RELAXED);
		return NULL;
	}
	pthread_mutex_lock(&mr->table->use_lock);
	reg->next = mr->regs;
	__atomic_store_n(&mr->regs, reg, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&mr->table->use_lock);
	return reg;
}

struct core_reg *core_mr_reg(struct core_mr *mr, struct core_chan *chan, unsigned access)
{
	struct core_reg *reg = core_mr_find_reg(mr, chan->reg_dev, access);

	return reg ? reg : core_mr_new_reg(mr, chan, access);
}

bool core_mr_is_busy(const struct core_mr *mr)
{
	const struct core_reg *reg = mr->regs;

	while (reg && !reg->users)
		reg = reg->next;
	return reg || mr->users || !util_list_is_empty(&mr->lessees);
}

void core_mr_dereg(struct core_mr *mr)
{
	struct core_reg *reg;

	while ((reg = mr->regs)) {
		mr->regs = reg->next;
		reg->close(reg);
	}
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
