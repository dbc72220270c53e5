/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements top_waits.h. */
#include "top/top_waits.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/event.h"

#define TOP_NONE SIZE_MAX

/** Seconds without a look at the peers after which a process is said to make no progress. */
#define TOP_AWAY_S 10.0

struct top_process {
	const struct stats_view *view;
	size_t next;      /* process that its oldest wait leads to; TOP_NONE: none of this host */
	bool waits;       /* for any peer */
	uint32_t waiters; /* processes whose chain ends here */
	size_t seen;      /* walk that came here last; 0: none */
	bool in_circle;
};

struct top_waits {
	FILE *out;
	uint64_t now_ns;
	char (*state)(int pid);
	struct top_process *processes;
	size_t cnt;
};

static bool top_has_endpoint(const struct stats_view *view, const struct copyrpc_stats_addr *addr)
{
	for (uint32_t i = 1; i < stats_view_rows(view, COPYRPC_STATS_ENDPOINTS); i++) {
		const struct copyrpc_stats_endpoint *ep =
			stats_view_row(view, COPYRPC_STATS_ENDPOINTS, i);

		if (ep && ep->row.state == COPYRPC_STATS_LIVE &&
		    !memcmp(&ep->addr, addr, sizeof(*addr)))
			return true;
	}
	return false;
}

/** Returns the process that a wait leads to, or TOP_NONE. */
static size_t top_wait_target(const struct top_waits *waits, const struct copyrpc_stats_wait *wait)
{
	for (size_t i = 0; wait->peer.family && i < waits->cnt; i++) {
		const struct stats_view *view = waits->processes[i].view;

		if ((!wait->pid || wait->pid == view->page->pid) &&
		    top_has_endpoint(view, &wait->peer))
			return i;
	}
	return TOP_NONE;
}

static double top_seconds(const struct top_waits *waits, const struct stats_view *view,
			  uint64_t then_ns)
{
	uint64_t start_ns = stats_view_recorder(view)->clock_ns;

	return waits->now_ns - start_ns > then_ns && waits->now_ns > start_ns
		       ? (double)(waits->now_ns - start_ns - then_ns) / 1e9
		       : 0;
}

static void top_print_process(const struct top_waits *waits, size_t i)
{
	const struct copyrpc_stats_page *page = waits->processes[i].view->page;

	if (page->rank >= 0)
		fprintf(waits->out, "rank %d (%s, pid %d)", (int)page->rank, page->command,
			(int)page->pid);
	else
		fprintf(waits->out, "%s (pid %d)", page->command, (int)page->pid);
}

static void top_print_wait(const struct top_waits *waits, size_t from,
			   const struct copyrpc_stats_wait *wait)
{
	const struct stats_view *view = waits->processes[from].view;
	size_t to = top_wait_target(waits, wait);
	char who[STATS_NAME_LEN], addr[STATS_ADDR_LEN];

	top_print_process(waits, from);
	fprintf(waits->out, " waits %.0f s for %s %s ", top_seconds(waits, view, wait->since_ns),
		util_event_cause(wait->cause), util_event_cause_of(wait->cause));
	if (to != TOP_NONE) {
		top_print_process(waits, to);
	} else {
		stats_identity_text(wait->rank, wait->pid, wait->host, who);
		stats_addr_text(&wait->peer, addr);
		fprintf(waits->out, "%s%s%s, %s", who, *who ? " at " : "", addr,
			*wait->host && strcmp(wait->host, view->page->host)
				? "which is on another host"
				: "which is not a process of this host that can be read");
	}
	fprintf(waits->out, "\n");
}

/** Prints the waits of a process, and finds where the oldest leads. */
static void top_waits_of(struct top_waits *waits, size_t i)
{
	struct top_process *process = &waits->processes[i];
	uint64_t oldest_ns = UINT64_MAX;

	process->next = TOP_NONE;
	for (uint32_t k = 1; k < stats_view_rows(process->view, COPYRPC_STATS_WAITS); k++) {
		const struct copyrpc_stats_wait *wait = stats_view_wait(process->view, k);

		if (!wait)
			continue;
		top_print_wait(waits, i, wait);
		if (!process->waits || wait->since_ns < oldest_ns) {
			oldest_ns = wait->since_ns;
			process->next = top_wait_target(waits, wait);
		}
		process->waits = true;
	}
}

/* ---- chains ---- */

/** Prints the circle that process `i` is in. */
static void top_print_circle(const struct top_waits *waits, size_t i)
{
	size_t at = i;

	fprintf(waits->out, "circle: ");
	do {
		top_print_process(waits, at);
		fprintf(waits->out, " -> ");
		waits->processes[at].in_circle = true;
		at = waits->processes[at].next;
	} while (at != i);
	top_print_process(waits, i);
	fprintf(waits->out, "\n");
}

/** Follows the chain from process `i`. Prints a circle when it is found first. */
static void top_follow(const struct top_waits *waits, size_t i)
{
	size_t at = i;

	while (waits->processes[at].seen != i + 1) {
		waits->processes[at].seen = i + 1;
		if (waits->processes[at].next == TOP_NONE) {
			waits->processes[at].waiters += at != i;
			return;
		}
		at = waits->processes[at].next;
	}
	if (!waits->processes[at].in_circle)
		top_print_circle(waits, at);
}

static void top_print_away(const struct top_waits *waits, const struct stats_view *view)
{
	uint64_t looked_ns = stats_view_recorder(view)->looked_ns;
	char state = waits->state((int)view->page->pid);
	double away = top_seconds(waits, view, looked_ns);

	if (state == 'T' || state == 't')
		fprintf(waits->out, ", which is stopped");
	else if (looked_ns && away > TOP_AWAY_S)
		fprintf(waits->out, ", which has made no progress for %.0f s%s", away,
			state == 'S'   ? " (it sleeps)"
			: state == 'R' ? " (it computes)"
				       : "");
}

/** Prints a process at which chains end: it waits for none of this host. */
static void top_print_end(const struct top_waits *waits, size_t i)
{
	const struct top_process *process = &waits->processes[i];

	fprintf(waits->out, "end of the chain of %u process%s: ", process->waiters,
		process->waiters == 1 ? "" : "es");
	top_print_process(waits, i);
	if (process->waits)
		fprintf(waits->out, ", which waits for a peer that cannot be read");
	top_print_away(waits, process->view);
	fprintf(waits->out, "\n");
}

void top_waits_print(FILE *out, const struct top_pages *pages, uint64_t now_ns,
		     char (*state)(int pid))
{
	struct top_waits waits = { .out = out, .now_ns = now_ns, .state = state };
	bool any = false;

	waits.processes = calloc(pages->cnt + 1, sizeof(*waits.processes));
	if (!waits.processes)
		return;
	waits.cnt = pages->cnt;
	for (size_t i = 0; i < waits.cnt; i++)
		waits.processes[i].view = &pages->views[i];
	for (size_t i = 0; i < waits.cnt; i++) {
		top_waits_of(&waits, i);
		any |= waits.processes[i].waits;
	}
	for (size_t i = 0; i < waits.cnt; i++)
		top_follow(&waits, i);
	for (size_t i = 0; i < waits.cnt; i++)
		if (waits.processes[i].waiters)
			top_print_end(&waits, i);
	if (!any)
		fprintf(out, "no process waits for a peer\n");
	free(waits.processes);
}
