/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where does memory come from that was given back a moment ago?
 *
 * Blocks of any length, kept when they are given back, up to a limit. The heap would return them to the
 * kernel as soon as 128 KiB at its end are free, and a message that arrives before its receive would cost a page fault
 * for each of its pages: several times as much as to copy it. Classes are a quarter of a power
 * of two apart, so that a fifth of a block is wasted at most; what is shorter or longer than that is the heap's.
 * Not locked: the owner's lock covers it.
 *
 * Shown by test/unit/util/test_spare.c.
 */
#ifndef UTIL_SPARE_H
#define UTIL_SPARE_H

#include <stddef.h>

#define UTIL_SPARE_MIN     256u        /* bytes: no block is as short as that, */
#define UTIL_SPARE_MAX     (64u << 10) /* and none longer */
#define UTIL_SPARE_CLASSES 32          /* from 256 bytes to 64 KiB, four to a doubling */

struct util_spare_block {
	struct util_spare_block *next;
};

struct util_spare {
	struct util_spare_block *free[UTIL_SPARE_CLASSES];
	size_t kept;     /* bytes in `free` */
	size_t kept_max; /* and at most */
};

/** Keeps nothing yet, and later `kept_max` bytes at most. */
void util_spare_init(struct util_spare *spare, size_t kept_max);

/** Gives what is kept back to the heap. */
void util_spare_fini(struct util_spare *spare);

/** At least `len` bytes of undefined content, aligned as malloc does; or NULL: no memory. */
void *util_spare_alloc(struct util_spare *spare, size_t len);

/** Gives back what alloc returned for the same `len`. */
void util_spare_free(struct util_spare *spare, void *block, size_t len);

#endif
