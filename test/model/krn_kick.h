/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kick mode: a store that trapped once is replaced by a call of the model.
 *
 * Pages are protected as in trap mode. After a store has trapped, a jump replaces it, to a few
 * instructions that save all registers and go to krn_run(). Programs need no change and counters
 * stay equal; a doorbell costs a tenth.
 *
 * Reasons why rewriting is safe:
 *   - One whole instruction is replaced, and no byte of another, so jumps to it or past it stay
 *     valid. If the store is shorter than the jump's five bytes, the jump's last bytes are those
 *     that follow the store, and its target is chosen to match.
 *   - Other threads may execute the instruction meanwhile. First a faulting byte is written; a
 *     thread that hits it tries again. The other bytes follow, then the first. Between the steps
 *     every processor refetches its instructions (membarrier).
 *   - A store through the same instruction to other memory is executed by a copy of it.
 *   - Other cases trap as before: no room where the jump must lead, an instruction that depends on
 *     its address, the C library's copies.
 */
#ifndef KRN_KICK_H
#define KRN_KICK_H

#include <stdbool.h>
#include <stdint.h>

/* Prepares kick mode. Called before the first trap, outside of handlers. */
void krn_kick_prepare(void);
/* Rewrites the store at rip, which has trapped, if possible. Called inside the handler. */
void krn_kick_install(uint64_t rip);
/* Returns the original bytes of the instruction at rip, or null if it was not rewritten. */
const uint8_t *krn_kick_code(uint64_t rip);
/* Reverts in a child of fork() a rewrite that another thread had begun. */
void krn_kick_forget(void);

#endif /* KRN_KICK_H */
