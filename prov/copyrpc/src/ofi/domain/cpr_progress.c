/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The thread of FI_PROGRESS_AUTO: see cpr_progress.h. */
#include "ofi/domain/cpr_progress.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ofi/domain/cpr_domain.h"
#include "util/log.h"
#include "util/sig.h"

#define CPR_PROGRESS_LOOK_MS 1
#define CPR_PROGRESS_BUSY    1000 /* looks at what cannot be finished yet, before napping */

struct cpr_progress_state {
	uint64_t seen_reads;
	unsigned busy;
};

/* How long to sleep now: -1 until the engine's descriptor wakes us, 0, or milliseconds. Locked. */
static int cpr_progress_rest(struct cpr_domain *domain, struct cpr_progress_state *state)
{
	if (domain->main.app_reads != state->seen_reads) {
		state->seen_reads = domain->main.app_reads;
		return CPR_PROGRESS_LOOK_MS;
	}
	if (!core_dom_arm(&domain->main.core)) {
		state->busy = 0;
		cpr_wait_dom_enter(domain);
		return -1;
	}
	return ++state->busy < CPR_PROGRESS_BUSY ? 0 : CPR_PROGRESS_LOOK_MS;
}

static int cpr_progress_step(struct cpr_domain *domain, struct cpr_progress_state *state)
{
	int timeout;

	cpr_domain_lock(domain);
	core_dom_progress(&domain->main.core);
	timeout = cpr_progress_rest(domain, state);
	cpr_domain_unlock(domain);
	return timeout;
}

static void cpr_progress_woken(struct cpr_domain *domain)
{
	cpr_domain_lock(domain);
	cpr_wait_dom_leave(domain);
	cpr_domain_unlock(domain);
}

static void *cpr_progress_run(void *arg)
{
	struct cpr_domain *domain = arg;
	struct pollfd fds[2] = { { .fd = domain->progress.stop_fd, .events = POLLIN },
				 { .fd = core_dom_wait_fd(&domain->main.core), .events = POLLIN } };
	struct cpr_progress_state state = { 0 };
	int timeout;

	do {
		timeout = cpr_progress_step(domain, &state);
		/* Unarmed, the engine's descriptor says nothing: only the stop counts. */
		poll(fds, timeout < 0 ? 2 : 1, timeout);
		if (timeout < 0)
			cpr_progress_woken(domain);
	} while (!(fds[0].revents & POLLIN));
	return NULL;
}

/* The application's signals are not for this thread. */
static int cpr_progress_create(struct cpr_domain *domain)
{
	sigset_t all, old;
	int err;

	util_sig_others(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&domain->progress.thread, NULL, cpr_progress_run, domain);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

int cpr_progress_start(struct cpr_domain *domain)
{
	struct cpr_progress *progress = &domain->progress;
	int ret;

	progress->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (progress->stop_fd < 0)
		return -errno;
	ret = cpr_progress_create(domain);
	if (ret) {
		UTIL_WARN(DOMAIN, "progress thread: %s; without FI_PROGRESS_AUTO none is needed\n",
			  fi_strerror(-ret));
		close(progress->stop_fd);
		return ret;
	}
	progress->running = true;
	cpr_domain_lock(domain);
	domain->wait.thread = true;
	cpr_wait_dom_update(domain);
	cpr_domain_unlock(domain);
	return 0;
}

void cpr_progress_stop(struct cpr_progress *progress)
{
	uint64_t one = 1;

	if (!progress->running)
		return;
	progress->running = false;
	if (write(progress->stop_fd, &one, sizeof(one)) != sizeof(one))
		return;
	pthread_join(progress->thread, NULL);
	close(progress->stop_fd);
}
