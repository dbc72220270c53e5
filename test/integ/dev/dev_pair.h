/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes of one program, a device each, with a socket between them: fixture of the tests of
 * the device layer.
 *
 * pair_run() starts this program twice, as side 0 and side 1; under the device model they are nodes
 * 0 and 1. DEV_LINK_DEVICE0 and DEV_LINK_DEVICE1 name their devices (default: the best one).
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

/** Returns random numbers, the same in every run, different at the two sides. */
uint64_t pair_rand(void);

/** Byte i of message seq. */
uint8_t pair_pattern(uint32_t seq, uint64_t i);

/** Sends a block to, or receives one from, the other process. */
void pair_tell(const void *bytes, size_t len);
void pair_hear(void *bytes, size_t len);
/** Returns true if a block can be received. */
bool pair_has_arrival(void);
/** Waits until both sides have called it. */
void pair_meet(void);

/**
 * Runs `play` at both sides. Returns 0 if both end well. killed: side 1 must end by SIGKILL
 * instead. Sets util_params.device before.
 */
int pair_run(char **argv, void (*play)(void), bool killed);

#endif
