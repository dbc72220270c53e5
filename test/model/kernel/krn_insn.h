/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decoder for the few x86-64 instructions with which drivers ring doorbells.
 *
 * Decodes stores of general registers, immediates and vectors (SSE, AVX, AVX-512; plain, aligned
 * and non-temporal), direct stores and string moves. Also decodes the instructions between the
 * stores of a copy: loads, LEA, simple arithmetic, jumps. Any other is INSN_OTHER, from which the
 * program resumes.
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
	/*
	 * add, sub, cmp, and, or, xor: general register <- register op (register, memory,
	 * immediate)
	 */
	INSN_ALU,
	INSN_JUMP,     /* cond 0 to 15, or 16: always */
	INSN_REP_MOVS, /* size bytes each, with rep or a single MOVS */
	INSN_DIRECT64, /* MOVDIR64B: 64 bytes from memory to the address in a register */
};

enum krn_insn_alu { ALU_ADD = 0, ALU_OR = 1, ALU_AND = 4, ALU_SUB = 5, ALU_XOR = 6, ALU_CMP = 7 };

struct krn_insn {
	enum krn_insn_kind kind;
	uint8_t len;  /* bytes of the instruction */
	uint8_t size; /* bytes of the operand */
	uint8_t reg;  /* register operand: 0 to 15 */
	uint8_t from; /* INSN_MOVE, INSN_ALU without memory and immediate: the second register */
	uint8_t alu;  /* enum krn_insn_alu */
	uint8_t cond; /* condition of a jump */
	bool mem, has_imm, rep,
		zero_upper; /* zero_upper: a VEX load clears the rest of the register */
	uint64_t address;   /* address of the memory operand, or target of a jump */
	uint64_t imm;       /* sign-extended */
};

/*
 * Decodes the instruction at code. regs are the general registers in the processor's order (rax,
 * rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ...), rip is the address of the instruction.
 */
struct krn_insn krn_insn_decode(const uint8_t *code, const uint64_t regs[16], uint64_t rip);

#endif /* KRN_INSN_H */
