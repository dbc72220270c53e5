/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables of the segment. All are arrays of structs that begin with the same four words, so that one
 * set of functions serves them.
 */
#include "model/fabric/mdl_table.h"
#include "model/fabric/mdl_segment.h"

#include <stddef.h>
#include <string.h>

/* The first words of every object. */
struct head {
	uint32_t number, claimed, proc, ctx;
};

static const struct shape {
	size_t base, stride;
	uint32_t count;     /* power of two */
	uint32_t first;     /* entries below are not used */
	uint32_t index_low; /* lowest bit of the index; the generation is below it */
	uint32_t bits;      /* bits of a number */
	size_t lock;        /* offset of the first lock; 0: none */
	uint32_t locks;     /* number of consecutive locks */
} shapes[MDL_TABLE_MAX] = {
	[MDL_TABLE_PD] = { offsetof(struct mdl_segment, pd), sizeof(struct mdl_pd), MDL_PD_MAX, 1,
			   0, 24, 0, 0 },
	[MDL_TABLE_MR] = { offsetof(struct mdl_segment, mr), sizeof(struct mdl_mr), MDL_MR_MAX, 16,
			   8, 24, 0, 0 },
	[MDL_TABLE_CQ] = { offsetof(struct mdl_segment, cq), sizeof(struct mdl_cq), MDL_CQ_MAX, 1,
			   0, 24, offsetof(struct mdl_cq, lock), 1 },
	[MDL_TABLE_SRQ] = { offsetof(struct mdl_segment, srq), sizeof(struct mdl_srq), MDL_SRQ_MAX,
			    1, 0, 24, offsetof(struct mdl_srq, lock), 2 },
	[MDL_TABLE_CM] = { offsetof(struct mdl_segment, cm_id), sizeof(struct mdl_cm_id),
			   MDL_CM_MAX, 1, 0, 24, 0, 0 },
	[MDL_TABLE_QP] = { offsetof(struct mdl_segment, qp), sizeof(struct mdl_qp), MDL_QP_MAX, 2,
			   0, 24, offsetof(struct mdl_qp, sq_lock), 2 },
};

static struct head *entry(const struct shape *shape, uint32_t index)
{
	return (struct head *)((char *)mdl_self.seg + shape->base + index * shape->stride);
}

/*
 * Returns the end of the entries that were ever claimed. Reading those beyond it would allocate
 * their pages.
 */
static uint32_t high_water(enum mdl_table table)
{
	uint32_t taken = __atomic_load_n(&mdl_self.seg->next[table], __ATOMIC_RELAXED);

	return taken < shapes[table].count ? taken : shapes[table].count;
}

static uint32_t make_number(const struct shape *shape, uint32_t index)
{
	uint32_t generation = __atomic_add_fetch(&mdl_self.seg->generation, 1, __ATOMIC_RELAXED);
	uint32_t space = shape->index_low ? 0xff : (1u << shape->bits) / shape->count - 1;

	generation = 1 + generation % space;
	return shape->index_low ? index << shape->index_low | generation
				: generation * shape->count + index;
}

static uint32_t number_index(const struct shape *shape, uint32_t number)
{
	return (number >> shape->index_low) & (shape->count - 1);
}

static struct mdl_lock *object_lock(const struct shape *shape, struct head *head, uint32_t i)
{
	return (struct mdl_lock *)((char *)head + shape->lock) + i;
}

/*
 * Clears the fields of the previous object in this entry. A thread that watches doorbells may be
 * taking the previous object's locks, so the locks stay and are held meanwhile.
 */
static void clear(const struct shape *shape, struct head *head)
{
	char *from = (char *)(head + 1), *end = (char *)head + shape->stride;
	char *locks = (char *)head + shape->lock;

	if (!shape->locks) {
		memset(from, 0, (size_t)(end - from));
		return;
	}
	for (uint32_t i = 0; i < shape->locks; i++) {
		mdl_lock_init(object_lock(shape, head, i));
		mdl_lock(object_lock(shape, head, i));
	}
	memset(from, 0, (size_t)(locks - from));
	from = locks + shape->locks * sizeof(struct mdl_lock);
	memset(from, 0, (size_t)(end - from));
	for (uint32_t i = shape->locks; i-- > 0;)
		mdl_unlock(object_lock(shape, head, i));
}

void *mdl_table_claim(enum mdl_table table, uint32_t ctx, uint32_t *number)
{
	const struct shape *shape = &shapes[table];
	struct mdl_segment *seg = mdl_self.seg;
	struct head *found = NULL;

	mdl_lock(&seg->table_lock);
	for (uint32_t tried = 0; tried < shape->count && !found; tried++) {
		uint32_t index = __atomic_fetch_add(&seg->next[table], 1, __ATOMIC_RELAXED) &
				 (shape->count - 1);
		struct head *head = entry(shape, index);

		if (__atomic_load_n(&head->claimed, __ATOMIC_ACQUIRE) || index < shape->first)
			continue;
		__atomic_store_n(&head->proc, mdl_self.slot, __ATOMIC_RELAXED);
		__atomic_store_n(&head->ctx, ctx, __ATOMIC_RELAXED);
		__atomic_store_n(&head->claimed, 1, __ATOMIC_RELEASE);
		*number = make_number(shape, index);
		found = head;
	}
	mdl_unlock(&seg->table_lock);
	if (found)
		clear(shape, found);
	return found;
}

void mdl_table_publish(void *object, uint32_t number)
{
	struct head *head = object;

	__atomic_store_n(&head->number, number, __ATOMIC_RELEASE);
}

void mdl_table_hide(void *object)
{
	struct head *head = object;

	__atomic_store_n(&head->number, 0, __ATOMIC_RELEASE);
}

void mdl_table_release(void *object)
{
	struct head *head = object;

	__atomic_store_n(&head->claimed, 0, __ATOMIC_RELEASE);
}

void *mdl_table_find(enum mdl_table table, uint32_t number)
{
	struct head *head = entry(&shapes[table], number_index(&shapes[table], number));

	if (!number || __atomic_load_n(&head->number, __ATOMIC_ACQUIRE) != number)
		return NULL;
	return head;
}

bool mdl_table_is_own(const void *object)
{
	const struct head *head = object;

	return __atomic_load_n(&head->number, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&head->proc, __ATOMIC_RELAXED) == mdl_self.slot;
}

void *mdl_table_next(enum mdl_table table, uint32_t ctx, uint32_t *index)
{
	const struct shape *shape = &shapes[table];

	while (*index < high_water(table)) {
		struct head *head = entry(shape, (*index)++);

		if (mdl_table_is_own(head) && __atomic_load_n(&head->ctx, __ATOMIC_RELAXED) == ctx)
			return head;
	}
	return NULL;
}

struct mdl_qp *mdl_qp_find(uint32_t qpn)
{
	return mdl_table_find(MDL_TABLE_QP, qpn);
}

struct mdl_cq *mdl_cq_find(uint32_t cqn)
{
	return mdl_table_find(MDL_TABLE_CQ, cqn);
}

struct mdl_srq *mdl_srq_find(uint32_t srqn)
{
	return mdl_table_find(MDL_TABLE_SRQ, srqn);
}

struct mdl_mr *mdl_mr_find(uint32_t key)
{
	return mdl_table_find(MDL_TABLE_MR, key);
}

struct mdl_port *mdl_port_by_lid(uint16_t lid)
{
	struct mdl_segment *seg = mdl_self.seg;
	uint32_t n = lid & (MDL_LID_MOVED - 1u);

	if (seg->link != MDL_LINK_IB || !n || n > seg->port_cnt)
		return NULL;
	return __atomic_load_n(&seg->port[n - 1].lid, __ATOMIC_ACQUIRE) == lid ? &seg->port[n - 1]
									       : NULL;
}

struct mdl_port *mdl_port_by_gid(const uint8_t gid[16])
{
	struct mdl_segment *seg = mdl_self.seg;

	for (uint32_t n = 0; n < seg->port_cnt; n++)
		for (uint32_t i = 0; i < seg->port[n].gid_cnt; i++)
			if (!memcmp(seg->port[n].gid[i], gid, 16))
				return &seg->port[n];
	return NULL;
}

/* Removes a QP of a dead process. Takes its locks, as a peer may be executing on it. */
static void drop_qp(struct mdl_qp *qp)
{
	mdl_lock(&qp->sq_lock);
	mdl_lock(&qp->rq_lock);
	mdl_table_hide(qp);
	mdl_unlock(&qp->rq_lock);
	mdl_unlock(&qp->sq_lock);
	mdl_table_release(qp);
}

static void drop_cq(struct mdl_cq *cq)
{
	mdl_lock(&cq->lock);
	mdl_table_hide(cq);
	mdl_unlock(&cq->lock);
	mdl_table_release(cq);
}

static void drop_srq(struct mdl_srq *srq)
{
	mdl_lock(&srq->tm_lock);
	mdl_lock(&srq->lock);
	mdl_table_hide(srq);
	mdl_unlock(&srq->lock);
	mdl_unlock(&srq->tm_lock);
	mdl_table_release(srq);
}

static void drop_object(enum mdl_table table, struct head *head)
{
	if (head->number && table == MDL_TABLE_QP)
		drop_qp((struct mdl_qp *)head);
	else if (head->number && table == MDL_TABLE_CQ)
		drop_cq((struct mdl_cq *)head);
	else if (head->number && table == MDL_TABLE_SRQ)
		drop_srq((struct mdl_srq *)head);
	mdl_table_hide(head);
	mdl_table_release(head);
}

static void drop_channels(uint32_t slot)
{
	for (uint32_t i = 0; i < mdl_self.seg->chan_end; i++) {
		struct mdl_chan *chan = &mdl_self.seg->chan[i];

		if (chan->used && chan->proc == slot)
			__atomic_store_n(&chan->used, 0, __ATOMIC_RELEASE);
	}
}

void mdl_table_drop(uint32_t slot)
{
	for (int table = MDL_TABLE_MAX - 1; table >= 0; table--) {
		const struct shape *shape = &shapes[table];

		uint32_t end = high_water((enum mdl_table)table);

		for (uint32_t index = shape->first; index < end; index++) {
			struct head *head = entry(shape, index);

			if (head->claimed && head->proc == slot)
				drop_object((enum mdl_table)table, head);
		}
	}
	drop_channels(slot);
	mdl_pages_drop(slot);
}
