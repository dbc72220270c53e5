/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Executes a program's store to a UAR page in its place, in the handler of SIGSEGV (krn_trap.c).
 * All effects of the store precede the program's next instruction.
 */
#ifndef KRN_RUN_H
#define KRN_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* Registers of a program stopped at an instruction. */
struct krn_cpu {
	uint64_t regs
		[16]; /* in the processor's order: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ... */
	uint64_t rip, flags;
	void *vectors; /* an XSAVE area in its standard form */
};

/*
 * Executes the store at rip and the following instructions, up to the last of a row of stores to
 * UAR pages. Returns false, with no effect, if there is no such store.
 */
bool krn_run(struct krn_cpu *cpu);

#endif /* KRN_RUN_H */
