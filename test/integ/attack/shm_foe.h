/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hostile peer of shm_attacked: a process that connects as any other, exchanges a few messages, and
 * then scribbles over all memory that it shares with its peer. It ends after a moment, and the next
 * one connects.
 */
#ifndef SHM_FOE_H
#define SHM_FOE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define FOE_TAG      0xf0e0000000000000ull
#define FOE_LEN      (256u << 10) /* bytes of a long message, either way */
#define FOE_MESSAGES 4u           /* long messages each way of one life */
#define FOE_PACE     50000u       /* honest messages from one life to the next, at least */

/** Memory of the attacked process and its foes. */
struct foe_desk {
	struct sockaddr_in victim;
	struct sockaddr_in foe; /* address of the foe of this life */
	uint32_t life;          /* counts foes; set after `foe` */
	uint32_t armed;         /* 0: the foe scribbles over memory of its own, equally long */
	uint32_t lives[2];      /* foes that scribbled, without and with effect */
	uint64_t honest_cnt;    /* honest messages so far */
};

/** Returns true if `name` is an attack. */
bool foe_knows(const char *name);

/** Prints the names of all attacks. */
void foe_list(void);

/** Runs one foe after the other, until the process is killed. */
void foe_run(struct foe_desk *desk, uint64_t seed, const char *attack);

#endif
