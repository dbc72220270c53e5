/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Liveness of processes, which are recognised by pid and start time. Zombies count as dead, as
 * their memory is gone.
 */
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#define CHECK_NS 1000000ull

uint64_t mdl_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static char *append_number(char *to, uint32_t number)
{
	char digits[12];
	int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*to++ = digits[--n];
	*to = 0;
	return to;
}

/*
 * Finds field `wanted` (counted from 3, the state) in a line of /proc/PID/stat. The name field may
 * contain any character.
 */
static const char *stat_field(const char *line, int wanted)
{
	const char *at = strrchr(line, ')');

	for (int field = 2; at && field < wanted; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at;
}

uint64_t mdl_pid_started(int32_t pid)
{
	char path[40] = "/proc/", line[1024];
	uint64_t started = 0;
	const char *at;
	long fd, len;

	strcpy(append_number(path + 6, (uint32_t)pid), "/stat");
	fd = MDL_RAW4(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	len = MDL_RAW3(read, fd, line, sizeof(line) - 1);
	MDL_RAW1(close, fd);
	if (len <= 0)
		return 0;
	line[len] = 0;
	at = stat_field(line, 3);
	if (!at || *at == 'Z' || *at == 'X')
		return 0;
	for (at = stat_field(line, 22); at && *at >= '0' && *at <= '9'; at++)
		started = started * 10 + (uint64_t)(*at - '0');
	return started;
}

bool mdl_pid_is_dead(int32_t pid, uint64_t started)
{
	return mdl_pid_started(pid) != started;
}

bool mdl_proc_is_dead(uint32_t slot)
{
	struct mdl_proc *proc = &mdl_self.seg->proc[slot];
	uint64_t now;

	if (__atomic_load_n(&proc->state, __ATOMIC_ACQUIRE) != MDL_PROC_LIVE)
		return true;
	if (proc == mdl_self.proc)
		return false;
	now = mdl_now_ns();
	if (now - __atomic_load_n(&proc->checked_ns, __ATOMIC_RELAXED) < CHECK_NS)
		return false;
	__atomic_store_n(&proc->checked_ns, now, __ATOMIC_RELAXED);
	if (!mdl_pid_is_dead(proc->pid, proc->started))
		return false;
	__atomic_store_n(&proc->state, MDL_PROC_DEAD, __ATOMIC_RELEASE);
	return true;
}
