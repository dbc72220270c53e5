/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * User of a fuzzer's endpoint: posts operations as a script selects them, each with a buffer of its
 * own, which is freed when the operation ends. Checks that each ends once. Used by fuzz_core_rx.c.
 */
#ifndef FUZZ_CORE_USER_H
#define FUZZ_CORE_USER_H

#include <stdbool.h>
#include <stdint.h>

#include "fuzz/script.h"

extern struct script script;

/** Opens the endpoint with a region, FORGE_KEY, and a group of all peers, forge_group. */
void user_open(void);
/** Closes it, and checks that nothing is left. */
void user_close(void);

/** Posts operation `what`, modulo their number, or uses what has come; `how`: its arguments. */
void user_act(uint8_t what, uint8_t how);
/** Makes progress, and reads the completions if `reads`. */
void user_progress(bool reads);

/** Returns a small tag, or one with bits that name the sender in the request of a device. */
uint64_t user_tag(void);

#endif
