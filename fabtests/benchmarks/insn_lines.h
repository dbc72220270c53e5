/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cache lines that messages to one peer touch and messages to others do not. Called by insn_count.
 *
 * The counted section consists of rounds. In each round a few peers, of which none takes part in
 * another round, exchange messages between two ends of one process. A line that is touched in one
 * round only belongs to the peers of that round. All others are common to the peers: stacks,
 * queues, counters. Lines that are used in turn, as slots of a long queue, count for their rounds,
 * too.
 */
#ifndef INSN_LINES_H
#define INSN_LINES_H

#include <stdint.h>
#include <stdio.h>

#define INSN_LINE_LEN 64u
#define INSN_ENDS     2u

/** Begins the section: no line has been touched. */
void insn_lines_begin(void);

/** Sets the round and the end, 0 or 1, that the following accesses belong to. */
void insn_lines_at(uint32_t round, unsigned end);

/** Notes an access by the instruction at `pc`. Exits without memory. */
void insn_lines_touch(uint64_t addr, uint32_t len, uint64_t pc);

/**
 * Calls `print` for each end of each line that was touched in one round only, with the first
 * instruction of that end that did.
 */
void insn_lines_each(void (*print)(void *arg, unsigned end, uint64_t addr, uint64_t pc), void *arg);

#endif
