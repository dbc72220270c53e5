/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Trap mode: the handler of SIGSEGV for stores to UAR pages that are read-only. */
#include "model/kernel/krn_real.h"
#include "model/kernel/krn_run.h"
#include "model/kernel/krn_uar.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_raw.h"

#include <errno.h>
#include <signal.h>
#include <ucontext.h>

static const int greg_order[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				    REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15 };

static void unknown_store(uint64_t rip)
{
	const uint8_t *code = (const uint8_t *)rip;

	mdl_fatal(
		"a UAR page is accessed by an instruction that trap mode cannot carry out "
		"(%02x %02x %02x %02x %02x %02x at %p): doorbells are written by plain stores of 4 "
		"to 64 bytes and never read; poll mode takes any store",
		code[0], code[1], code[2], code[3], code[4], code[5], (const void *)code);
}

static void run_trap(ucontext_t *uc)
{
	greg_t *gregs = uc->uc_mcontext.gregs;
	struct krn_cpu cpu = { .rip = (uint64_t)gregs[REG_RIP],
			       .flags = (uint64_t)gregs[REG_EFL],
			       .vectors = uc->uc_mcontext.fpregs };

	for (int i = 0; i < 16; i++)
		cpu.regs[i] = (uint64_t)gregs[greg_order[i]];
	if (!krn_run(&cpu))
		unknown_store(cpu.rip);
	for (int i = 0; i < 16; i++)
		gregs[greg_order[i]] = (greg_t)cpu.regs[i];
	gregs[REG_RIP] = (greg_t)cpu.rip;
	gregs[REG_EFL] = (greg_t)cpu.flags;
}

static struct sigaction chained; /* previous handler */

static void handle(int number, siginfo_t *info, void *context);

/*
 * Lets the default action end the program. A faulting instruction faults again; a signal that was
 * sent is sent again, as it would be lost otherwise.
 */
static void die(int number, const siginfo_t *info)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	if (info->si_code <= 0)
		mdl_say("signal %d, sent by process %d, ends the program", number, info->si_pid);
	else
		mdl_say("signal %d ends the program: an access to %p, which is no UAR page", number,
			info->si_addr);
	krn_real()->sigaction(number, &dfl, NULL);
	if (info->si_code <= 0)
		MDL_RAW3(tgkill, MDL_RAW0(getpid), MDL_RAW0(gettid), number);
}

/* Passes a fault outside UAR pages to the previous handler, or to the default action. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	if (chained.sa_flags & SA_SIGINFO && chained.sa_sigaction && chained.sa_sigaction != handle)
		chained.sa_sigaction(number, info, context);
	else if (chained.sa_handler != SIG_DFL && chained.sa_handler != SIG_IGN &&
		 !(chained.sa_flags & SA_SIGINFO))
		chained.sa_handler(number);
	else
		die(number, info);
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
