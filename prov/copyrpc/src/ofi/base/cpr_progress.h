/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The progress thread of FI_PROGRESS_AUTO, one per domain. Started and stopped by cpr_domain.
 *
 * The thread sleeps on the engine's descriptor and makes progress when something arrives. While the
 * application reads its queues, the thread leaves the engine unarmed, so that senders make no
 * system call, and looks again in a millisecond.
 */
#ifndef OFI_BASE_CPR_PROGRESS_H
#define OFI_BASE_CPR_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>

#include "ofi/base/cpr_wakeup.h"

struct cpr_domain;

struct cpr_progress {
	pthread_t thread;
	int wake_fd;
	bool stops; /* atomic */
	bool running;
	struct cpr_wakeup_user wakeup;
};

/** Starts the domain's thread. Returns 0 or a negative error code. */
int cpr_progress_start(struct cpr_domain *domain);
/** Ends and joins the thread, if there is one. */
void cpr_progress_stop(struct cpr_progress *progress);

#endif
