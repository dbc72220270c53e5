/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tables of the segment: claim an entry, make it visible under its number, let it go.
 *
 * An object's number is its index in the low bits and a generation above; a memory region's key has the
 * generation in its low byte. Numbers that mean something else to the device are never given: QP 0 and 1,
 * and the keys that end a scatter list.
 */
#ifndef MDL_TABLE_H
#define MDL_TABLE_H

#include "model/mdl_objects.h"

enum mdl_table {
	MDL_TABLE_PD,
	MDL_TABLE_MR,
	MDL_TABLE_CQ,
	MDL_TABLE_SRQ,
	MDL_TABLE_QP,
	MDL_TABLE_CM,
	MDL_TABLE_MAX
};

/* A zeroed entry that belongs to this process, and the number that it will have. Null: the table is full. */
void *mdl_table_claim(enum mdl_table table, uint32_t ctx, uint32_t *number);
/* From here on mdl_table_find() gives it. */
void mdl_table_publish(void *object, uint32_t number);
/* Its number means nothing from here on. */
void mdl_table_hide(void *object);
/* The entry may be used again. After mdl_table_hide(). */
void mdl_table_release(void *object);

/* The object with that number, of whatever process; null: none. */
void *mdl_table_find(enum mdl_table table, uint32_t number);
/* The next object of a context of this process at or after *index, which is moved past it; null: no more. */
void *mdl_table_next(enum mdl_table table, uint32_t ctx, uint32_t *index);

/*
 * Is an object in this place, and is it this process's? Under its lock it stays so; without, for a filter
 * only.
 */
bool mdl_table_is_own(const void *object);

/* Everything that belongs to a process that is dead: objects, event channels, pages. */
void mdl_table_drop(uint32_t slot);
/* Its pages alone. */
void mdl_pages_drop(uint32_t slot);

#endif /* MDL_TABLE_H */
