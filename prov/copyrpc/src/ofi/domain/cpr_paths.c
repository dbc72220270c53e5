/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The list of paths and the devices behind them: see cpr_paths.h. */
#include "ofi/domain/cpr_paths.h"

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "util/job.h"
#include "util/log.h"
#include "util/param.h"

static const struct cpr_path *cpr_path_find(const struct cpr_path *table, const char *name,
					    size_t len)
{
	for (; table->name; table++)
		if (strlen(table->name) == len && !memcmp(table->name, name, len))
			return table;
	return NULL;
}

static bool cpr_paths_has(const struct cpr_paths *paths, const struct eng_transport_ops *transport)
{
	for (uint32_t i = 0; i < paths->transports.cnt; i++)
		if (paths->transports.ops[i] == transport)
			return true;
	return false;
}

/** Returns true if there is a device for the transport. Records the first NIC. */
static bool cpr_paths_probe(struct cpr_paths *paths, const struct eng_transport_ops *transport)
{
	struct dev_about about = { .name = "" };

	if (!transport->probe)
		return true;
	if (transport->probe(&about))
		return false;
	if (!paths->nic && about.name[0]) {
		paths->nic = transport;
		paths->about = about;
	}
	return true;
}

/** Adds the path's transports that have a device. Returns false if a device was missing. */
static bool cpr_paths_add(struct cpr_paths *paths, const struct cpr_path *path)
{
	struct eng_transports *transports = &paths->transports;
	bool all = true;

	for (size_t i = 0; path->transports[i] && transports->cnt < ENG_TRANSPORTS_MAX; i++)
		if (cpr_paths_has(paths, path->transports[i]))
			continue;
		else if (cpr_paths_probe(paths, path->transports[i]))
			transports->ops[transports->cnt++] = path->transports[i];
		else
			all = false;
	return all;
}

/**
 * Logs once that the device named by FI_COPYRPC_DEVICE is missing, an error even if there are other
 * paths.
 */
static void cpr_paths_check_device(void)
{
	static bool logged;

	if (!util_params.device || __atomic_exchange_n(&logged, true, __ATOMIC_RELAXED))
		return;
	UTIL_WARN(FABRIC,
		  "FI_COPYRPC_DEVICE=%s: there is no such RDMA device, or it has no usable port; "
		  "ibv_devices lists them, ibv_devinfo shows their ports\n",
		  util_params.device);
}

static int cpr_paths_no_such(const char *text, const char *at, size_t len, bool log)
{
	if (log)
		UTIL_WARN(FABRIC,
			  "FI_COPYRPC_PATHS=%s: there is no path \"%.*s\"; write shm, nic, udp, or "
			  "several with commas, best first\n",
			  text, (int)len, at);
	return -FI_EINVAL;
}

/*
 * Returns true for the path of the host's memory. It has no device; the system may refuse the
 * memory.
 */
static bool cpr_path_is_memory(const struct cpr_path *path)
{
	return !strcmp(path->name, "shm");
}

/** Logs that processes of this host have to use other paths. */
static void cpr_paths_warn_memory(void)
{
	UTIL_WARN_HOST_SELDOM(FABRIC,
			      "no shared memory: the system refuses memfd_create (a seccomp "
			      "filter?); processes of this host are reached by slower paths, so "
			      "permit it\n");
}

static int cpr_paths_no_device(const char *text, bool no_memory, bool log)
{
	if (log && no_memory)
		UTIL_WARN(FABRIC,
			  "FI_COPYRPC_PATHS=%s: the system refuses memfd_create (a seccomp "
			  "filter?), which shm needs; permit it, or leave FI_COPYRPC_PATHS "
			  "unset\n",
			  text);
	else if (log)
		UTIL_WARN(FABRIC,
			  "FI_COPYRPC_PATHS=%s: no RDMA device can be used; run "
			  "ibv_devinfo, or leave FI_COPYRPC_PATHS unset\n",
			  text);
	return -FI_ENODEV;
}

int cpr_paths_read(const struct cpr_path *table, const char *text, bool log,
		   struct cpr_paths *paths)
{
	const char *at = text;
	bool all = true, no_memory = false;

	paths->nic = NULL;
	for (paths->transports.cnt = 0;; at++) {
		size_t len = strcspn(at, ",");
		const struct cpr_path *path = cpr_path_find(table, at, len);

		if (!path)
			return cpr_paths_no_such(text, at, len, log);
		if (!cpr_paths_add(paths, path)) {
			no_memory |= cpr_path_is_memory(path);
			all &= cpr_path_is_memory(path);
		}
		at += len;
		if (!*at)
			break;
	}
	if (log && !all && !paths->nic)
		cpr_paths_check_device();
	if (!paths->transports.cnt)
		return cpr_paths_no_device(text, no_memory, log);
	if (log && no_memory)
		cpr_paths_warn_memory();
	return 0;
}
