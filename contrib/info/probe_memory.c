/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that processes of a host share: memfd, copies by the kernel, /dev/shm, huge pages.
 *
 * Permission to copy is tried with two children that are siblings, as ranks of a job are: Yama
 * permits more to a parent. Sysctls are read only to explain a refusal.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dev/shm/shm_seg.h"
#include "info/info.h"
#include "info/info_child.h"
#include "info/info_probes.h"
#include "info/info_sys.h"

#define TOPIC   "memory"
#define SHM_MIN ((uint64_t)256 << 20) /* Open MPI's windows and its own segments, a few ranks */

static void memory_memfd(struct info_report *report)
{
	int ret = shm_seg_probe(NULL);

	if (!ret) {
		info_add(report, INFO_GOOD, TOPIC, "memfd",
			 "memfd_create works: processes of this host share memory, which counts "
			 "as memory of the processes, not as files of /dev/shm");
		return;
	}
	info_add(report, INFO_SLOW, TOPIC, "memfd-refused",
		 "the system refuses memfd_create (a seccomp filter?): processes of this host "
		 "reach each other by slower paths");
	info_mend(report, "permit memfd_create in the container's seccomp profile "
			  "(docker run --security-opt seccomp=PROFILE)");
}

/* ---- copies by the kernel ---- */

#define COPY_UNTRIED 255 /* no process could be started; above every errno */

static uint64_t memory_nonce;

/* Reads the nonce of the sibling `pid`. Returns 0 or errno. */
static int memory_read(pid_t pid)
{
	uint64_t got = 0;
	struct iovec local = { &got, sizeof(got) },
		     remote = { &memory_nonce, sizeof(memory_nonce) };

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0)
		return errno;
	return got == memory_nonce ? 0 : EIO;
}

/* Starts two siblings, one of which reads the other. Returns 0, errno, or COPY_UNTRIED. */
static int memory_copy_child(void *arg, int out)
{
	int status = 0;
	pid_t target, reader;

	(void)arg;
	(void)out;
	memory_nonce = 0x9E3779B97F4A7C15ull ^ (uint64_t)getpid();
	target = fork();
	if (!target) {
		pause();
		_exit(0);
	}
	reader = target > 0 ? fork() : -1;
	if (!reader)
		_exit(memory_read(target));
	if (reader > 0)
		waitpid(reader, &status, 0);
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
	if (reader < 0)
		return COPY_UNTRIED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static void memory_copy_refused(struct info *info, int err)
{
	uint64_t scope = 0;
	bool yama = info_sys_number(&scope, info->root, "/proc/sys/kernel/yama/ptrace_scope");

	info_add(&info->report, INFO_SLOW, TOPIC, "copy-refused",
		 "process_vm_readv between two processes of this host fails (%s)%s: messages "
		 "from FI_COPYRPC_SINGLE_COPY_MIN on are copied twice",
		 strerror(err),
		 err == ENOSYS   ? ", the kernel does not have it"
		 : yama && scope ? ", because kernel.yama.ptrace_scope is not 0"
				 : ", because a seccomp filter or security module forbids it");
	if (yama && scope)
		info_mend(&info->report, "sysctl -w kernel.yama.ptrace_scope=0 (as root)");
	else
		info_mend(&info->report, "permit process_vm_readv and process_vm_writev: docker "
					 "run --cap-add SYS_PTRACE");
}

static void memory_copy(struct info *info)
{
	struct info_child child;

	if (info_child_run(memory_copy_child, NULL, INFO_CHILD_SECONDS, &child) || !child.ended ||
	    child.status == COPY_UNTRIED)
		info_add(&info->report, INFO_NOTE, TOPIC, "copy-untried",
			 "process_vm_readv could not be tried: no process can be started");
	else if (child.status)
		memory_copy_refused(info, child.status);
	else
		info_add(&info->report, INFO_GOOD, TOPIC, "copy",
			 "process_vm_readv between two processes works: long messages are copied "
			 "once");
	info_child_fini(&child);
}

/* Returns whether the user switched copies by the kernel off. */
static bool memory_copy_is_off(void)
{
	const char *off = getenv("FI_COPYRPC_SINGLE_COPY");

	return off && !strcmp(off, "0");
}

/* ---- files and pages ---- */

static void memory_dev_shm(struct info_report *report)
{
	struct statvfs fs;
	uint64_t size, left;

	if (statvfs("/dev/shm", &fs)) {
		info_add(report, INFO_SLOW, TOPIC, "dev-shm-missing",
			 "/dev/shm: %s; copyrpc does not need it, windows of MPI within a host "
			 "(osc sm) do",
			 strerror(errno));
		info_mend(report, "mount -t tmpfs tmpfs /dev/shm (as root)");
		return;
	}
	if (access("/dev/shm", W_OK | X_OK)) {
		info_add(report, INFO_SLOW, TOPIC, "dev-shm-unwritable",
			 "/dev/shm: %s; copyrpc does not need it, but windows of MPI within a host "
			 "(osc sm) and Open MPI's own segments do",
			 strerror(errno));
		info_mend(report, "mount -t tmpfs -o mode=1777 tmpfs /dev/shm (as root)");
		return;
	}
	size = (uint64_t)fs.f_blocks * fs.f_frsize;
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (left >= SHM_MIN) {
		info_add(report, INFO_GOOD, TOPIC, "dev-shm", "/dev/shm has %llu of %llu MiB left",
			 (unsigned long long)left >> 20, (unsigned long long)size >> 20);
		return;
	}
	info_add(report, INFO_SLOW, TOPIC, "dev-shm-small",
		 "/dev/shm has %llu of %llu MiB left; copyrpc does not need it, but windows of "
		 "MPI within a host (osc sm) and Open MPI's own segments do, and a full one ends "
		 "a job by SIGBUS",
		 (unsigned long long)left >> 20, (unsigned long long)size >> 20);
	info_mend(report, "mount -o remount,size=2G /dev/shm (as root; docker run --shm-size=2g)");
}

static void memory_pages(struct info *info)
{
	char shmem[128], heap[128];

	if (!info_sys_line(shmem, sizeof(shmem), info->root,
			   "/sys/kernel/mm/transparent_hugepage/shmem_enabled") ||
	    !info_sys_line(heap, sizeof(heap), info->root,
			   "/sys/kernel/mm/transparent_hugepage/enabled"))
		return;
	info_add(&info->report, INFO_NOTE, TOPIC, "huge-pages",
		 "transparent huge pages: %s for shared memory, %s for other memory; copyrpc's "
		 "rings are small and request none",
		 info_sys_chosen(shmem), info_sys_chosen(heap));
}

void info_probe_memory(struct info *info)
{
	memory_memfd(&info->report);
	if (memory_copy_is_off())
		info_add(&info->report, INFO_NOTE, TOPIC, "copy-off",
			 "FI_COPYRPC_SINGLE_COPY=0: the kernel copies no messages");
	else
		memory_copy(info);
	memory_dev_shm(&info->report);
	memory_pages(info);
}
