/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Decoder of x86-64 instructions. Opcodes as in Intel's manual, volume 2. */
#include "model/kernel/krn_insn.h"

#include <string.h>

/* Position and prefixes of decoding. */
struct scan {
	const uint8_t *start, *at;
	const uint64_t *regs;
	uint64_t rip;
	uint8_t prefix; /* 0, 0x66, 0xf2 or 0xf3: selects among opcodes */
	bool wide_prefix, rep;
	bool rex, w, r, x, b; /* bits of REX or VEX */
	bool vex, high;       /* high: bit 4 of the register (EVEX) */
	uint8_t vex_bytes;    /* bytes of the vector: 16, 32 or 64 */
	uint8_t scale;        /* unit of a one-byte displacement (EVEX); 0: bytes */
	uint8_t mod, reg, rm;
	uint64_t ea;
	bool rip_relative;
};

static uint64_t take_signed(struct scan *s, int bytes)
{
	int32_t word;
	int16_t half;

	if (bytes == 1)
		return (uint64_t)(int64_t)(int8_t)*s->at++;
	if (bytes == 2) {
		memcpy(&half, s->at, 2);
		s->at += 2;
		return (uint64_t)(int64_t)half;
	}
	memcpy(&word, s->at, 4);
	s->at += 4;
	return (uint64_t)(int64_t)word;
}

/* Decodes a SIB byte: base + index * scale. */
static uint64_t take_sib(struct scan *s)
{
	uint8_t sib = *s->at++;
	uint8_t index = (uint8_t)((sib >> 3 & 7) | s->x << 3),
		base = (uint8_t)((sib & 7) | s->b << 3);
	uint64_t ea = index == 4 ? 0 : s->regs[index] << (sib >> 6);

	if ((base & 7) == 5 && s->mod == 0)
		return ea + take_signed(s, 4);
	return ea + s->regs[base];
}

static void take_modrm(struct scan *s)
{
	uint8_t modrm = *s->at++;

	s->mod = modrm >> 6;
	s->reg = (uint8_t)((modrm >> 3 & 7) | s->r << 3 | s->high << 4);
	s->rm = (uint8_t)((modrm & 7) | s->b << 3);
	if (s->mod == 3)
		return;
	if ((modrm & 7) == 4)
		s->ea = take_sib(s);
	else if ((modrm & 7) == 5 && s->mod == 0) {
		s->ea = take_signed(s, 4);
		s->rip_relative = true;
	} else
		s->ea = s->regs[s->rm];
	if (s->mod == 1)
		s->ea += take_signed(s, 1) * (s->scale ? s->scale : 1);
	else if (s->mod == 2)
		s->ea += take_signed(s, 4);
}

static uint8_t operand_size(const struct scan *s)
{
	return s->w ? 8 : s->wide_prefix ? 2 : 4;
}

/* Builds the result for an instruction whose ModRM byte was decoded. */
static struct krn_insn with_modrm(const struct scan *s, enum krn_insn_kind kind, uint8_t size)
{
	return (struct krn_insn){ .kind = kind,
				  .size = size,
				  .reg = s->reg,
				  .from = s->rm,
				  .mem = s->mod != 3,
				  .address = s->ea };
}

static struct krn_insn memory_only(struct scan *s, enum krn_insn_kind kind, uint8_t size)
{
	struct krn_insn insn;

	take_modrm(s);
	insn = with_modrm(s, kind, size);
	if (!insn.mem)
		insn.kind = INSN_OTHER;
	return insn;
}

/*
 * Decodes MOV between a register and memory or another register. `store`: the register is the
 * source.
 */
static struct krn_insn move(struct scan *s, bool store)
{
	struct krn_insn insn;

	take_modrm(s);
	insn = with_modrm(s, store ? INSN_STORE : INSN_LOAD, operand_size(s));
	if (!insn.mem) {
		insn.kind = INSN_MOVE;
		if (store) {
			insn.reg = s->rm;
			insn.from = s->reg;
		}
	}
	return insn;
}

static struct krn_insn store_immediate(struct scan *s)
{
	struct krn_insn insn = memory_only(s, INSN_STORE_IMM, operand_size(s));

	if ((s->reg & 7) != 0)
		insn.kind = INSN_OTHER;
	insn.imm = take_signed(s, insn.size == 2 ? 2 : 4);
	return insn;
}

/*
 * Decodes opcodes 01 03 29 2b 31 33 39 3b and similar: bits 3 to 5 select the operation, bit 1 the
 * direction.
 */
static struct krn_insn alu_registers(struct scan *s, uint8_t opcode)
{
	struct krn_insn insn;

	take_modrm(s);
	insn = with_modrm(s, INSN_ALU, operand_size(s));
	insn.alu = opcode >> 3 & 7;
	if (opcode & 2)
		return insn;
	/*
	 * The destination is r/m. Only registers are decoded; comparison with memory in this order
	 * is not needed.
	 */
	insn.reg = s->rm;
	insn.from = s->reg;
	if (insn.mem)
		insn.kind = INSN_OTHER;
	return insn;
}

static struct krn_insn alu_immediate(struct scan *s, uint8_t opcode)
{
	struct krn_insn insn;

	take_modrm(s);
	insn = with_modrm(s, INSN_ALU, operand_size(s));
	insn.alu = s->reg & 7;
	insn.reg = s->rm;
	insn.has_imm = true;
	insn.imm = take_signed(s, opcode == 0x83 ? 1 : insn.size == 2 ? 2 : 4);
	if (insn.mem)
		insn.kind = INSN_OTHER;
	return insn;
}

static struct krn_insn jump(struct scan *s, uint8_t cond, int bytes)
{
	uint64_t distance = take_signed(s, bytes);

	return (struct krn_insn){ .kind = INSN_JUMP,
				  .cond = cond,
				  .address = s->rip + (uint64_t)(s->at - s->start) + distance };
}

static struct krn_insn string_move(const struct scan *s, uint8_t size)
{
	return (struct krn_insn){ .kind = INSN_REP_MOVS, .size = size, .rep = s->rep };
}

static bool alu_known(uint8_t alu)
{
	return alu == ALU_ADD || alu == ALU_OR || alu == ALU_AND || alu >= ALU_SUB;
}

static struct krn_insn one_byte(struct scan *s, uint8_t opcode)
{
	struct krn_insn insn = { .kind = INSN_OTHER };

	if (opcode < 0x40 && (opcode & 5) == 1 && alu_known(opcode >> 3 & 7))
		return alu_registers(s, opcode);
	if (opcode >= 0x70 && opcode < 0x80)
		return jump(s, opcode & 15, 1);
	switch (opcode) {
	case 0x81:
	case 0x83:
		insn = alu_immediate(s, opcode);
		if (!alu_known(insn.alu))
			insn.kind = INSN_OTHER;
		return insn;
	case 0x89: return move(s, true);
	case 0x8b: return move(s, false);
	case 0x8d: return memory_only(s, INSN_LEA, operand_size(s));
	case 0x90: insn.kind = s->rep ? INSN_OTHER : INSN_NOP; return insn;
	case 0xa4: return string_move(s, 1);
	case 0xa5: return string_move(s, operand_size(s));
	case 0xc7: return store_immediate(s);
	case 0xe9: return jump(s, 16, 4);
	case 0xeb: return jump(s, 16, 1);
	default: return insn;
	}
}

/* Returns the bytes of a vector move by opcode and prefix, 0 for other instructions. */
static uint8_t vector_size(const struct scan *s, uint8_t opcode)
{
	uint8_t full = s->vex ? s->vex_bytes : 16;

	switch (opcode) {
	case 0x10:
	case 0x11: return s->prefix == 0xf3 ? 4 : s->prefix == 0xf2 ? 8 : full;
	case 0x28:
	case 0x29:
	case 0x2b: return s->prefix == 0xf3 || s->prefix == 0xf2 ? 0 : full;
	case 0x6f:
	case 0x7f: return s->prefix == 0x66 || s->prefix == 0xf3 ? full : 0;
	case 0xe7: return s->prefix == 0x66 ? full : 0;
	case 0xd6: return s->prefix == 0x66 ? 8 : 0;
	default: return 0;
	}
}

static bool vector_stores(uint8_t opcode)
{
	return opcode == 0x11 || opcode == 0x29 || opcode == 0x2b || opcode == 0x7f ||
	       opcode == 0xe7 || opcode == 0xd6;
}

static struct krn_insn two_bytes(struct scan *s, uint8_t opcode)
{
	struct krn_insn insn = { .kind = INSN_OTHER };
	uint8_t size = vector_size(s, opcode);

	if (size) {
		insn = memory_only(s, vector_stores(opcode) ? INSN_STORE_VEC : INSN_LOAD_VEC, size);
		insn.zero_upper = s->vex || size < 16;
		return insn;
	}
	if (s->vex)
		return insn;
	if (opcode == 0xc3 && !s->prefix)
		return memory_only(s, INSN_STORE, s->w ? 8 : 4);
	if (opcode >= 0x80 && opcode < 0x90)
		return jump(s, opcode & 15, 4);
	if (opcode == 0x1f) {
		take_modrm(s);
		insn.kind = INSN_NOP;
	}
	return insn;
}

static struct krn_insn three_bytes(struct scan *s, uint8_t opcode)
{
	struct krn_insn insn = { .kind = INSN_OTHER };

	if (s->vex)
		return insn;
	if (opcode == 0xf9 && !s->prefix)
		return memory_only(s, INSN_STORE, s->w ? 8 : 4);
	if (opcode == 0xf1 && s->prefix != 0xf2 && s->prefix != 0xf3)
		return memory_only(s, INSN_STORE_BE, operand_size(s));
	if (opcode == 0xf8 && s->prefix == 0x66)
		return memory_only(s, INSN_DIRECT64, 64);
	return insn;
}

/* Decodes C5 and C4: the VEX prefixes, with the opcode map. */
static struct krn_insn vex(struct scan *s, uint8_t first)
{
	static const uint8_t selected[4] = { 0, 0x66, 0xf3, 0xf2 };
	uint8_t map = 1, byte = *s->at++;

	s->vex = true;
	s->r = !(byte & 0x80);
	if (first == 0xc4) {
		s->x = !(byte & 0x40);
		s->b = !(byte & 0x20);
		map = byte & 0x1f;
		byte = *s->at++;
		s->w = byte & 0x80;
	}
	s->vex_bytes = byte & 4 ? 32 : 16;
	s->prefix = selected[byte & 3];
	if (map == 1)
		return two_bytes(s, *s->at++);
	return (struct krn_insn){ .kind = INSN_OTHER };
}

/*
 * Decodes 62: EVEX, without masking and broadcasting. Its moves scale short displacements by their
 * size.
 */
static struct krn_insn evex(struct scan *s)
{
	static const uint8_t selected[4] = { 0, 0x66, 0xf3, 0xf2 };
	uint8_t p0 = s->at[0], p1 = s->at[1], p2 = s->at[2], opcode = s->at[3];
	struct krn_insn insn = { .kind = INSN_OTHER };

	s->at += 4;
	s->vex = true;
	s->r = !(p0 & 0x80);
	s->x = !(p0 & 0x40);
	s->b = !(p0 & 0x20);
	s->high = !(p0 & 0x10);
	s->w = p1 & 0x80;
	s->prefix = selected[p1 & 3];
	s->vex_bytes = (uint8_t)(16 << (p2 >> 5 & 3));
	if ((p0 & 0xf) != 1 || (p2 & 0x1f) != 8 || s->vex_bytes > 64)
		return insn;
	if (s->prefix == 0xf2 && (opcode == 0x6f || opcode == 0x7f))
		s->prefix = 0xf3; /* unmasked moves of bytes and words are plain moves */
	s->scale = vector_size(s, opcode);
	return s->scale ? two_bytes(s, opcode) : insn;
}

static void take_prefixes(struct scan *s)
{
	for (;; s->at++) {
		if (*s->at == 0x66) {
			s->wide_prefix = true;
			if (!s->prefix)
				s->prefix = 0x66;
		} else if (*s->at == 0xf2 || *s->at == 0xf3) {
			s->prefix = *s->at;
			s->rep = true;
		} else
			break;
	}
	if ((*s->at & 0xf0) == 0x40) {
		s->rex = true;
		s->w = *s->at & 8;
		s->r = *s->at & 4;
		s->x = *s->at & 2;
		s->b = *s->at & 1;
		s->at++;
	}
}

static struct krn_insn decode_opcode(struct scan *s)
{
	uint8_t opcode;

	take_prefixes(s);
	opcode = *s->at++;
	if (opcode == 0xc4 || opcode == 0xc5)
		return vex(s, opcode);
	if (opcode == 0x62)
		return evex(s);
	if (opcode != 0x0f)
		return one_byte(s, opcode);
	opcode = *s->at++;
	return opcode == 0x38 ? three_bytes(s, *s->at++) : two_bytes(s, opcode);
}

struct krn_insn krn_insn_decode(const uint8_t *code, const uint64_t regs[16], uint64_t rip)
{
	struct scan s = { .start = code, .at = code, .regs = regs, .rip = rip };
	struct krn_insn insn = decode_opcode(&s);

	insn.len = (uint8_t)(s.at - s.start);
	if (s.rip_relative)
		insn.address += rip + insn.len;
	return insn;
}
