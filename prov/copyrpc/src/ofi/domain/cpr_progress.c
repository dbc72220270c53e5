/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The thread of FI_PROGRESS_AUTO: see cpr_progress.h. */
#include "ofi/base/cpr_progress.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ofi/base/cpr_domain.h"
#include "util/log.h"
#include "util/sig.h"

#define CPR_PROGRESS_LOOK_MS 1
#define CPR_PROGRESS_BUSY    1000 /* attempts at work that cannot be finished yet, before a nap */

struct cpr_progress_state {
	uint64_t seen_reads;
	unsigned busy;
};

/*
 * Returns how long to sleep: -1 until the engine's descriptor is readable, 0, or milliseconds.
 * Locked.
 */
static int cpr_progress_rest(struct cpr_domain *domain, struct cpr_progress_state *state)
{
	if (domain->main.app_reads != state->seen_reads) {
		state->seen_reads = domain->main.app_reads;
		return CPR_PROGRESS_LOOK_MS;
	}
	if (!cpr_wakeup_set(&domain->main)) {
		state->busy = 0;
		cpr_wakeup_use(&domain->main, &domain->progress.wakeup);
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
	cpr_wakeup_release(&domain->main, &domain->progress.wakeup);
	cpr_domain_unlock(domain);
}

static void *cpr_progress_run(void *arg)
{
	struct cpr_domain *domain = arg;
	struct pollfd fds[2] = { { .fd = domain->progress.wake_fd, .events = POLLIN },
				 { .fd = core_dom_wait_fd(&domain->main.core), .events = POLLIN } };
	struct cpr_progress_state state = { 0 };
	eventfd_t cnt;
	int timeout;

	do {
		timeout = cpr_progress_step(domain, &state);
		/* Unarmed, the engine's descriptor signals nothing: only a stop counts. */
		poll(fds, timeout < 0 ? 2 : 1, timeout);
		if (timeout < 0)
			cpr_progress_woken(domain);
		eventfd_read(domain->progress.wake_fd, &cnt);
	} while (!__atomic_load_n(&domain->progress.stops, __ATOMIC_ACQUIRE));
	return NULL;
}

static void cpr_progress_wake(struct cpr_wakeup_user *user)
{
	eventfd_write(UTIL_CONTAINER_OF(user, struct cpr_progress, wakeup)->wake_fd, 1);
}

/* Creates the thread with the application's signals blocked. */
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

	progress->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (progress->wake_fd < 0)
		return -errno;
	cpr_wakeup_user_init(&progress->wakeup, cpr_progress_wake);
	ret = cpr_progress_create(domain);
	if (ret) {
		UTIL_WARN(DOMAIN, "progress thread: %s; without FI_PROGRESS_AUTO none is needed\n",
			  fi_strerror(-ret));
		close(progress->wake_fd);
		return ret;
	}
	progress->running = true;
	cpr_domain_lock(domain);
	cpr_wakeup_attend(&domain->main);
	cpr_domain_unlock(domain);
	return 0;
}

void cpr_progress_stop(struct cpr_progress *progress)
{
	if (!progress->running)
		return;
	progress->running = false;
	__atomic_store_n(&progress->stops, true, __ATOMIC_RELEASE);
	cpr_progress_wake(&progress->wakeup);
	pthread_join(progress->thread, NULL);
	close(progress->wake_fd);
}
