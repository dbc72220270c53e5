/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables of the segment: claim an entry, publish it under its number, release it.
 *
 * An object's number is its index in the low bits and a generation above; a memory region's key has
 * the generation in its low byte. Numbers with a special meaning to the device are never assigned:
 * QP 0 and 1, and the keys that end a scatter list.
 */
#ifndef MDL_TABLE_H
#define MDL_TABLE_H

#include "model/fabric/mdl_objects.h"

enum mdl_table {
	MDL_TABLE_PD,
	MDL_TABLE_MR,
	MDL_TABLE_CQ,
	MDL_TABLE_SRQ,
	MDL_TABLE_QP,
	MDL_TABLE_CM,
	MDL_TABLE_MAX
};

/*
 * Claims a zeroed entry for this process and sets its future number. Returns null if the table is
 * full.
 */
void *mdl_table_claim(enum mdl_table table, uint32_t ctx, uint32_t *number);
/* Makes the object visible to mdl_table_find(). */
void mdl_table_publish(void *object, uint32_t number);
/* Removes the object from mdl_table_find(). */
void mdl_table_hide(void *object);
/* Frees the entry, after mdl_table_hide(). */
void mdl_table_release(void *object);

/* Returns the object with that number, of any process, or null. */
void *mdl_table_find(enum mdl_table table, uint32_t number);
/*
 * Returns the next object of a context of this process at or after *index, and moves *index past
 * it. Returns null at the end.
 */
void *mdl_table_next(enum mdl_table table, uint32_t ctx, uint32_t *index);

/*
 * Returns true if the entry has an object of this process. Stable under the object's lock; without
 * the lock, a filter only.
 */
bool mdl_table_is_own(const void *object);

/* Frees all that belongs to a dead process: objects, event channels, pages. */
void mdl_table_drop(uint32_t slot);
/* Frees the pages of a process. */
void mdl_pages_drop(uint32_t slot);

#endif /* MDL_TABLE_H */
