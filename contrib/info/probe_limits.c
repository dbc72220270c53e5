/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Limits of this process, which a job that is started here has too: files, locked memory. */
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "info/info.h"
#include "info/info_plan.h"
#include "info/info_probes.h"

#define TOPIC      "limits"
#define FILES_MIN  1024u               /* usual, and enough for some 500 peers of a host */
#define LOCKED_MIN ((rlim_t)256 << 20) /* FI_COPYRPC_MEM */
#define FILE_LEN_MIN                                                                               \
	((rlim_t)64 << 20) /* the largest shared segment that is usual, with a margin */

static rlim_t limits_get(int resource)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(resource, &limit);
	return limit.rlim_cur;
}

static void limits_files(struct info_report *report)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t peers;

	getrlimit(RLIMIT_NOFILE, &limit);
	peers = info_plan_peers_for_files(limit.rlim_cur);
	if (limit.rlim_cur >= FILES_MIN) {
		info_add(report, INFO_GOOD, TOPIC, "files",
			 "a process may open %ju files, which is enough for %" PRIu64
			 " peers of this host (copyrpc_info --plan)",
			 (uintmax_t)limit.rlim_cur, peers);
		return;
	}
	info_add(report, INFO_SLOW, TOPIC, "files-few",
		 "a process may open only %ju files, which is enough for %" PRIu64
		 " peers of this host; further ones wait, and fail with FI_EMFILE",
		 (uintmax_t)limit.rlim_cur, peers);
	info_mend(report, "ulimit -n %ju%s",
		  (uintmax_t)(limit.rlim_max > FILES_MIN ? limit.rlim_max : 4096),
		  limit.rlim_max > limit.rlim_cur ? "" : " (as root, or nofile in limits.conf)");
}

/* Returns whether this process may lock memory without a limit. */
static bool limits_may_lock(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	return !syscall(SYS_capget, &head, data) && (data[0].effective & 1u << CAP_IPC_LOCK);
}

static void limits_locked(struct info *info)
{
	rlim_t locked = limits_get(RLIMIT_MEMLOCK);
	struct info_report *report = &info->report;

	if (locked == RLIM_INFINITY) {
		info_add(report, INFO_GOOD, TOPIC, "memlock", "memory may be locked without limit");
	} else if (limits_may_lock()) {
		info_add(report, INFO_NOTE, TOPIC, "memlock-privileged",
			 "%ju KiB may be locked, a limit that does not bind this process "
			 "(CAP_IPC_LOCK), but jobs of other users",
			 (uintmax_t)locked >> 10);
	} else if (locked >= LOCKED_MIN || !info->has_rdma) {
		info_add(report, locked >= LOCKED_MIN ? INFO_GOOD : INFO_NOTE, TOPIC, "memlock",
			 "%ju KiB of memory may be locked%s", (uintmax_t)locked >> 10,
			 info->has_rdma ? ""
					: ", which matters only to RDMA devices; none is in use");
	} else {
		info_add(report, INFO_SLOW, TOPIC, "memlock-small",
			 "only %ju KiB of memory may be locked: the RDMA device cannot register "
			 "rings and long messages, and peers on other hosts are reached over UDP",
			 (uintmax_t)locked >> 10);
		info_mend(report,
			  "ulimit -l unlimited (memlock in limits.conf; LimitMEMLOCK=infinity "
			  "for the daemon of the batch system)");
	}
}

static void limits_file_len(struct info_report *report)
{
	rlim_t len = limits_get(RLIMIT_FSIZE);

	if (len >= FILE_LEN_MIN)
		return;
	info_add(report, len < (1u << 20) ? INFO_BROKEN : INFO_SLOW, TOPIC, "file-len",
		 "files may have %ju KiB only, and shared memory counts as a file: rings of that "
		 "size and more fail with FI_ENOSPC",
		 (uintmax_t)len >> 10);
	info_mend(report, "ulimit -f unlimited");
}

void info_probe_limits(struct info *info)
{
	limits_files(&info->report);
	limits_locked(info);
	limits_file_len(&info->report);
}
