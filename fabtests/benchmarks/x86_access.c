/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements x86_access.h: Zydis decodes the instructions. */
#include "x86_access.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>

/** Tells Zydis the registers that an address is computed from. */
static void access_registers(ZydisRegisterContext *to, const struct user_regs_struct *r)
{
	const uint64_t values[16] = { r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp,
				      r->rsi, r->rdi, r->r8,  r->r9,  r->r10, r->r11,
				      r->r12, r->r13, r->r14, r->r15 };

	for (unsigned i = 0; i < 16; i++) {
		to->values[ZYDIS_REGISTER_RAX + i] = values[i];
		to->values[ZYDIS_REGISTER_EAX + i] = (uint32_t)values[i];
	}
}

static uint64_t access_segment(ZydisRegister segment, const struct user_regs_struct *regs)
{
	if (segment == ZYDIS_REGISTER_FS)
		return regs->fs_base;
	return segment == ZYDIS_REGISTER_GS ? regs->gs_base : 0;
}

/** Returns true for instructions that access nothing, although an operand is in memory. */
static bool access_is_hint(const ZydisDecodedInstruction *insn)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_PREFETCHWT1: return true;
	default: return false;
	}
}

/** Returns the bytes of an operand: of one element if that is broadcast. */
static uint32_t access_len(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op)
{
	bool one = insn->avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID &&
		   !insn->avx.broadcast.is_static;

	return (one ? op->element_size : op->size) / 8u;
}

/** Returns how far the stack grows before an instruction stores into it. */
static uint32_t access_growth(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op)
{
	bool grows = insn->meta.category == ZYDIS_CATEGORY_PUSH ||
		     insn->meta.category == ZYDIS_CATEGORY_CALL;
	bool hidden = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;

	return grows && hidden && op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? op->size / 8u : 0;
}

static bool access_of(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op,
		      const struct user_regs_struct *regs, struct x86_access *to)
{
	static ZydisRegisterContext context;

	access_registers(&context, regs);
	if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(insn, op, regs->rip, &context, &to->addr)))
		return false;
	to->addr += access_segment(op->mem.segment, regs) - access_growth(insn, op);
	/* leave takes its word from where the stack pointer will be. */
	if (insn->mnemonic == ZYDIS_MNEMONIC_LEAVE)
		to->addr = regs->rbp;
	to->len = access_len(insn, op);
	return to->len != 0;
}

static bool access_decode(const uint8_t *code, ZydisDecodedInstruction *insn,
			  ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT])
{
	static ZydisDecoder decoder;

	if (decoder.machine_mode != ZYDIS_MACHINE_MODE_LONG_64 || !decoder.stack_width)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, X86_INSN_MAX, insn, ops));
}

int x86_accesses(const uint8_t *code, const struct user_regs_struct *regs,
		 struct x86_access out[X86_ACCESS_MAX])
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	int cnt = 0;

	if (!access_decode(code, &insn, ops))
		return -1;
	if (access_is_hint(&insn))
		return 0;
	if (insn.attributes &
		    (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE) &&
	    !regs->rcx)
		return 0;
	for (unsigned i = 0; i < insn.operand_count; i++) {
		if (ops[i].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    ops[i].mem.type == ZYDIS_MEMOP_TYPE_AGEN)
			continue;
		if (ops[i].mem.type != ZYDIS_MEMOP_TYPE_MEM || cnt == X86_ACCESS_MAX ||
		    !access_of(&insn, &ops[i], regs, &out[cnt++]))
			return -1;
	}
	return cnt;
}
