/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Namespaces and containers of this process, and the memory that they grant. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info/info.h"
#include "info/info_group.h"
#include "info/info_probes.h"
#include "info/info_sys.h"

#define TOPIC      "container"
#define MEMORY_MIN ((uint64_t)1 << 30)

/* Returns whether the user ids are those of the host. */
static bool container_has_host_users(const struct info *info)
{
	char line[128];
	unsigned long in, out, cnt;

	return !info_sys_line(line, sizeof(line), info->root, "/proc/self/uid_map") ||
	       sscanf(line, "%lu %lu %lu", &in, &out, &cnt) != 3 ||
	       (!in && !out && cnt == UINT32_MAX);
}

/* Returns the number of pid namespaces that this process is in; 0 if it is not known. */
static unsigned container_pid_depth(const struct info *info)
{
	char path[PATH_MAX], line[256];
	unsigned depth = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/status", info->root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "NSpid:", 6))
			for (char *at = strtok(line + 6, " \t\n"); at; at = strtok(NULL, " \t\n"))
				depth++;
	if (file)
		fclose(file);
	return depth;
}

/* Returns what this process seems to run in, or NULL. */
static const char *container_kind(const struct info *info)
{
	static const char *const files[][2] = { { "/.dockerenv", "Docker" },
						{ "/run/.containerenv", "Podman" },
						{ "/.singularity.d", "Apptainer" },
						{ "/var/run/secrets/kubernetes.io",
						  "Kubernetes" } };
	const char *name = getenv("container");
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", info->root, files[i][0]);
		if (!access(path, F_OK))
			return files[i][1];
	}
	return name && *name ? name : NULL;
}

static void container_namespaces(struct info *info)
{
	const char *kind = container_kind(info);
	bool users = !container_has_host_users(info);
	unsigned depth = container_pid_depth(info);

	if (!kind && !users && depth < 2) {
		info_add(&info->report, INFO_GOOD, TOPIC, "container-none",
			 "no container: processes see each other's users and numbers");
		return;
	}
	info_add(&info->report, INFO_NOTE, TOPIC, "container",
		 "%s%s%s: processes of one container share memory; those of two containers of a "
		 "host need one pid namespace for copies by the kernel, and without one network "
		 "namespace a job key",
		 kind ? kind : "a namespace", users ? ", users of its own" : "",
		 depth > 1 ? ", process numbers of its own" : "");
	info_mend(&info->report,
		  "start containers of one job with --pid host --network host, and set "
		  "FI_COPYRPC_JOB_KEY (copyrpc_env)");
}

/* Returns the least limit of this group of a controller (NULL: version 2) and those around it. */
static uint64_t container_limit(const struct info *info, const char *controller, const char *file)
{
	uint64_t limit, least = UINT64_MAX;
	struct info_group group;

	info_group_open(&group, info->root, controller);
	do {
		if (info_sys_number(&limit, info->root, "%s/%s", group.path, file) && limit < least)
			least = limit;
	} while (info_group_up(&group));
	return least;
}

static uint64_t container_memory_limit(const struct info *info)
{
	uint64_t two = container_limit(info, NULL, "memory.max");
	uint64_t one = container_limit(info, "memory", "memory.limit_in_bytes");

	return one < two ? one : two;
}

static void container_memory(struct info *info)
{
	uint64_t limit = container_memory_limit(info);

	if (limit > (uint64_t)1 << 50)
		return;
	info_add(&info->report, limit < MEMORY_MIN ? INFO_SLOW : INFO_NOTE, TOPIC, "memory-limit",
		 "the control group may use %" PRIu64 " MiB, to which rings count%s", limit >> 20,
		 limit < MEMORY_MIN ? "; a job that exceeds it is killed or fails with FI_ENOSPC"
				    : "");
	if (limit < MEMORY_MIN)
		info_mend(&info->report,
			  "raise memory.max (docker run --memory), or lower FI_COPYRPC_MEM; "
			  "copyrpc_info --plan N tells how much a job needs");
}

void info_probe_container(struct info *info)
{
	container_namespaces(info);
	container_memory(info);
}
