/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads of the model.
 *
 * The service thread sleeps on a futex in the process's slot until a wake-up or the time that
 * nic_service() returned. The polling thread reads from each register the value written there, by
 * exchanging it for zero (the control segment of a WQE is never zero). It sleeps between rounds, as
 * it shares two cores with the program.
 */
#include "model/kernel/krn_mode.h"
#include "model/kernel/cm/krn_cm.h"
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_uar.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_raw.h"

#include <linux/futex.h>
#include <limits.h>
#include <signal.h>
#include <time.h>

#define POLL_SLEEP_NS 2000
#define IDLE_ROUNDS   64

static int started;
static pthread_mutex_t poll_lock = PTHREAD_MUTEX_INITIALIZER; /* locked for a round */

/* Starts a thread with all signals blocked, so that the program's signals do not reach it. */
static void spawn(void *(*run)(void *))
{
	pthread_t thread;
	pthread_attr_t attr;
	sigset_t all, old;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, run, NULL))
		mdl_fatal("cannot start a thread of the model");
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void krn_service_wake(uint32_t slot)
{
	uint32_t *word = &mdl_self.seg->proc[slot].service;

	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	MDL_RAW6(futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void sleep_until(uint32_t *word, uint32_t seen, uint64_t due)
{
	uint64_t now = mdl_now_ns(), ns = due > now ? due - now : 0;
	struct timespec left = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	if (!ns)
		return;
	MDL_RAW6(futex, word, FUTEX_WAIT, seen, due == UINT64_MAX ? NULL : &left, NULL, 0);
}

static void *service_run(void *unused)
{
	uint32_t *word = &mdl_self.proc->service;

	for (;;) {
		uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		uint64_t now = mdl_now_ns(), due = nic_service(now), cm = krn_cm_service(now);
		uint64_t port = krn_port_service(mdl_now_ns());

		due = due < cm ? due : cm;
		due = due < port ? due : port;
		if (due)
			sleep_until(word, seen, due);
	}
	return NULL;
}

/* Passes the value of one 8-byte register to the NIC. */
static bool poll_register(char *uar, uint32_t index, uint32_t page, uint32_t off)
{
	uint64_t *at = (uint64_t *)(uar + off), value;

	if (!__atomic_load_n(at, __ATOMIC_ACQUIRE))
		return false;
	value = __atomic_exchange_n(at, 0, __ATOMIC_ACQ_REL);
	nic_uar_write(index, page, off, &value, sizeof(value));
	return true;
}

static bool poll_page(char *uar, uint32_t index, uint32_t page)
{
	bool found = poll_register(uar, index, page, KRN_UAR_ARM);

	if (found)
		nic_recheck(index, page, KRN_UAR_ARM);

	for (uint32_t k = 0; k < 2; k++) {
		uint32_t off = KRN_UAR_BF + k * KRN_UAR_BF_STRIDE;
		bool rung = poll_register(uar, index, page, off);

		rung |= poll_register(uar, index, page, off + KRN_UAR_BF_STRIDE / 2);
		if (rung)
			nic_recheck(index, page, off);
		found |= rung;
	}
	return found;
}

/* Returns true if a QP has a register in the page. The first page also has the arm register. */
static bool page_is_used(const struct krn_ctx *ctx, uint32_t page)
{
	return !page || __atomic_load_n(&ctx->bfreg_users[page * 2], __ATOMIC_RELAXED) ||
	       __atomic_load_n(&ctx->bfreg_users[page * 2 + 1], __ATOMIC_RELAXED);
}

static bool poll_round(void)
{
	bool found = false;

	for (uint32_t index = 0; index < MDL_CTX_MAX; index++) {
		struct krn_ctx *ctx = krn_ctx_get(index);
		char *pages = ctx ? __atomic_load_n(&ctx->pages, __ATOMIC_ACQUIRE) : NULL;

		for (uint32_t page = 0; pages && page < MDL_UAR_PAGES; page++)
			if (page_is_used(ctx, page))
				found |= poll_page(pages + krn_ctx_place(ctx, page), index, page);
	}
	if (found)
		mdl_count_add(&mdl_self.proc->count, MDL_CNT_SCANS, 1);
	return found;
}

static void *poll_run(void *unused)
{
	const struct timespec nap = { 0, POLL_SLEEP_NS }, rest = { 0, 50000 };
	uint32_t idle = 0;

	for (;;) {
		pthread_mutex_lock(&poll_lock);
		idle = poll_round() ? 0 : idle + 1;
		pthread_mutex_unlock(&poll_lock);
		MDL_RAW4(clock_nanosleep, CLOCK_MONOTONIC, 0, idle < IDLE_ROUNDS ? &nap : &rest,
			 NULL);
	}
	return NULL;
}

void krn_mode_start(void)
{
	if (__atomic_exchange_n(&started, 1, __ATOMIC_ACQ_REL))
		return;
	spawn(service_run);
	if (mdl_self.config.mode == MDL_MODE_POLL)
		spawn(poll_run);
	else
		krn_trap_arm();
}

void krn_mode_quiesce(void)
{
	pthread_mutex_lock(&poll_lock);
	pthread_mutex_unlock(&poll_lock);
}

void krn_mode_forget(void)
{
	started = 0;
	pthread_mutex_init(&poll_lock, NULL);
}
