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
 *	down=A-B	from A to B milliseconds after the process attached, its link is down
 *	fatal=A		A milliseconds after that the device fails: it does nothing any more
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

#include "model/nic/nic_state.h"

static struct {
	uint32_t ready;
	uint64_t random;
	uint64_t start_ns;
	uint64_t wqes;
	uint64_t drop, dup, late, corrupt, rnr, break_at, break_qp, down_from, down_to, die_at;
	uint64_t fatal_at, deny, nobf;
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

static void nic_fault_window(const char *plan)
{
	const char *down = strstr(plan, "down=");

	if (!down)
		return;
	down += strlen("down=");
	nic_plan.down_from = nic_fault_number(&down) * 1000000;
	if (*down == '-') {
		down++;
		nic_plan.down_to = nic_fault_number(&down) * 1000000;
	} else {
		nic_plan.down_to = UINT64_MAX;
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
	nic_plan.fatal_at = nic_fault_value(plan, "fatal") * 1000000;
	nic_plan.deny = nic_fault_value(plan, "deny");
	nic_plan.nobf = nic_fault_value(plan, "nobf");
	nic_fault_window(plan);
	nic_plan.start_ns = mdl_now_ns();
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

bool nic_fault_breaks(struct mdl_qp *qp, uint64_t wqe)
{
	nic_fault_ready();
	if (nic_plan.die_at &&
	    __atomic_add_fetch(&nic_plan.wqes, 1, __ATOMIC_RELAXED) == nic_plan.die_at)
		syscall(SYS_kill, getpid(), SIGKILL);
	if (!nic_plan.break_at || wqe + 1 != nic_plan.break_at)
		return false;
	if (nic_plan.break_qp && nic_plan.break_qp != qp->number)
		return false;
	nic_count(qp, MDL_CNT_FAULTS, 1);
	return true;
}

static uint64_t nic_fault_since(void)
{
	nic_fault_ready();
	return mdl_now_ns() - nic_plan.start_ns;
}

bool nic_fault_link_down(void)
{
	uint64_t since = nic_fault_since();

	return nic_plan.down_to && since >= nic_plan.down_from && since < nic_plan.down_to;
}

bool nic_fault_dead(void)
{
	uint64_t since = nic_fault_since();

	return nic_plan.fatal_at && since >= nic_plan.fatal_at;
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

uint64_t nic_fault_due(uint64_t now)
{
	const uint64_t at[] = { nic_plan.down_from, nic_plan.down_to, nic_plan.fatal_at };
	uint64_t since, due = UINT64_MAX;

	nic_fault_ready();
	/* The plan may have begun shortly after `now` was read. */
	since = now > nic_plan.start_ns ? now - nic_plan.start_ns : 0;
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if (at[i] != UINT64_MAX && at[i] > since && nic_plan.start_ns + at[i] < due)
			due = nic_plan.start_ns + at[i];
	return due;
}
