/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes of one program, a device each, that talk over a socket besides: what the tests of
 * the device layer share.
 *
 * pair_run() starts this program twice over, as side 0 and side 1; under the device model they are
 * nodes 0 and 1. DEV_LINK_DEVICE0 and DEV_LINK_DEVICE1 name their devices (default: the best one).
 */
#ifndef INTEG_DEV_PAIR_H
#define INTEG_DEV_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "side %d: %s:%d: %s\n", side, __FILE__, __LINE__, #x);     \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

extern int side;

/** Random, the same in every run, different at the two sides. */
uint64_t pair_rand(void);

/** Byte i of message seq. */
uint8_t pair_pattern(uint32_t seq, uint64_t i);

/** To and from the other process, whole. */
void pair_tell(const void *bytes, size_t len);
void pair_hear(void *bytes, size_t len);
/** Something is there to hear. */
bool pair_was_told(void);
/** Both are here. */
void pair_meet(void);

/**
 * Runs `play` at both sides: 0 if both end well. killed: side 1 must end by SIGKILL instead. Sets
 * util_params.device before.
 */
int pair_run(char **argv, void (*play)(void), bool killed);

#endif
