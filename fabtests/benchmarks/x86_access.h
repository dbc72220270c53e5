/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that an instruction of x86-64 accesses, from its bytes and the registers before it runs.
 * Called by insn_count, which counts cache lines.
 *
 * Gathers, scatters and what saves the state of the processor are unknown. Prefetches, hints and
 * lea access nothing. A repeated string instruction is one access for each step, as the processor
 * traps after each repetition.
 *
 * Tested by fabtests/benchmarks/line_probe.c, which test/suite.d/71-growth counts.
 */
#ifndef X86_ACCESS_H
#define X86_ACCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define X86_INSN_MAX   15u
#define X86_ACCESS_MAX 3u

struct x86_access {
	uint64_t addr;
	uint32_t len;
};

/**
 * Stores the accesses of the instruction at `code`, X86_INSN_MAX readable bytes. Returns their
 * number, or -1 for an instruction whose accesses are unknown.
 */
int x86_accesses(const uint8_t *code, const struct user_regs_struct *regs,
		 struct x86_access out[X86_ACCESS_MAX]);

#endif
