/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements x86_access.h: Intel's manual, volume 2, chapter 2 and appendix A. */
#include "x86_access.h"

#include <stdbool.h>
#include <string.h>

enum map {
	MAP_ONE,  /* one-byte opcodes */
	MAP_0F,   /* behind 0F */
	MAP_0F38, /* behind 0F 38 */
	MAP_0F3A, /* behind 0F 3A */
};

/** Instruction as far as decoded. */
struct insn {
	const uint8_t *at;
	const uint8_t *code;
	const struct user_regs_struct *regs;
	bool size16; /* prefix 66 */
	uint8_t rep; /* prefix F2 or F3, or 0 */
	uint8_t rex; /* W R X B in bits 3 to 0 */
	uint64_t segment;
	bool vex, evex;
	uint32_t vector; /* bytes of a vector register */
	bool broadcast;
	enum map map;
	uint8_t op;
	uint8_t mod, reg, rm;
};

static bool insn_is_wide(const struct insn *i)
{
	return i->rex & 8;
}

/** Returns the bytes of a general register operand. */
static uint32_t insn_word(const struct insn *i)
{
	if (insn_is_wide(i))
		return 8;
	return i->size16 && !i->vex ? 2 : 4;
}

static uint64_t insn_register(const struct insn *i, unsigned number)
{
	const struct user_regs_struct *r = i->regs;
	const unsigned long long values[16] = { r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp,
						r->rsi, r->rdi, r->r8,  r->r9,  r->r10, r->r11,
						r->r12, r->r13, r->r14, r->r15 };

	return values[number];
}

/* ---- prefixes and opcode ---- */

static void insn_legacy_prefixes(struct insn *i)
{
	for (;; i->at++) {
		switch (*i->at) {
		case 0x66: i->size16 = true; break;
		case 0xF2:
		case 0xF3: i->rep = *i->at; break;
		case 0x64: i->segment = i->regs->fs_base; break;
		case 0x65: i->segment = i->regs->gs_base; break;
		case 0x2E:
		case 0x36:
		case 0x3E:
		case 0x26:
		case 0x67:
		case 0xF0: break;
		default: return;
		}
	}
}

/** Takes the prefix that the two bits of a VEX or EVEX prefix stand for. */
static void insn_implied_prefix(struct insn *i, unsigned pp)
{
	i->size16 = pp == 1;
	i->rep = pp == 2 ? 0xF3 : pp == 3 ? 0xF2 : 0;
}

static void insn_vex(struct insn *i)
{
	uint8_t last;

	i->vex = true;
	i->map = MAP_0F;
	if (*i->at++ == 0xC5) {
		i->rex = ~i->at[0] >> 5 & 4;
	} else {
		i->rex = ~i->at[0] >> 5 & 7;
		i->map = (enum map)(i->at[0] & 3);
		i->at++;
		i->rex |= i->at[0] >> 4 & 8;
	}
	last = *i->at++;
	insn_implied_prefix(i, last & 3);
	i->vector = last & 4 ? 32 : 16;
}

static void insn_evex(struct insn *i)
{
	i->at++;
	i->vex = true;
	i->evex = true;
	i->rex = (uint8_t)((~i->at[0] >> 5 & 7) | (i->at[1] >> 4 & 8));
	i->map = (enum map)(i->at[0] & 3);
	insn_implied_prefix(i, i->at[1] & 3);
	i->vector = 16u << (i->at[2] >> 5 & 3);
	i->broadcast = i->at[2] & 0x10;
	i->at += 3;
}

static void insn_opcode(struct insn *i)
{
	i->vector = 16;
	insn_legacy_prefixes(i);
	if (*i->at == 0x62) {
		insn_evex(i);
	} else if (*i->at == 0xC4 || *i->at == 0xC5) {
		insn_vex(i);
	} else {
		if ((*i->at & 0xF0) == 0x40)
			i->rex = *i->at++ & 15;
		if (*i->at == 0x0F) {
			i->map = MAP_0F;
			i->at++;
			if (*i->at == 0x38 || *i->at == 0x3A)
				i->map = *i->at++ == 0x38 ? MAP_0F38 : MAP_0F3A;
		}
	}
	i->op = *i->at++;
}

static bool insn_has_modrm(const struct insn *i)
{
	/* bit: opcode & 7; byte: opcode >> 3 */
	static const uint8_t one[32] = { 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0, 0, 0, 0,
					 0x08, 0x0A, 0,    0,    0xFF, 0xFF, 0,    0,    0, 0, 0, 0,
					 0xC3, 0,    0x0F, 0xFF, 0,    0,    0xC0, 0xC0 };
	static const uint8_t two[32] = { 0x0F, 0x20, 0xFF, 0xFF, 0xFF, 0xFF, 0,    0,
					 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF,
					 0,    0,    0xFF, 0xFF, 0x38, 0xF8, 0xFF, 0xFF,
					 0xFF, 0,    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };

	if (i->map == MAP_0F38 || i->map == MAP_0F3A)
		return true;
	return (i->map == MAP_ONE ? one : two)[i->op >> 3] >> (i->op & 7) & 1;
}

/** Returns the bytes of the immediate operand. */
static uint32_t insn_immediate(const struct insn *i)
{
	uint32_t word = i->size16 ? 2 : 4;

	if (i->map == MAP_0F3A)
		return 1;
	if (i->map == MAP_0F)
		return (i->op >= 0x70 && i->op <= 0x73) || i->op == 0xA4 || i->op == 0xAC ||
		       i->op == 0xBA || i->op == 0xC2 || (i->op >= 0xC4 && i->op <= 0xC6);
	if (i->map != MAP_ONE)
		return 0;
	switch (i->op) {
	case 0x69:
	case 0x81:
	case 0xC7: return word;
	case 0x6B:
	case 0x80:
	case 0x83:
	case 0xC0:
	case 0xC1:
	case 0xC6: return 1;
	case 0xF6: return i->reg < 2;
	case 0xF7: return i->reg < 2 ? word : 0;
	}
	return 0;
}

/* ---- length of the access by ModRM ---- */

/** Returns the bytes of a vector instruction's memory operand: a vector, or one element. */
static uint32_t insn_by_prefix(const struct insn *i)
{
	if (i->rep)
		return i->rep == 0xF3 ? 4 : 8;
	return i->vector;
}

static uint32_t insn_len_x87(const struct insn *i)
{
	static const uint8_t lens[8][8] = {
		{ 4, 4, 4, 4, 4, 4, 4, 4 }, { 4, 0, 4, 4, 28, 2, 28, 2 },
		{ 4, 4, 4, 4, 4, 4, 4, 4 }, { 4, 4, 4, 4, 0, 10, 0, 10 },
		{ 8, 8, 8, 8, 8, 8, 8, 8 }, { 8, 8, 8, 8, 108, 0, 108, 2 },
		{ 2, 2, 2, 2, 2, 2, 2, 2 }, { 2, 2, 2, 2, 10, 8, 10, 8 },
	};

	return lens[i->op & 7][i->reg];
}

static uint32_t insn_len_one(const struct insn *i)
{
	switch (i->op) {
	case 0x63: return 4;
	case 0x8D: return 0; /* lea */
	case 0x8C:
	case 0x8E: return 2;
	case 0x8F: return 8;
	case 0xFF: return i->reg == 2 || i->reg == 4 || i->reg == 6 ? 8 : insn_word(i);
	}
	if (i->op >= 0xD8 && i->op <= 0xDF)
		return insn_len_x87(i);
	return i->op & 1 ? insn_word(i) : 1;
}

/** Returns the bytes of moves between vector registers and memory, or 0 for other opcodes. */
static uint32_t insn_len_move(const struct insn *i)
{
	switch (i->op) {
	case 0x10:
	case 0x11: return insn_by_prefix(i);
	case 0x12:
	case 0x16: return i->rep == 0xF3 ? i->vector : 8;
	case 0x13:
	case 0x17:
	case 0x90: /* masks: others are setcc */
	case 0x91:
	case 0xD6: return 8;
	case 0x2A:
	case 0x2C:
	case 0x2D: return !i->rep ? 8 : i->op != 0x2A ? insn_by_prefix(i) : insn_is_wide(i) ? 8 : 4;
	case 0x2E:
	case 0x2F: return i->size16 ? 8 : 4;
	case 0x6E: return insn_is_wide(i) ? 8 : 4;
	case 0x7E: return i->rep == 0xF3 || insn_is_wide(i) ? 8 : 4;
	}
	return 0;
}

/** Returns the bytes of instructions on general registers, or 0 for others. */
static uint32_t insn_len_general(const struct insn *i)
{
	if ((i->op & 0xF0) == 0x40)
		return insn_word(i);
	if ((i->op & 0xF0) == 0x90)
		return 1;
	switch (i->op) {
	case 0xB0:
	case 0xB6:
	case 0xBE:
	case 0xC0: return 1;
	case 0xB7:
	case 0xBF: return 2;
	case 0xC3: return insn_word(i);
	case 0xC4: return 2;
	case 0xC7: return insn_is_wide(i) ? 16 : 8;
	case 0xC1: return insn_word(i);
	}
	return i->op >= 0xA0 && i->op <= 0xBF ? insn_word(i) : 0;
}

static uint32_t insn_len_0f(const struct insn *i)
{
	uint32_t len = i->vex ? 0 : insn_len_general(i);

	if (i->op == 0x0D || (i->op >= 0x18 && i->op <= 0x1F))
		return 0; /* prefetches and hints */
	if (i->op == 0xAE)
		return i->reg == 2 || i->reg == 3 ? 4 : i->reg < 2 ? 512 : 0;
	if (!len)
		len = insn_len_move(i);
	if (len)
		return len;
	if ((i->op >= 0x51 && i->op <= 0x5F) || (i->op == 0xC2 && i->rep))
		return insn_by_prefix(i);
	if (!i->vex && !i->size16 && !i->rep && i->op >= 0x60)
		return i->op == 0xC2 || i->op == 0xC6 ? 16 : 8; /* MMX */
	return i->vector;
}

/** Returns the bytes of broadcasts and of widening moves, or of a whole vector. */
static uint32_t insn_len_0f38(const struct insn *i)
{
	if (i->op >= 0xF0)
		return insn_word(i);
	if ((i->op & 0xE8) == 0x20) /* 20 to 27, 30 to 37: widening moves */
		switch (i->op & 7) {
		case 0:
		case 3:
		case 5: return i->vector / 2;
		case 1:
		case 4: return i->vector / 4;
		case 2: return i->vector / 8;
		}
	switch (i->op) {
	case 0x18:
	case 0x58: return 4;
	case 0x19:
	case 0x59: return 8;
	case 0x1A:
	case 0x5A: return 16;
	case 0x78: return 1;
	case 0x79: return 2;
	}
	return i->vector;
}

static uint32_t insn_len_0f3a(const struct insn *i)
{
	switch (i->op) {
	case 0x14:
	case 0x20: return 1;
	case 0x15: return 2;
	case 0x16:
	case 0x22: return insn_is_wide(i) ? 8 : 4;
	case 0x17:
	case 0x21: return 4;
	case 0x18:
	case 0x19:
	case 0x38:
	case 0x39: return 16;
	case 0xF0: return insn_word(i);
	}
	return i->vector;
}

static uint32_t insn_len(const struct insn *i)
{
	if (i->evex && i->broadcast)
		return insn_is_wide(i) ? 8 : 4;
	switch (i->map) {
	case MAP_ONE: return insn_len_one(i);
	case MAP_0F: return insn_len_0f(i);
	case MAP_0F38: return insn_len_0f38(i);
	case MAP_0F3A: return insn_len_0f3a(i);
	}
	return 0;
}

/* ---- address ---- */

/** Returns true for gathers and scatters, whose index is a vector. */
static bool insn_is_gather(const struct insn *i)
{
	return i->vex && i->map == MAP_0F38 &&
	       ((i->op >= 0x90 && i->op <= 0x93) || (i->op >= 0xA0 && i->op <= 0xA3));
}

/** Returns the base and index of a SIB byte. *no_base: a displacement of 32 bits follows. */
static uint64_t insn_sib(struct insn *i, bool *no_base)
{
	uint8_t sib = *i->at++;
	unsigned index = (sib >> 3 & 7) | (i->rex << 2 & 8);
	uint64_t addr = 0;

	*no_base = (sib & 7) == 5 && !i->mod;
	if (!*no_base)
		addr = insn_register(i, (sib & 7) | (i->rex << 3 & 8));
	if (index != 4)
		addr += insn_register(i, index) << (sib >> 6);
	return addr;
}

/** Returns the address of the operand by ModRM, in memory, of `len` bytes. */
static uint64_t insn_addr(struct insn *i, uint32_t len)
{
	bool relative = !i->mod && i->rm == 5, no_base = false;
	uint64_t addr = i->segment;
	int32_t disp = 0;

	if (i->rm == 4)
		addr += insn_sib(i, &no_base);
	else if (!relative)
		addr += insn_register(i, i->rm | (i->rex << 3 & 8));
	if (i->mod == 1) {
		disp = (int8_t)*i->at++ * (int32_t)(i->evex ? len : 1);
	} else if (i->mod == 2 || relative || no_base) {
		memcpy(&disp, i->at, sizeof(disp));
		i->at += sizeof(disp);
	}
	if (relative)
		addr += i->regs->rip + (uint64_t)(i->at - i->code) + insn_immediate(i);
	return addr + (uint64_t)(int64_t)disp;
}

/* ---- accesses without ModRM ---- */

static struct x86_access *access_add(struct x86_access *to, uint64_t addr, uint32_t len)
{
	*to = (struct x86_access){ .addr = addr, .len = len };
	return to + 1;
}

/** Adds the accesses of string instructions, A4 to AF. */
static struct x86_access *access_strings(const struct insn *i, struct x86_access *to)
{
	uint32_t len = i->op & 1 ? insn_word(i) : 1;
	uint8_t kind = i->op & 0xFE;

	if (i->rep && !i->regs->rcx)
		return to;
	if (kind == 0xA4 || kind == 0xA6 || kind == 0xAC)
		to = access_add(to, i->regs->rsi, len);
	if (kind == 0xA4 || kind == 0xA6 || kind == 0xAA || kind == 0xAE)
		to = access_add(to, i->regs->rdi, len);
	return to;
}

/** Adds the accesses of the stack. */
static struct x86_access *access_stack(const struct insn *i, struct x86_access *to)
{
	uint64_t top = i->regs->rsp;

	if (i->map != MAP_ONE)
		return to;
	switch (i->op) {
	case 0x68:
	case 0x6A:
	case 0x9C:
	case 0xE8: return access_add(to, top - 8, 8);
	case 0x8F:
	case 0x9D:
	case 0xC2:
	case 0xC3: return access_add(to, top, 8);
	case 0xC9: return access_add(to, i->regs->rbp, 8);
	case 0xFF: return i->reg == 2 || i->reg == 6 ? access_add(to, top - 8, 8) : to;
	}
	if ((i->op & 0xF8) == 0x50)
		return access_add(to, top - 8, 8);
	if ((i->op & 0xF8) == 0x58)
		return access_add(to, top, 8);
	return to;
}

int x86_accesses(const uint8_t *code, const struct user_regs_struct *regs,
		 struct x86_access out[X86_ACCESS_MAX])
{
	struct insn i = { .at = code, .code = code, .regs = regs };
	struct x86_access *to = out;
	uint32_t len;

	insn_opcode(&i);
	if (insn_has_modrm(&i) || i.evex) {
		i.mod = *i.at >> 6;
		i.reg = *i.at >> 3 & 7;
		i.rm = *i.at++ & 7;
		len = i.mod == 3 ? 0 : insn_len(&i);
		if (len && insn_is_gather(&i))
			return -1;
		if (len)
			to = access_add(to, insn_addr(&i, len), len);
	} else if (i.map == MAP_ONE && i.op >= 0xA4 && i.op <= 0xAF && (i.op & 0xFE) != 0xA8) {
		to = access_strings(&i, to);
	} else if (i.map == MAP_ONE && i.op >= 0xA0 && i.op <= 0xA3) {
		return -1; /* an absolute address of 64 bits, which no compiler emits */
	}
	return (int)(access_stack(&i, to) - out);
}
