/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a command for which some system calls fail with EPERM, as in a container with a seccomp
 * filter.
 *
 * usage: without CALL[,CALL]... COMMAND [ARGUMENT]...
 *
 * Exits with 77 where the kernel installs no filter.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	uint32_t number;
} calls[] = {
	{ "clone", SYS_clone },
	{ "clone3", SYS_clone3 },
	{ "memfd_create", SYS_memfd_create },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "process_vm_writev", SYS_process_vm_writev },
};

static void forbid(uint32_t number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
		fprintf(stderr, "without: no seccomp filter: %s\n", strerror(errno));
		exit(77);
	}
}

static void forbid_named(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, name)) {
			forbid(calls[i].number);
			return;
		}
	fprintf(stderr, "without: unknown system call %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("usage: without CALL[,CALL]... COMMAND [ARGUMENT]...\n", stderr);
		return 2;
	}
	for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ","))
		forbid_named(name);
	execvp(argv[2], argv + 2);
	fprintf(stderr, "without: %s: %s\n", argv[2], strerror(errno));
	return 127;
}
