/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who makes progress when the application does not? The thread of FI_PROGRESS_AUTO.
 *
 * One per domain. It sleeps on the engine's descriptor, and makes progress when something arrives.
 * While the application reads its queues by itself, the thread keeps out of its way: it leaves the
 * engine unarmed, so that senders pay no system call, and looks again in a millisecond.
 */
#ifndef CPR_PROGRESS_H
#define CPR_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>

#include "ofi/domain/cpr_wakeup.h"

struct cpr_domain;

struct cpr_progress {
	pthread_t thread;
	int wake_fd;
	bool stops; /* atomic */
	bool running;
	struct cpr_wakeup_user wakeup;
};

/** Starts the domain's thread. 0 or -FI_E*. */
int cpr_progress_start(struct cpr_domain *domain);
/** Ends and joins it, if there is one. */
void cpr_progress_stop(struct cpr_progress *progress);

#endif
