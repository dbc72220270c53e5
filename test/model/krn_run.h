/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Carries out a program's store to a UAR page in its place: in the handler of SIGSEGV (krn_trap.c),
 * or called from where the store stood (krn_kick.c). Either way all that the store means has
 * happened before the program's next instruction.
 */
#ifndef KRN_RUN_H
#define KRN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#define KRN_REG_SP 4 /* in krn_cpu.regs */

/* A program that is held up at an instruction. */
struct krn_cpu {
	uint64_t regs
		[16]; /* in the processor's order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ... */
	uint64_t rip, flags;
	void *vectors;    /* an XSAVE area in its standard form */
	bool keeps_stack; /* rsp must not change: what runs stands on the program's stack */
};

/*
 * The store at rip and what follows it, up to the last of a row of stores to UAR pages. False:
 * there is no such store, nothing was done.
 */
bool krn_run(struct krn_cpu *cpu);

#endif /* KRN_RUN_H */
