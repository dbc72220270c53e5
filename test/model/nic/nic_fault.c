/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault plan: parsing, and the decision whether a fault occurs now.
 *
 * A plan is words with numbers, separated by commas:
 *
 *	drop=P dup=P late=P corrupt=P	number of 1000 datagrams that are dropped, sent twice,
 *					overtaken by the next ones, changed by one bit
 *	rnr=P		of 1000 messages that need a receive WQE, the number that find none (each
 *			try counts)
 *	break=N		every QP breaks at its N-th WQE (local QP operation error)
 *	breakqp=N	only the QP whose number is N does
 *	down=A-B	from A to B milliseconds after the process attached, the link of its first
 *			device is down; down1=A-B: that of the second one
 *	fatal=A-B	from A milliseconds after that the first device has failed: nothing that was
 *			made before does anything any more, and it cannot be opened; from B on it
 *			can, anew. Without B it stays so. fatal1=A-B: the second one
 *	moved=A		from A milliseconds after that the port of the first device has another LID
 *	every=P		down and fatal again and again, P milliseconds after the last time
 *	times=N		with every: N times in all
 *	work=1		the milliseconds of down and fatal count from the first WQE of the process
 *	deny=1		the device's file may not be opened: its rights forbid it
 *	deny=2		the same, though its rights permit it, as with a device cgroup
 *	nobf=1		the device has no BlueFlame: its doorbell registers take no WQEs
 *	die=N		the process kills itself at the N-th WQE that it executes
 *	seed=N		another seed than the fabric's
 *
 * All decisions come from the seed and from the number of the process, so that a run with one
 * thread and one process a side repeats in trap mode.
 */
#include "model/nic/nic_fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/nic/nic_own.h"
#include "model/nic/nic_state.h"

#define NIC_LOOK_NS 5000000ull /* how often the wait for the first WQE looks */

static struct {
	uint32_t ready;
	uint64_t random;
	uint64_t start_ns; /* of the times of `down` and `fatal`; 0: at the first WQE */
	uint64_t wqes;
	uint64_t drop, dup, late, corrupt, rnr, break_at, break_qp, die_at;
	uint64_t every, times, deny, nobf;
	/* by device; `to` 0: never */
	struct nic_window {
		uint64_t from, to;
	} down[MDL_DEV_MAX], fatal[MDL_DEV_MAX], moved;
} nic_plan;

static uint64_t nic_fault_number(const char **at)
{
	uint64_t value = 0;

	while (**at >= '0' && **at <= '9')
		value = value * 10 + (uint64_t)(*(*at)++ - '0');
	return value;
}

static uint64_t nic_fault_value(const char *plan, const char *name)
{
	size_t len = strlen(name);

	while (plan && *plan) {
		if (strncmp(plan, name, len) == 0 && plan[len] == '=') {
			plan += len + 1;
			return nic_fault_number(&plan);
		}
		plan = strchr(plan, ',');
		plan = plan ? plan + 1 : NULL;
	}
	return 0;
}

/* Parses NAME=A-B, or NAME=A, which has no end. */
static void nic_fault_window(const char *plan, const char *name, struct nic_window *window)
{
	const char *at = strstr(plan, name);

	if (!at)
		return;
	at += strlen(name);
	window->from = nic_fault_number(&at) * 1000000;
	window->to = UINT64_MAX;
	if (*at == '-') {
		at++;
		window->to = nic_fault_number(&at) * 1000000;
	}
}

static void nic_fault_parse(void)
{
	const char *plan = mdl_self.config.faults;
	uint64_t seed = nic_fault_value(plan, "seed");

	nic_plan.drop = nic_fault_value(plan, "drop");
	nic_plan.dup = nic_fault_value(plan, "dup");
	nic_plan.late = nic_fault_value(plan, "late");
	nic_plan.corrupt = nic_fault_value(plan, "corrupt");
	nic_plan.rnr = nic_fault_value(plan, "rnr");
	nic_plan.break_at = nic_fault_value(plan, "break");
	nic_plan.break_qp = nic_fault_value(plan, "breakqp");
	nic_plan.die_at = nic_fault_value(plan, "die");
	nic_plan.every = nic_fault_value(plan, "every") * 1000000;
	nic_plan.times = nic_fault_value(plan, "times");
	nic_plan.deny = nic_fault_value(plan, "deny");
	nic_plan.nobf = nic_fault_value(plan, "nobf");
	nic_fault_window(plan, "down=", &nic_plan.down[0]);
	nic_fault_window(plan, "down1=", &nic_plan.down[1]);
	nic_fault_window(plan, "fatal=", &nic_plan.fatal[0]);
	nic_fault_window(plan, "fatal1=", &nic_plan.fatal[1]);
	nic_fault_window(plan, "moved=", &nic_plan.moved);
	nic_plan.start_ns = nic_fault_value(plan, "work") ? 0 : mdl_now_ns();
	nic_plan.random =
		(seed ? seed : mdl_self.seg->seed) * 0x9e3779b97f4a7c15ull + mdl_self.slot + 1;
	__atomic_store_n(&nic_plan.ready, 1, __ATOMIC_RELEASE);
}

static void nic_fault_ready(void)
{
	if (!__atomic_load_n(&nic_plan.ready, __ATOMIC_ACQUIRE))
		nic_fault_parse();
}

uint64_t nic_random(void)
{
	uint64_t z;

	nic_fault_ready();
	z = __atomic_add_fetch(&nic_plan.random, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool nic_fault_strikes(struct mdl_qp *qp, uint64_t in_1000)
{
	if (!in_1000 || nic_random() % 1000 >= in_1000)
		return false;
	nic_count(qp, MDL_CNT_FAULTS, 1);
	return true;
}

enum nic_fault nic_fault_datagram(struct mdl_qp *qp)
{
	nic_fault_ready();
	if (nic_fault_strikes(qp, nic_plan.drop))
		return NIC_FAULT_DROP;
	if (nic_fault_strikes(qp, nic_plan.dup))
		return NIC_FAULT_DUP;
	if (nic_fault_strikes(qp, nic_plan.corrupt))
		return NIC_FAULT_CORRUPT;
	if (nic_fault_strikes(qp, nic_plan.late))
		return NIC_FAULT_DELAY;
	return NIC_FAULT_NONE;
}

bool nic_fault_rnr(struct mdl_qp *qp)
{
	nic_fault_ready();
	return nic_fault_strikes(qp, nic_plan.rnr);
}

/** Begins to count the time, unless it is counted. */
static void nic_fault_begin(void)
{
	uint64_t none = 0;

	if (!__atomic_load_n(&nic_plan.start_ns, __ATOMIC_RELAXED))
		__atomic_compare_exchange_n(&nic_plan.start_ns, &none, mdl_now_ns(), false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool nic_fault_breaks(struct mdl_qp *qp, uint64_t wqe)
{
	nic_fault_ready();
	nic_fault_begin();
	if (nic_plan.die_at &&
	    __atomic_add_fetch(&nic_plan.wqes, 1, __ATOMIC_RELAXED) == nic_plan.die_at) {
		mdl_say("fault die=%llu: the process kills itself",
			(unsigned long long)nic_plan.die_at);
		syscall(SYS_kill, getpid(), SIGKILL);
	}
	if (!nic_plan.break_at || wqe + 1 != nic_plan.break_at)
		return false;
	if (nic_plan.break_qp && nic_plan.break_qp != qp->number)
		return false;
	nic_count(qp, MDL_CNT_FAULTS, 1);
	return true;
}

/* Returns the time within the present turn of a window that began at `from` for the first time. */
static uint64_t nic_fault_turn(uint64_t since, uint64_t from)
{
	uint64_t turn = nic_plan.every && since > from ? (since - from) / nic_plan.every : 0;

	if (nic_plan.times && turn >= nic_plan.times)
		turn = nic_plan.times - 1;
	return since - turn * nic_plan.every;
}

static bool nic_fault_is_in(const struct nic_window *window)
{
	uint64_t start = __atomic_load_n(&nic_plan.start_ns, __ATOMIC_RELAXED), since;

	if (!start || !window->to)
		return false;
	since = nic_fault_turn(mdl_now_ns() - start, window->from);
	return since >= window->from && since < window->to;
}

bool nic_fault_link_down(uint32_t device)
{
	nic_fault_ready();
	return nic_fault_is_in(&nic_plan.down[device]);
}

bool nic_fault_dead(uint32_t device)
{
	nic_fault_ready();
	return nic_fault_is_in(&nic_plan.fatal[device]);
}

bool nic_fault_moved(uint32_t device)
{
	nic_fault_ready();
	return !device && nic_fault_is_in(&nic_plan.moved);
}

bool nic_fault_has_failed(uint32_t device, uint64_t opened_ns)
{
	return __atomic_load_n(&mdl_self.proc->fatal_ns[device], __ATOMIC_ACQUIRE) > opened_ns;
}

static void nic_fault_settle(struct mdl_qp *qp, const struct nic_register *which)
{
	mdl_lock(&qp->rq_lock);
	mdl_unlock(&qp->rq_lock);
}

void nic_fault_fail(uint32_t device, uint64_t now)
{
	__atomic_store_n(&mdl_self.proc->fatal_ns[device], now, __ATOMIC_RELEASE);
	nic_own_qps(nic_fault_settle, NULL);
}

bool nic_fault_denied(void)
{
	nic_fault_ready();
	return nic_plan.deny;
}

bool nic_fault_forbidden(void)
{
	nic_fault_ready();
	return nic_plan.deny == 1;
}

bool nic_fault_without_bf(void)
{
	nic_fault_ready();
	return nic_plan.nobf;
}

/* Returns when a window begins or ends next, counted from the start of the plan. */
static uint64_t nic_fault_next(uint64_t since, const struct nic_window *window)
{
	uint64_t from = window->from, to = window->to;
	uint64_t turn = nic_fault_turn(since, from), begin = since - turn;

	if (!to)
		return UINT64_MAX;
	if (turn < from)
		return begin + from;
	if (turn < to)
		return to == UINT64_MAX ? to : begin + to;
	if (!nic_plan.every || (nic_plan.times && begin / nic_plan.every + 1 >= nic_plan.times))
		return UINT64_MAX;
	return begin + nic_plan.every + from;
}

uint64_t nic_fault_due(uint64_t now)
{
	uint64_t start, since, next, due = UINT64_MAX;

	nic_fault_ready();
	start = __atomic_load_n(&nic_plan.start_ns, __ATOMIC_RELAXED);
	if (!start)
		return now + NIC_LOOK_NS;
	/* The plan may have begun shortly after `now` was read. */
	since = now > start ? now - start : 0;
	for (uint32_t device = 0; device < MDL_DEV_MAX; device++) {
		next = nic_fault_next(since, &nic_plan.down[device]);
		due = next < due ? next : due;
		next = nic_fault_next(since, &nic_plan.fatal[device]);
		due = next < due ? next : due;
	}
	next = nic_fault_next(since, &nic_plan.moved);
	due = next < due ? next : due;
	return due == UINT64_MAX ? due : start + due;
}
