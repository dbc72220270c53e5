/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Trap mode: the handler of SIGSEGV carries out stores to UAR pages, and runs the NIC.
 *
 * It goes on through the instructions that follow, as long as they are of the few kinds that copies are
 * made of, so that a BlueFlame copy of straight-line code, or of a plain loop, is one trap. What it tried
 * after the last store to a UAR page is undone, so that the program itself carries it out after the NIC
 * has run, and sees what the NIC did. Where a copy is
 * done in several calls (memmove() of one block each) the parts are put together: a doorbell register's
 * first 8 bytes tell how long its WQE is.
 */
#include "model/krn_ctx.h"
#include "model/krn_insn.h"
#include "model/krn_real.h"
#include "model/krn_uar.h"
#include "model/krn_vector.h"
#include "model/mdl_nic.h"
#include "model/mdl_raw.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#define STEPS_MAX  400 /* instructions of one trap */
#define STRAY_MAX  16  /* of these in a row without a store to a UAR page */
#define HALF_BYTES 256

/* What an instruction overwrote: memory, or a vector register. */
struct undo {
	void *memory; /* null: the register */
	uint32_t reg, len;
	char old[64];
};

/* One thread's trap. */
struct trap {
	ucontext_t *uc;
	uint64_t regs[16];
	uint32_t touched; /* halves of the doorbell registers of one page, as bits */
	uint32_t ctx, page;
	bool stored; /* the instruction stored to a UAR page */
	/* as it was after the last such store, and what was overwritten since */
	uint64_t kept_regs[16];
	greg_t kept_rip, kept_flags;
	struct undo undo[STRAY_MAX + 1];
	uint32_t undo_cnt;
};

/* What of each half of each register was written and not yet given to the NIC: a bit for 4 bytes. */
static uint64_t written[MDL_CTX_MAX][MDL_UAR_PAGES][4];

static const int greg_order[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				    REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15 };

/* ---- registers and the NIC */

static uint32_t half_offset(uint32_t half)
{
	return KRN_UAR_BF + half * HALF_BYTES;
}

/* How many bytes from the start of a half are there without a gap. */
static uint32_t contiguous(uint64_t mask)
{
	return ~mask ? (uint32_t)__builtin_ctzll(~mask) * 4 : HALF_BYTES;
}

/* The bytes of the WQE whose control segment starts the half, in whole blocks. */
static uint32_t wqe_bytes(const char *half)
{
	return (((uint32_t)half[7] & 0x3f) * 16 + 63) & ~63u;
}

/* Gives what was written to a half to the NIC. `now`: even if more was expected. */
static void deliver(uint32_t ctx, uint32_t page, uint32_t half, bool now)
{
	uint64_t *mask = &written[ctx][page][half];
	uint32_t len = contiguous(*mask) & ~7u, off = half_offset(half);
	char bytes[HALF_BYTES];

	if (len < 8) {
		/* The rest of a copy whose first part went as a doorbell by itself; or half a doorbell. */
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

static void deliver_touched(struct trap *trap)
{
	for (uint32_t half = 0; half < 4; half++)
		if (trap->touched >> half & 1)
			deliver(trap->ctx, trap->page, half, false);
	trap->touched = 0;
}

/* `same`: the bytes were there already. A copy of one block may store it twice (memmove() does). */
static void note_register(struct trap *trap, uint32_t ctx, uint32_t page, uint32_t off,
			  uint32_t len, bool same)
{
	uint32_t half = (off - KRN_UAR_BF) / HALF_BYTES, at = off % HALF_BYTES;
	uint64_t bits = (len >= HALF_BYTES ? ~0ull : (1ull << len / 4) - 1) << at / 4;

	if (trap->ctx != ctx || trap->page != page || (trap->touched & ~(1u << half)))
		deliver_touched(trap);
	if (same && (written[ctx][page][half] & bits) == bits)
		return;
	/* A new doorbell where another was under way: that one is all there is. */
	if ((written[ctx][page][half] & bits) && at == 0)
		deliver(ctx, page, half, true);
	written[ctx][page][half] |= bits;
	trap->ctx = ctx;
	trap->page = page;
	trap->touched |= 1u << half;
}

/* ---- memory as the program's instructions see it */

static void store_uar(struct trap *trap, uint32_t ctx, uint32_t page, uint32_t off,
		      const void *from, uint32_t len)
{
	char *to = krn_ctx_get(ctx)->pages + page * MDL_PAGE + off;
	bool same;

	if (off + len > MDL_PAGE)
		mdl_fatal("a store of %u bytes runs over the end of a UAR page", len);
	same = memcmp(to, from, len) == 0;
	memcpy(to, from, len);
	trap->stored = true;
	if (off >= KRN_UAR_BF && off + len <= KRN_UAR_BF + 4 * HALF_BYTES)
		note_register(trap, ctx, page, off, len, same);
	else
		nic_uar_write(ctx, page, off, from, len);
}

static void remember_memory(struct trap *trap, uint64_t address, uint32_t len)
{
	struct undo *undo = &trap->undo[trap->undo_cnt++];

	undo->memory = (void *)address;
	undo->len = len;
	memcpy(undo->old, undo->memory, len);
}

static void remember_vector(struct trap *trap, uint32_t reg)
{
	struct undo *undo = &trap->undo[trap->undo_cnt++];

	undo->memory = NULL;
	undo->reg = reg;
	krn_vector_get(trap->uc, reg, undo->old, sizeof(undo->old));
}

/* From here on the program may be taken back to this point. */
static void keep(struct trap *trap)
{
	memcpy(trap->kept_regs, trap->regs, sizeof(trap->regs));
	trap->kept_rip = trap->uc->uc_mcontext.gregs[REG_RIP];
	trap->kept_flags = trap->uc->uc_mcontext.gregs[REG_EFL];
	trap->undo_cnt = 0;
}

static void take_back(struct trap *trap)
{
	while (trap->undo_cnt) {
		struct undo *undo = &trap->undo[--trap->undo_cnt];

		if (undo->memory)
			memcpy(undo->memory, undo->old, undo->len);
		else
			krn_vector_set(trap->uc, undo->reg, undo->old, sizeof(undo->old), true);
	}
	memcpy(trap->regs, trap->kept_regs, sizeof(trap->regs));
	trap->uc->uc_mcontext.gregs[REG_RIP] = trap->kept_rip;
	trap->uc->uc_mcontext.gregs[REG_EFL] = trap->kept_flags;
}

static void store(struct trap *trap, uint64_t address, const void *from, uint32_t len)
{
	uint32_t ctx, page, off;

	if (krn_uar_lookup(address, &ctx, &page, &off)) {
		store_uar(trap, ctx, page, off, from, len);
		return;
	}
	remember_memory(trap, address, len);
	memcpy((void *)address, from, len);
}

/* ---- carrying out */

static void set_reg(struct trap *trap, uint32_t reg, uint64_t value, uint32_t size)
{
	if (size == 2)
		value = (trap->regs[reg] & ~0xffffull) | (value & 0xffff);
	else if (size == 4)
		value &= 0xffffffffu;
	trap->regs[reg] = value;
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

static void run_alu(struct trap *trap, const struct krn_insn *insn)
{
	uint32_t bits = insn->size * 8;
	uint64_t keep = bits == 64 ? ~0ull : (1ull << bits) - 1, sign = 1ull << (bits - 1);
	uint64_t a = trap->regs[insn->reg] & keep, b, r;
	greg_t *flags = &trap->uc->uc_mcontext.gregs[REG_EFL];
	bool minus = insn->alu == ALU_SUB || insn->alu == ALU_CMP;

	b = insn->has_imm ? insn->imm
	    : insn->mem   ? load(insn->address, insn->size)
			  : trap->regs[insn->from];
	b &= keep;
	switch (insn->alu) {
	case ALU_ADD: r = a + b; break;
	case ALU_OR: r = a | b; break;
	case ALU_AND: r = a & b; break;
	case ALU_XOR: r = a ^ b; break;
	default: r = a - b; break;
	}
	r &= keep;
	*flags &= ~(greg_t)(FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF);
	*flags |= (r ? 0 : FLAG_ZF) | (r & sign ? FLAG_SF : 0) |
		  (__builtin_parity((unsigned)r & 0xff) ? 0 : FLAG_PF);
	if (minus)
		*flags |= (a < b ? FLAG_CF : 0) | ((a ^ b) & (a ^ r) & sign ? FLAG_OF : 0);
	else if (insn->alu == ALU_ADD)
		*flags |= (r < a ? FLAG_CF : 0) | (~(a ^ b) & (a ^ r) & sign ? FLAG_OF : 0);
	if ((minus || insn->alu == ALU_ADD) && ((a ^ b ^ r) & 0x10))
		*flags |= FLAG_AF;
	if (insn->alu != ALU_CMP)
		set_reg(trap, insn->reg, r, insn->size);
}

static bool condition(greg_t flags, uint8_t cond)
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

static void run_string(struct trap *trap, const struct krn_insn *insn)
{
	uint64_t count = insn->rep ? trap->regs[1] : 1;
	uint64_t from = trap->regs[6], to = trap->regs[7];
	char element[8];

	for (; count; count--, from += insn->size, to += insn->size) {
		memcpy(element, (const void *)from, insn->size);
		store(trap, to, element, insn->size);
	}
	trap->regs[6] = from;
	trap->regs[7] = to;
	if (insn->rep)
		trap->regs[1] = 0;
}

static void run_store(struct trap *trap, const struct krn_insn *insn)
{
	uint64_t value = insn->kind == INSN_STORE_IMM ? insn->imm : trap->regs[insn->reg];

	if (insn->kind == INSN_STORE_BE)
		value = __builtin_bswap64(value) >> (64 - insn->size * 8);
	store(trap, insn->address, &value, insn->size);
}

static void run_vector(struct trap *trap, const struct krn_insn *insn)
{
	char value[64];

	if (insn->kind == INSN_STORE_VEC) {
		krn_vector_get(trap->uc, insn->reg, value, insn->size);
		store(trap, insn->address, value, insn->size);
		return;
	}
	memcpy(value, (const void *)insn->address, insn->size);
	remember_vector(trap, insn->reg);
	krn_vector_set(trap->uc, insn->reg, value, insn->size, insn->zero_upper);
}

static void run_direct(struct trap *trap, const struct krn_insn *insn)
{
	char value[64];

	memcpy(value, (const void *)insn->address, sizeof(value));
	store(trap, trap->regs[insn->reg], value, sizeof(value));
}

/* A string move elsewhere is a matter of its own. */
static bool leads_elsewhere(const struct trap *trap, const struct krn_insn *insn)
{
	uint32_t ctx, page, off;

	return insn->kind == INSN_REP_MOVS && !krn_uar_lookup(trap->regs[7], &ctx, &page, &off);
}

/* Carries out one instruction; false: it is not of those known, nothing was done. */
static bool run_one(struct trap *trap)
{
	uint64_t rip = (uint64_t)trap->uc->uc_mcontext.gregs[REG_RIP];
	struct krn_insn insn = krn_insn_decode((const uint8_t *)rip, trap->regs, rip);
	uint64_t next = rip + insn.len;

	trap->stored = false;
	if (leads_elsewhere(trap, &insn))
		return false;
	switch (insn.kind) {
	case INSN_OTHER: return false;
	case INSN_NOP: break;
	case INSN_STORE:
	case INSN_STORE_IMM:
	case INSN_STORE_BE: run_store(trap, &insn); break;
	case INSN_STORE_VEC:
	case INSN_LOAD_VEC: run_vector(trap, &insn); break;
	case INSN_LOAD: set_reg(trap, insn.reg, load(insn.address, insn.size), insn.size); break;
	case INSN_MOVE: set_reg(trap, insn.reg, trap->regs[insn.from], insn.size); break;
	case INSN_LEA: set_reg(trap, insn.reg, insn.address, insn.size); break;
	case INSN_ALU: run_alu(trap, &insn); break;
	case INSN_REP_MOVS: run_string(trap, &insn); break;
	case INSN_DIRECT64: run_direct(trap, &insn); break;
	case INSN_JUMP:
		if (condition(trap->uc->uc_mcontext.gregs[REG_EFL], insn.cond))
			next = insn.address;
		break;
	}
	trap->uc->uc_mcontext.gregs[REG_RIP] = (greg_t)next;
	return true;
}

static void unknown_store(const ucontext_t *uc)
{
	const uint8_t *code = (const uint8_t *)uc->uc_mcontext.gregs[REG_RIP];

	mdl_fatal(
		"a UAR page is accessed by an instruction that trap mode cannot carry out "
		"(%02x %02x %02x %02x %02x %02x at %p): doorbells are written by plain stores of 4 "
		"to 64 bytes and never read; poll mode takes any store",
		code[0], code[1], code[2], code[3], code[4], code[5], (const void *)code);
}

/* The store that trapped, and what follows it. */
static void run_trap(ucontext_t *uc)
{
	struct trap trap = { .uc = uc };
	int stray = 0;

	for (int i = 0; i < 16; i++)
		trap.regs[i] = (uint64_t)uc->uc_mcontext.gregs[greg_order[i]];
	for (int step = 0; step < STEPS_MAX && stray < STRAY_MAX; step++) {
		if (!run_one(&trap)) {
			if (!step)
				unknown_store(uc);
			break;
		}
		stray = trap.stored ? 0 : stray + 1;
		if (trap.stored)
			keep(&trap);
	}
	take_back(&trap);
	for (int i = 0; i < 16; i++)
		uc->uc_mcontext.gregs[greg_order[i]] = (greg_t)trap.regs[i];
	deliver_touched(&trap);
}

/* ---- the handler */

static struct sigaction chained; /* whoever had it before us */

static void handle(int number, siginfo_t *info, void *context);

/* A fault that is none of ours: to whoever had the signal before, or to the default action. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	if (chained.sa_flags & SA_SIGINFO && chained.sa_sigaction && chained.sa_sigaction != handle)
		chained.sa_sigaction(number, info, context);
	else if (chained.sa_handler != SIG_DFL && chained.sa_handler != SIG_IGN &&
		 !(chained.sa_flags & SA_SIGINFO))
		chained.sa_handler(number);
	else
		krn_real()->sigaction(number, &dfl, NULL); /* the instruction faults again */
}

static void handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	uint32_t ctx, page, off;

	if (info->si_code <= 0 || !krn_uar_lookup((uintptr_t)info->si_addr, &ctx, &page, &off)) {
		pass_on(number, info, context);
		errno = saved;
		return;
	}
	mdl_count_add(&mdl_self.proc->count, MDL_CNT_TRAPS, 1);
	run_trap(context);
	errno = saved;
}

void krn_trap_arm(void)
{
	struct sigaction ours = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct sigaction now;

	krn_real()->sigaction(SIGSEGV, NULL, &now);
	if (now.sa_sigaction == handle)
		return;
	sigfillset(&ours.sa_mask);
	sigdelset(&ours.sa_mask, SIGSEGV);
	chained = now;
	krn_real()->sigaction(SIGSEGV, &ours, NULL);
}
