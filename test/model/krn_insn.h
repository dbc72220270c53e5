/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which x86-64 instruction stands at an address: the few that drivers ring doorbells with.
 *
 * Stores of general registers, immediates and vectors (SSE, AVX, AVX-512; plain, aligned and
 * non-temporal), direct stores, string moves; and what stands between the stores of a copy: loads,
 * LEA, simple arithmetic, jumps. Anything else is INSN_OTHER, and the program goes on by itself
 * there.
 */
#ifndef KRN_INSN_H
#define KRN_INSN_H

#include <stdbool.h>
#include <stdint.h>

enum krn_insn_kind {
	INSN_OTHER,
	INSN_NOP,
	INSN_STORE,     /* memory <- general register */
	INSN_STORE_IMM, /* memory <- immediate */
	INSN_STORE_VEC, /* memory <- vector register */
	INSN_STORE_BE,  /* memory <- general register, bytes swapped (MOVBE) */
	INSN_LOAD,      /* general register <- memory */
	INSN_LOAD_VEC,  /* vector register <- memory */
	INSN_MOVE,      /* general register <- general register */
	INSN_LEA,
	/* add, sub, cmp, and, or, xor: general register <- it op (register, memory, immediate) */
	INSN_ALU,
	INSN_JUMP,     /* cond 0 to 15, or 16: always */
	INSN_REP_MOVS, /* or one MOVS: size bytes each, rep */
	INSN_DIRECT64, /* MOVDIR64B: 64 bytes from memory to the address in a register */
};

enum krn_insn_alu { ALU_ADD = 0, ALU_OR = 1, ALU_AND = 4, ALU_SUB = 5, ALU_XOR = 6, ALU_CMP = 7 };

struct krn_insn {
	enum krn_insn_kind kind;
	uint8_t len;  /* bytes of the instruction */
	uint8_t size; /* bytes of the operand */
	uint8_t reg;  /* the register operand: 0 to 15 */
	uint8_t from; /* INSN_MOVE, INSN_ALU without memory and immediate: the other register */
	uint8_t alu;  /* enum krn_insn_alu */
	uint8_t cond; /* of a jump */
	bool mem, has_imm, rep,
		zero_upper; /* zero_upper: a VEX load clears the rest of the register */
	uint64_t address;   /* of the memory operand, or where a jump leads */
	uint64_t imm;       /* sign-extended */
};

/*
 * Decodes at code. regs are the general registers in the processor's order (rax, rcx, rdx, rbx,
 * rsp, rbp, rsi, rdi, r8 ...), rip the address of the instruction.
 */
struct krn_insn krn_insn_decode(const uint8_t *code, const uint64_t regs[16], uint64_t rip);

#endif /* KRN_INSN_H */
