/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Executes a store to a UAR page and runs the NIC.
 *
 * Execution continues through the following instructions as long as they are of the few kinds that
 * copies use, so that a BlueFlame copy of straight-line code or of a plain loop is one run. Effects
 * after the last store to a UAR page are undone; the program executes those instructions itself
 * after the NIC has run, and sees the NIC's writes. A copy made by several calls (memmove() of one
 * block each) is assembled: the first 8 bytes of a doorbell register give the length of its WQE.
 */
#include "model/kernel/krn_run.h"
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_insn.h"
#include "model/kernel/krn_uar.h"
#include "model/kernel/krn_vector.h"
#include "model/fabric/mdl_nic.h"

#include <string.h>

#define STEPS_MAX  400 /* instructions of one run */
#define STRAY_MAX  16  /* instructions in a row without a store to a UAR page */
#define HALF_BYTES 256

/* Value overwritten by an instruction: memory, or a vector register. */
struct undo {
	void *memory; /* null: the register */
	uint32_t reg, len;
	char old[64];
};

/* Run of one thread. */
struct run {
	struct krn_cpu *cpu;
	uint32_t touched; /* halves of the doorbell registers of one page, as bits */
	uint32_t ctx, page;
	bool stored; /* the instruction stored to a UAR page */
	/* state after the last such store; the values overwritten since follow */
	uint64_t kept_regs[16], kept_rip, kept_flags;
	struct undo undo[STRAY_MAX + 1];
	uint32_t undo_cnt;
};

/* Parts of each half of each register written and not yet passed to the NIC: a bit for 4 bytes. */
static uint64_t written[MDL_CTX_MAX][MDL_UAR_PAGES][4];

/* ---- registers and the NIC ---- */

static uint32_t half_offset(uint32_t half)
{
	return KRN_UAR_BF + half * HALF_BYTES;
}

/* Returns the number of bytes from the start of a half without a gap. */
static uint32_t contiguous(uint64_t mask)
{
	return ~mask ? (uint32_t)__builtin_ctzll(~mask) * 4 : HALF_BYTES;
}

/* Returns the bytes of the WQE whose control segment starts the half, in whole blocks. */
static uint32_t wqe_bytes(const char *half)
{
	return (((uint32_t)half[7] & 0x3f) * 16 + 63) & ~63u;
}

/* Passes the bytes written to a half to the NIC. `now`: even if the WQE is incomplete. */
static void deliver(uint32_t ctx, uint32_t page, uint32_t half, bool now)
{
	uint64_t *mask = &written[ctx][page][half];
	uint32_t len = contiguous(*mask) & ~7u, off = half_offset(half);
	char bytes[HALF_BYTES];

	if (len < 8) {
		/*
		 * The rest of a copy whose first part was passed as a doorbell, or half a doorbell.
		 */
		if (!(*mask & 1))
			*mask = 0;
		return;
	}
	memcpy(bytes, krn_ctx_get(ctx)->pages + page * MDL_PAGE + off, len);
	if (len > 8 && len < wqe_bytes(bytes) && !now)
		return;
	*mask = 0;
	nic_uar_write(ctx, page, off, bytes, len);
}

static void deliver_touched(struct run *run)
{
	for (uint32_t half = 0; half < 4; half++)
		if (run->touched >> half & 1)
			deliver(run->ctx, run->page, half, false);
	run->touched = 0;
}

/*
 * Records a store to a register. `same`: the bytes were there already. A copy of one block may
 * store it twice (memmove() does).
 */
static void note_register(struct run *run, uint32_t ctx, uint32_t page, uint32_t off, uint32_t len,
			  bool same)
{
	uint32_t half = (off - KRN_UAR_BF) / HALF_BYTES, at = off % HALF_BYTES;
	uint64_t bits = (len >= HALF_BYTES ? ~0ull : (1ull << len / 4) - 1) << at / 4;

	if (run->ctx != ctx || run->page != page || (run->touched & ~(1u << half)))
		deliver_touched(run);
	if (same && (written[ctx][page][half] & bits) == bits)
		return;
	/* A new doorbell follows an incomplete one, which gets no more bytes. */
	if ((written[ctx][page][half] & bits) && at == 0)
		deliver(ctx, page, half, true);
	written[ctx][page][half] |= bits;
	run->ctx = ctx;
	run->page = page;
	run->touched |= 1u << half;
}

/* ---- memory as the program's instructions access it ---- */

static void store_uar(struct run *run, uint32_t ctx, uint32_t page, uint32_t off, const void *from,
		      uint32_t len)
{
	char *to = krn_ctx_get(ctx)->pages + page * MDL_PAGE + off;
	bool same;

	if (off + len > MDL_PAGE)
		mdl_fatal("a store of %u bytes runs over the end of a UAR page", len);
	same = memcmp(to, from, len) == 0;
	memcpy(to, from, len);
	run->stored = true;
	if (off >= KRN_UAR_BF && off + len <= KRN_UAR_BF + 4 * HALF_BYTES)
		note_register(run, ctx, page, off, len, same);
	else
		nic_uar_write(ctx, page, off, from, len);
}

static void remember_memory(struct run *run, uint64_t address, uint32_t len)
{
	struct undo *undo = &run->undo[run->undo_cnt++];

	undo->memory = (void *)address;
	undo->len = len;
	memcpy(undo->old, undo->memory, len);
}

static void remember_vector(struct run *run, uint32_t reg)
{
	struct undo *undo = &run->undo[run->undo_cnt++];

	undo->memory = NULL;
	undo->reg = reg;
	krn_vector_get(run->cpu->vectors, reg, undo->old, sizeof(undo->old));
}

/* Records the state to which the program may be reset. */
static void keep(struct run *run)
{
	memcpy(run->kept_regs, run->cpu->regs, sizeof(run->cpu->regs));
	run->kept_rip = run->cpu->rip;
	run->kept_flags = run->cpu->flags;
	run->undo_cnt = 0;
}

static void take_back(struct run *run)
{
	while (run->undo_cnt) {
		struct undo *undo = &run->undo[--run->undo_cnt];

		if (undo->memory)
			memcpy(undo->memory, undo->old, undo->len);
		else
			krn_vector_set(run->cpu->vectors, undo->reg, undo->old, sizeof(undo->old),
				       true);
	}
	memcpy(run->cpu->regs, run->kept_regs, sizeof(run->cpu->regs));
	run->cpu->rip = run->kept_rip;
	run->cpu->flags = run->kept_flags;
}

static void store(struct run *run, uint64_t address, const void *from, uint32_t len)
{
	uint32_t ctx, page, off;

	if (krn_uar_lookup(address, &ctx, &page, &off)) {
		store_uar(run, ctx, page, off, from, len);
		return;
	}
	remember_memory(run, address, len);
	memcpy((void *)address, from, len);
}

/* ---- execution ---- */

static void set_reg(struct run *run, uint32_t reg, uint64_t value, uint32_t size)
{
	if (size == 2)
		value = (run->cpu->regs[reg] & ~0xffffull) | (value & 0xffff);
	else if (size == 4)
		value &= 0xffffffffu;
	run->cpu->regs[reg] = value;
}

static uint64_t load(uint64_t address, uint32_t size)
{
	uint64_t value = 0;

	memcpy(&value, (const void *)address, size);
	return value;
}

#define FLAG_CF 0x001
#define FLAG_PF 0x004
#define FLAG_AF 0x010
#define FLAG_ZF 0x040
#define FLAG_SF 0x080
#define FLAG_OF 0x800

static void run_alu(struct run *run, const struct krn_insn *insn)
{
	uint32_t bits = insn->size * 8;
	uint64_t keep = bits == 64 ? ~0ull : (1ull << bits) - 1, sign = 1ull << (bits - 1);
	uint64_t a = run->cpu->regs[insn->reg] & keep, b, r;
	uint64_t *flags = &run->cpu->flags;
	bool minus = insn->alu == ALU_SUB || insn->alu == ALU_CMP;

	b = insn->has_imm ? insn->imm
	    : insn->mem   ? load(insn->address, insn->size)
			  : run->cpu->regs[insn->from];
	b &= keep;
	switch (insn->alu) {
	case ALU_ADD: r = a + b; break;
	case ALU_OR: r = a | b; break;
	case ALU_AND: r = a & b; break;
	case ALU_XOR: r = a ^ b; break;
	default: r = a - b; break;
	}
	r &= keep;
	*flags &= ~(uint64_t)(FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF);
	*flags |= (r ? 0 : FLAG_ZF) | (r & sign ? FLAG_SF : 0) |
		  (__builtin_parity((unsigned)r & 0xff) ? 0 : FLAG_PF);
	if (minus)
		*flags |= (a < b ? FLAG_CF : 0) | ((a ^ b) & (a ^ r) & sign ? FLAG_OF : 0);
	else if (insn->alu == ALU_ADD)
		*flags |= (r < a ? FLAG_CF : 0) | (~(a ^ b) & (a ^ r) & sign ? FLAG_OF : 0);
	if ((minus || insn->alu == ALU_ADD) && ((a ^ b ^ r) & 0x10))
		*flags |= FLAG_AF;
	if (insn->alu != ALU_CMP)
		set_reg(run, insn->reg, r, insn->size);
}

static bool condition(uint64_t flags, uint8_t cond)
{
	bool cf = flags & FLAG_CF, zf = flags & FLAG_ZF, sf = flags & FLAG_SF, of = flags & FLAG_OF;
	bool truth;

	switch (cond >> 1) {
	case 0: truth = of; break;
	case 1: truth = cf; break;
	case 2: truth = zf; break;
	case 3: truth = cf || zf; break;
	case 4: truth = sf; break;
	case 5: truth = flags & FLAG_PF; break;
	case 6: truth = sf != of; break;
	case 7: truth = zf || sf != of; break;
	default: return true;
	}
	return truth != (cond & 1);
}

static void run_string(struct run *run, const struct krn_insn *insn)
{
	uint64_t count = insn->rep ? run->cpu->regs[1] : 1;
	uint64_t from = run->cpu->regs[6], to = run->cpu->regs[7];
	char element[8];

	for (; count; count--, from += insn->size, to += insn->size) {
		memcpy(element, (const void *)from, insn->size);
		store(run, to, element, insn->size);
	}
	run->cpu->regs[6] = from;
	run->cpu->regs[7] = to;
	if (insn->rep)
		run->cpu->regs[1] = 0;
}

static void run_store(struct run *run, const struct krn_insn *insn)
{
	uint64_t value = insn->kind == INSN_STORE_IMM ? insn->imm : run->cpu->regs[insn->reg];

	if (insn->kind == INSN_STORE_BE)
		value = __builtin_bswap64(value) >> (64 - insn->size * 8);
	store(run, insn->address, &value, insn->size);
}

static void run_vector(struct run *run, const struct krn_insn *insn)
{
	char value[64];

	if (insn->kind == INSN_STORE_VEC) {
		krn_vector_get(run->cpu->vectors, insn->reg, value, insn->size);
		store(run, insn->address, value, insn->size);
		return;
	}
	memcpy(value, (const void *)insn->address, insn->size);
	remember_vector(run, insn->reg);
	krn_vector_set(run->cpu->vectors, insn->reg, value, insn->size, insn->zero_upper);
}

static void run_direct(struct run *run, const struct krn_insn *insn)
{
	char value[64];

	memcpy(value, (const void *)insn->address, sizeof(value));
	store(run, run->cpu->regs[insn->reg], value, sizeof(value));
}

/* Returns the address that a store writes, 0 for other instructions. */
static uint64_t target(const struct krn_cpu *cpu, const struct krn_insn *insn)
{
	switch (insn->kind) {
	case INSN_STORE:
	case INSN_STORE_IMM:
	case INSN_STORE_BE:
	case INSN_STORE_VEC: return insn->address;
	case INSN_REP_MOVS: return cpu->regs[7];
	case INSN_DIRECT64: return cpu->regs[insn->reg];
	default: return 0;
	}
}

static bool stores_to_uar(const struct krn_cpu *cpu, const struct krn_insn *insn)
{
	uint32_t ctx, page, off;
	uint64_t to = target(cpu, insn);

	return to && krn_uar_lookup(to, &ctx, &page, &off);
}

/* Executes one instruction. Returns false, with no effect, for an unsupported one. */
static bool run_one(struct run *run, struct krn_insn insn)
{
	uint64_t next = run->cpu->rip + insn.len;

	run->stored = false;
	if (insn.kind == INSN_REP_MOVS && !stores_to_uar(run->cpu, &insn))
		return false; /* string moves to other memory are the program's */
	switch (insn.kind) {
	case INSN_OTHER: return false;
	case INSN_NOP: break;
	case INSN_STORE:
	case INSN_STORE_IMM:
	case INSN_STORE_BE: run_store(run, &insn); break;
	case INSN_STORE_VEC:
	case INSN_LOAD_VEC: run_vector(run, &insn); break;
	case INSN_LOAD: set_reg(run, insn.reg, load(insn.address, insn.size), insn.size); break;
	case INSN_MOVE: set_reg(run, insn.reg, run->cpu->regs[insn.from], insn.size); break;
	case INSN_LEA: set_reg(run, insn.reg, insn.address, insn.size); break;
	case INSN_ALU: run_alu(run, &insn); break;
	case INSN_REP_MOVS: run_string(run, &insn); break;
	case INSN_DIRECT64: run_direct(run, &insn); break;
	case INSN_JUMP:
		if (condition(run->cpu->flags, insn.cond))
			next = insn.address;
		break;
	}
	run->cpu->rip = next;
	return true;
}

bool krn_run(struct krn_cpu *cpu)
{
	struct krn_insn insn = krn_insn_decode((const uint8_t *)cpu->rip, cpu->regs, cpu->rip);
	struct run run = { .cpu = cpu };
	int stray = 0;

	if (!stores_to_uar(cpu, &insn))
		return false;
	for (int step = 1; run_one(&run, insn) && step < STEPS_MAX && stray < STRAY_MAX; step++) {
		stray = run.stored ? 0 : stray + 1;
		if (run.stored)
			keep(&run);
		insn = krn_insn_decode((const uint8_t *)cpu->rip, cpu->regs, cpu->rip);
	}
	take_back(&run);
	deliver_touched(&run);
	return true;
}
