/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes of this host exchange messages over copyrpc, once for each kind of endpoint, and
 * over the RDMA device if there is one.
 *
 * The settings are those of a program that is started in this shell. The times are a first
 * impression; where the machine is busy, the finding says so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "info/info.h"
#include "info/info_child.h"
#include "info/info_fab.h"
#include "info/info_log.h"
#include "info/info_pace.h"
#include "info/info_probes.h"

#define TOPIC    "trial"
#define BOUND_NS 100000u /* several times what UDP takes between two processes of a host */
#define TIMEOUT  "15000" /* FI_COPYRPC_PEER_TIMEOUT in ms, unless the user sets one */

struct trial {
	const char *domain;
	const char *paths; /* FI_COPYRPC_PATHS; NULL: the user's */
	const char *what;
};

/** Result of one end. */
struct trial_result {
	int error;
	char step[32];
	struct info_pace pace;
};

/* Exchanges the names of the endpoints. Returns 0 or an error. */
static int trial_exchange(struct info_fab *fab, int sock)
{
	uint8_t theirs[INFO_FAB_ADDR_MAX];

	fab->step = "start of the other process";
	if (send(sock, fab->name, sizeof(fab->name), MSG_NOSIGNAL) != sizeof(fab->name) ||
	    recv(sock, theirs, sizeof(theirs), MSG_WAITALL) != sizeof(theirs))
		return -FI_ECONNRESET;
	return info_fab_connect(fab, theirs);
}

static struct trial_result trial_end(const struct trial *trial, int sock, bool first)
{
	struct trial_result result = { 0 };
	struct info_fab fab;

	result.error = info_fab_open(&fab, trial->domain, NULL);
	if (!result.error)
		result.error = trial_exchange(&fab, sock);
	if (!result.error)
		result.error = info_pace_measure(&fab, first, &result.pace);
	snprintf(result.step, sizeof(result.step), "%s", fab.step);
	close(sock); /* the other end does not wait for this one any longer */
	info_fab_close(&fab);
	return result;
}

/* Runs both ends, each in a process that has not used libfabric before. */
static int trial_child(void *arg, int out)
{
	const struct trial *trial = arg;
	struct trial_result result;
	int socks[2];
	pid_t pid;

	info_log_warnings_on();
	setenv("FI_COPYRPC_PEER_TIMEOUT", TIMEOUT, 0);
	if (trial->paths)
		setenv("FI_COPYRPC_PATHS", trial->paths, 1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks))
		return 1;
	pid = fork();
	if (pid < 0)
		return 1;
	close(socks[!pid]);
	result = trial_end(trial, socks[pid != 0], pid != 0);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return write(out, &result, sizeof(result)) != sizeof(result);
}

static void trial_judge(struct info *info, const struct trial *trial,
			const struct trial_result *result)
{
	static const struct info_pace_path path = { TOPIC, "trial", "trial-slow", BOUND_NS, false };
	char what[96];

	if (result->error) {
		info_add(&info->report, INFO_BROKEN, TOPIC, "trial-failed",
			 "two processes of this host cannot exchange messages over %s: %s: %s",
			 trial->what, result->step, fi_strerror(-result->error));
		info_mend(&info->report, "see the other findings, and FI_LOG_LEVEL=info "
					 "fi_pingpong -p copyrpc -e rdm");
		return;
	}
	snprintf(what, sizeof(what), "two processes exchanged messages over %s", trial->what);
	info_pace_judge(&info->report, &path, what, &result->pace);
}

static void trial_run(struct info *info, struct trial *trial)
{
	struct trial_result result;
	struct info_child child;

	if (info_child_run(trial_child, trial, 2 * INFO_CHILD_SECONDS, &child) || !child.ended ||
	    child.len != sizeof(result)) {
		info_add(&info->report, INFO_BROKEN, TOPIC, "trial-crash",
			 "processes that use %s crash or do not end", trial->what);
		info_mend(&info->report, "FI_LOG_LEVEL=debug fi_pingpong -p copyrpc -e rdm");
	} else {
		memcpy(&result, child.out, sizeof(result));
		trial_judge(info, trial, &result);
	}
	info_log_add(&info->report, child.log);
	info_child_fini(&child);
}

void info_probe_trial(struct info *info)
{
	struct trial trials[] = {
		{ "copyrpc-rc", NULL, "copyrpc-rc" },
		{ "copyrpc-ud", NULL, "copyrpc-ud" },
		{ "copyrpc-rc", "nic", "the RDMA device" },
	};
	const char *only = getenv("FI_COPYRPC_ENDPOINT");

	for (size_t i = 0; info->provider_runs && i < sizeof(trials) / sizeof(trials[0]); i++) {
		if (only && *only && !strstr(trials[i].domain, only))
			continue;
		if (!trials[i].paths || info->nic[0])
			trial_run(info, &trials[i]);
	}
}
