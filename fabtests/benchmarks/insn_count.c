/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How many instructions does a stretch of a program take, where there is no hardware counter?
 *
 * Runs a program and steps its first thread through the stretch between two SIGUSR2 that it raises,
 * one instruction at a time, and says how many belong to which file. Exact, and slow: a few hundred
 * thousand a second. A handler of SIGSEGV is not stepped through and not counted: the device model
 * carries out doorbells there. Other threads run as always and are not counted.
 *
 * usage: insn_count FILE PROGRAM [ARGUMENT...]     writes "COUNT OBJECT" lines to FILE
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAPS_MAX 1024

enum pace {
	PACE_RUN,  /* outside the stretch */
	PACE_STEP, /* inside: from instruction to instruction */
	PACE_HANDLER, /* inside, in a handler: from system call to system call, till sigreturn begins */
	PACE_RETURN, /* till sigreturn ends */
};

struct map {
	unsigned long start, end;
	char name[256];
	unsigned long cnt;
};

struct count {
	pid_t pid;
	struct map maps[MAPS_MAX];
	size_t map_cnt;
	struct map *last; /* where the previous instruction was: so is most often the next */
	enum pace pace;
};

static void die(const char *what)
{
	fprintf(stderr, "insn_count: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* Executable mappings of the program as they are now; counts so far are kept by name. */
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

		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &map.start, &map.end, perms,
			   map.name) >= 3 &&
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

static long count_syscall(const struct count *c)
{
	return (long)regs_read(c).orig_rax;
}
#else
#error "insn_count knows the registers of x86-64 only"
#endif

static void count_step(struct count *c)
{
	struct map *map = maps_find(c, count_pc(c));

	if (map)
		map->cnt++;
}

static void report(const struct count *c, const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out)
		die(path);
	for (size_t i = 0; i < c->map_cnt; i++) {
		if (c->maps[i].cnt)
			fprintf(out, "%lu %s\n", c->maps[i].cnt,
				c->maps[i].name[0] ? c->maps[i].name : "(no file)");
	}
	if (fclose(out))
		die(path);
}

/* What the program stopped for: the signal that it is to get, 0 for none. */
static int stopped(struct count *c, int sig)
{
	switch (sig) {
	case SIGUSR2:
		c->pace = c->pace == PACE_RUN ? PACE_STEP : PACE_RUN;
		if (c->pace == PACE_STEP)
			maps_read(c);
		return 0;
	case SIGTRAP:
		if (c->pace == PACE_STEP)
			count_step(c);
		return 0;
	case SIGTRAP | 0x80: /* a system call begins or ends */
		if (c->pace == PACE_RETURN)
			c->pace = PACE_STEP;
		else if (c->pace == PACE_HANDLER && count_syscall(c) == SYS_rt_sigreturn)
			c->pace = PACE_RETURN;
		return 0;
	case SIGSEGV:
		if (c->pace == PACE_STEP)
			c->pace = PACE_HANDLER;
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

/* Until the end: the program's exit status. */
static int trace(struct count *c)
{
	int status;

	if (waitpid(c->pid, &status, 0) < 0)
		die("waitpid");
	if (!WIFSTOPPED(status)) /* it could not be started */
		return EXIT_FAILURE;
	if (ptrace(PTRACE_SETOPTIONS, c->pid, NULL,
		   (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)))
		die("PTRACE_SETOPTIONS");
	resume(c, 0);
	for (;;) {
		if (waitpid(c->pid, &status, 0) < 0)
			die("waitpid");
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		resume(c, stopped(c, WSTOPSIG(status)));
	}
}

int main(int argc, char **argv)
{
	static struct count c;
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: insn_count FILE PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	c.pid = fork();
	if (c.pid < 0)
		die("fork");
	if (!c.pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			die("ptrace (a container may forbid it)");
		execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	status = trace(&c);
	if (c.pace != PACE_RUN) {
		fprintf(stderr, "insn_count: %s ended inside the stretch\n", argv[2]);
		return EXIT_FAILURE;
	}
	report(&c, argv[1]);
	return status;
}
