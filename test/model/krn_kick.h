/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kick mode: a store that trapped once is from then on a call of the model.
 *
 * Pages are protected as in trap mode. When a store has trapped, a jump is put in its place, to a
 * few instructions that save all registers and go to krn_run(). So no program needs to know of it,
 * and nothing that counts changes; a doorbell costs a tenth.
 *
 * What makes it sound:
 *   - one whole instruction is replaced, and no byte of another: whoever jumps to it or past it
 *   finds
 *     what he expects. Where the store is shorter than the jump's five bytes, the jump's last
 *     bytes are
 *     those that follow the store, and its target is chosen to suit;
 *   - other threads may be there meanwhile: first a byte that faults is put there, and who runs
 *   into it
 *     tries again; the other bytes follow, then the first; between the steps every processor is
 *     made to
 *     look afresh (membarrier);
 *   - a store through the same instruction to somewhere else is carried out by a copy of the
 *   instruction;
 *   - what cannot be done (no room where the jump must lead, an instruction that depends on where
 *   it
 *     stands, the C library's copies) is left alone and traps as before.
 */
#ifndef KRN_KICK_H
#define KRN_KICK_H

#include <stdbool.h>
#include <stdint.h>

/* Before the first trap, outside of handlers. */
void krn_kick_prepare(void);
/* Rewrites the store at rip, which has trapped, if it can be. Inside the handler. */
void krn_kick_install(uint64_t rip);
/* The bytes of the instruction that stood at rip, or null where nothing else was put. */
const uint8_t *krn_kick_code(uint64_t rip);
/* After fork(), in the child: what another thread had begun is undone. */
void krn_kick_forget(void);

#endif /* KRN_KICK_H */
