/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Instructions of a section of a program, where there is no hardware counter.
 *
 * Runs a program, steps its first thread through the section between two SIGUSR2 that it raises,
 * one instruction at a time, and reports the number of instructions in each mapped file. Exact and
 * slow: a few hundred thousand a second. A handler of SIGSEGV is neither stepped nor counted,
 * because the device model executes doorbells there. Other threads run at full speed and are not
 * counted. A call of the kernel's vDSO counts each of its instructions once: it reads the clock
 * again where the kernel has changed the clock meanwhile, which happens to a stepped program only.
 *
 * usage: insn_count [-st] [-a | -l] FILE PROGRAM [ARGUMENT...]
 *
 * writes "COUNT OBJECT" lines to FILE; with -a "COUNT OBJECT OFFSET", one for each instruction
 * address that was met, by its offset in the file (fabtests/scripts/cost-where maps them to
 * functions).
 *
 * -s traces the program from where it stops itself (SIGSTOP). What is before, as a warm-up, runs at
 * full speed; else each signal costs a stop, and on the device model each doorbell two of them.
 *
 * -t is for a program that traps reads of the processor's counter (PR_SET_TSC). insn_count then
 * traps its own, too: else the kernel writes a control register whenever the two take turns, which
 * a virtual machine makes a third of the cost of a step.
 *
 * -l counts cache lines instead. Each round of the section has four parts, which the program ends
 * with SIGUSR1: it prepares, end 0 sends, end 1 receives and responds, end 0 receives. Writes
 * "END ADDRESS OBJECT OFFSET" for each line that an end touched in one round only (insn_lines.h),
 * with the first instruction that did.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "insn_lines.h"
#include "x86_access.h"

#define ROUND_PARTS 4u

#define MAPS_MAX 1024
#define VDSO_MAX (1u << 14) /* bytes of the vDSO's code */
#define PCS_MAX  (1u << 18) /* distinct addresses: a power of two */

enum pace {
	PACE_RUN,  /* outside the section */
	PACE_STEP, /* inside: from instruction to instruction */
	/* inside, in a handler: from system call to system call, until sigreturn begins */
	PACE_HANDLER,
	PACE_RETURN, /* until sigreturn ends */
};

struct map {
	unsigned long start, end;
	unsigned long offset; /* of start in the file */
	char name[256];
	unsigned long cnt;
};

struct pc {
	unsigned long addr; /* 0: the entry is free */
	unsigned long cnt;
};

struct count {
	pid_t pid;
	struct map maps[MAPS_MAX];
	size_t map_cnt;
	/* mapping of the previous instruction, which is likely that of the next */
	struct map *last;
	enum pace pace;
	unsigned long fault; /* instruction that raised the handled signal, */
	int within;          /* and number of handlers running */
	struct pc *pcs;      /* PCS_MAX entries, or NULL: no addresses recorded */
	size_t pc_cnt;
	bool vdso_met[VDSO_MAX]; /* instructions of the current call of the vDSO, by their offset */
	bool lines;              /* cache lines are counted */
	bool late;               /* the program is traced from where it stops itself */
	bool traps_counter;      /* reads of the processor's counter trap */
	uint32_t part;           /* parts of rounds that have ended */
};

static void die(const char *what)
{
	fprintf(stderr, "insn_count: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* Reads the executable mappings of the program. Counts are kept by name. */
static void maps_read(struct count *c)
{
	char path[64], line[1024], perms[8];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)c->pid);
	file = fopen(path, "r");
	if (!file)
		die(path);
	while (fgets(line, sizeof(line), file) && c->map_cnt < MAPS_MAX) {
		struct map map = { 0 };

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &map.start, &map.end, perms,
			   &map.offset, map.name) >= 4 &&
		    strchr(perms, 'x'))
			c->maps[c->map_cnt++] = map;
	}
	fclose(file);
}

static struct map *maps_find(struct count *c, unsigned long pc)
{
	if (c->last && pc >= c->last->start && pc < c->last->end)
		return c->last;
	for (size_t i = 0; i < c->map_cnt; i++) {
		if (pc >= c->maps[i].start && pc < c->maps[i].end)
			return c->last = &c->maps[i];
	}
	return NULL;
}

#if defined(__x86_64__)
static struct user_regs_struct regs_read(const struct count *c)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, c->pid, NULL, &regs))
		die("PTRACE_GETREGS");
	return regs;
}

static unsigned long count_pc(const struct count *c)
{
	return regs_read(c).rip;
}

#ifdef HAVE_ZYDIS
static const bool can_count_lines = true;

/* Notes what the next instruction accesses. */
static void count_accesses(const struct count *c)
{
	struct user_regs_struct regs = regs_read(c);
	uint8_t code[2 * X86_INSN_MAX] = { 0 };
	struct iovec local = { .iov_base = code, .iov_len = X86_INSN_MAX };
	struct iovec remote = { .iov_base = (void *)regs.rip, .iov_len = X86_INSN_MAX };
	struct x86_access accesses[X86_ACCESS_MAX];
	int i, cnt;

	if (process_vm_readv(c->pid, &local, 1, &remote, 1, 0) <= 0)
		die("reading an instruction");
	cnt = x86_accesses(code, &regs, accesses);
	if (cnt < 0) {
		fprintf(stderr, "insn_count: instruction with unknown accesses at %#llx\n",
			regs.rip);
		exit(EXIT_FAILURE);
	}
	for (i = 0; i < cnt; i++)
		insn_lines_touch(accesses[i].addr, accesses[i].len, regs.rip);
}

#else
static const bool can_count_lines = false;

static void count_accesses(const struct count *c)
{
	(void)c;
}
#endif

static long count_syscall(const struct count *c)
{
	return (long)regs_read(c).orig_rax;
}
#else
#error "insn_count knows the registers of x86-64 only"
#endif

/* Returns the entry of `addr`, or the free one that it gets. */
static struct pc *pcs_find(struct count *c, unsigned long addr)
{
	size_t at = addr * 0x9E3779B97F4A7C15ul >> 32 & (PCS_MAX - 1);

	while (c->pcs[at].addr && c->pcs[at].addr != addr)
		at = (at + 1) & (PCS_MAX - 1);
	return &c->pcs[at];
}

static void count_addr(struct count *c, unsigned long addr)
{
	struct pc *pc = pcs_find(c, addr);

	if (!pc->addr && ++c->pc_cnt == PCS_MAX) {
		fprintf(stderr, "insn_count: more than %u instructions\n", PCS_MAX - 1);
		exit(EXIT_FAILURE);
	}
	pc->addr = addr;
	pc->cnt++;
}

/* Returns whether a call of the vDSO executes the instruction once more. */
static bool vdso_repeats(struct count *c, const struct map *map, unsigned long addr, bool begins)
{
	bool *met = &c->vdso_met[(addr - map->start) % VDSO_MAX];
	bool repeats;

	if (begins)
		memset(c->vdso_met, 0, sizeof(c->vdso_met));
	repeats = *met;
	*met = true;
	return repeats;
}

static void count_step(struct count *c)
{
	unsigned long addr = count_pc(c);
	const struct map *last = c->last;
	struct map *map = maps_find(c, addr);

	if (!map)
		return;
	if (!strcmp(map->name, "[vdso]") && vdso_repeats(c, map, addr, map != last))
		return;
	map->cnt++;
	if (c->pcs)
		count_addr(c, addr);
	if (c->lines && c->part % ROUND_PARTS)
		count_accesses(c);
}

/* Begins or ends the section. */
static void count_mark(struct count *c)
{
	c->pace = c->pace == PACE_RUN ? PACE_STEP : PACE_RUN;
	if (c->pace != PACE_STEP)
		return;
	maps_read(c);
	c->part = 0;
	insn_lines_begin();
	insn_lines_at(0, 0);
}

/* Ends a part of a round. */
static void count_part(struct count *c)
{
	c->part++;
	insn_lines_at(c->part / ROUND_PARTS, c->part % ROUND_PARTS == 2);
}

static const char *map_name(const struct map *map)
{
	return map->name[0] ? map->name : "(no file)";
}

static void report_addrs(struct count *c, FILE *out)
{
	for (size_t i = 0; i < PCS_MAX; i++) {
		const struct pc *pc = &c->pcs[i];
		const struct map *map = pc->addr ? maps_find(c, pc->addr) : NULL;

		if (map)
			fprintf(out, "%lu %s 0x%lx\n", pc->cnt, map_name(map),
				pc->addr - map->start + map->offset);
	}
}

struct report_to {
	struct count *c;
	FILE *out;
};

static void report_line(void *arg, unsigned end, uint64_t addr, uint64_t pc)
{
	const struct report_to *to = arg;
	const struct map *map = maps_find(to->c, pc);

	if (map)
		fprintf(to->out, "%u 0x%lx %s 0x%lx\n", end, addr, map_name(map),
			pc - map->start + map->offset);
}

static void report(struct count *c, const char *path)
{
	FILE *out = fopen(path, "w");
	struct report_to to = { .c = c, .out = out };

	if (!out)
		die(path);
	if (c->pcs)
		report_addrs(c, out);
	if (c->lines)
		insn_lines_each(report_line, &to);
	for (size_t i = 0; !c->pcs && !c->lines && i < c->map_cnt; i++) {
		if (c->maps[i].cnt)
			fprintf(out, "%lu %s\n", c->maps[i].cnt, map_name(&c->maps[i]));
	}
	if (fclose(out))
		die(path);
}

/* Ends a handler. The handled instruction was executed by the handler and is counted. */
static void returned(struct count *c)
{
	c->pace = PACE_STEP;
	if (count_pc(c) != c->fault)
		count_step(c);
}

/* Handles a stop of the program. Returns the signal to deliver, or 0. */
static int stopped(struct count *c, int sig)
{
	switch (sig) {
	case SIGUSR2: count_mark(c); return 0;
	case SIGUSR1:
		if (!c->lines || c->pace != PACE_STEP)
			return sig;
		count_part(c);
		return 0;
	case SIGTRAP:
		if (c->pace == PACE_STEP)
			count_step(c);
		return 0;
	case SIGTRAP | 0x80: /* a system call begins or ends */
		if (c->pace == PACE_RETURN)
			returned(c);
		else if (c->pace == PACE_HANDLER && count_syscall(c) == SYS_rt_sigreturn &&
			 !c->within--)
			c->pace = PACE_RETURN;
		return 0;
	case SIGSEGV:
		if (c->pace == PACE_STEP) {
			c->pace = PACE_HANDLER;
			c->fault = count_pc(c);
			c->within = 0;
		} else if (c->pace == PACE_HANDLER) {
			c->within++;
		}
		return sig;
	default: return sig;
	}
}

static void resume(const struct count *c, int sig)
{
	static const int requests[] = { [PACE_RUN] = PTRACE_CONT,
					[PACE_STEP] = PTRACE_SINGLESTEP,
					[PACE_HANDLER] = PTRACE_SYSCALL,
					[PACE_RETURN] = PTRACE_SYSCALL };

	if (ptrace(requests[c->pace], c->pid, NULL, (void *)(long)sig))
		die("ptrace");
}

/* Begins to trace: the program has been stopped by its exec, or has stopped itself. */
static void trace_begin(struct count *c)
{
	void *options = (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);

	if (c->traps_counter && prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		die("PR_SET_TSC");
	if (ptrace(c->late ? PTRACE_SEIZE : PTRACE_SETOPTIONS, c->pid, NULL, options))
		die("ptrace (a container may forbid it)");
	if (!c->late)
		resume(c, 0);
	else if (kill(c->pid, SIGCONT))
		die("SIGCONT");
}

/* Traces until the end. Returns the program's exit status. */
static int trace(struct count *c)
{
	int status;

	if (waitpid(c->pid, &status, WUNTRACED) < 0)
		die("waitpid");
	if (!WIFSTOPPED(status)) {
		fprintf(stderr, "insn_count: the program ended before it was traced%s\n",
			c->late ? ": -s needs one that raises SIGSTOP" : "");
		return EXIT_FAILURE;
	}
	trace_begin(c);
	for (;;) {
		if (waitpid(c->pid, &status, 0) < 0)
			die("waitpid");
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		if (status >> 16 == PTRACE_EVENT_STOP) /* the end of the stop by SIGSTOP */
			resume(c, 0);
		else
			resume(c, stopped(c, WSTOPSIG(status)));
	}
}

/* Becomes the program. */
static void run(const struct count *c, char **argv)
{
	if (!c->late && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		die("ptrace (a container may forbid it)");
	execvp(argv[0], argv);
	die(argv[0]);
}

static int usage(void)
{
	fprintf(stderr, "usage: insn_count [-st] [-a | -l] FILE PROGRAM [ARGUMENT...]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct count c;
	bool addrs = false;
	int opt, status;

	while ((opt = getopt(argc, argv, "+last")) != -1) {
		switch (opt) {
		case 'a': addrs = true; break;
		case 'l': c.lines = true; break;
		case 's': c.late = true; break;
		case 't': c.traps_counter = true; break;
		default: return usage();
		}
	}
	argv += optind;
	if (argc - optind < 2 || (addrs && c.lines))
		return usage();
	if (c.lines && !can_count_lines) {
		fprintf(stderr,
			"insn_count: -l needs Zydis (Debian: libzydis-dev); configure again\n");
		return 2;
	}
	if (addrs && !(c.pcs = calloc(PCS_MAX, sizeof(*c.pcs))))
		die("counting by instruction");
	c.pid = fork();
	if (c.pid < 0)
		die("fork");
	if (!c.pid)
		run(&c, argv + 1);
	status = trace(&c);
	if (c.pace != PACE_RUN) {
		fprintf(stderr, "insn_count: %s ended inside the stretch\n", argv[1]);
		return EXIT_FAILURE;
	}
	report(&c, argv[0]);
	return status;
}
