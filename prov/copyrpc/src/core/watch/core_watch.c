/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements core_watch.h. */
#include "core/watch/core_watch.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "core/core_ep.h"
#include "core/core_module.h"
#include "core/core_op.h"
#include "core/core_peer.h"
#include "core/core_pending.h"
#include "util/clock.h"
#include "util/event.h"
#include "util/held.h"
#include "util/job.h"
#include "util/log.h"
#include "util/param.h"
#include "util/proc.h"
#include "util/stats.h"

/** Time without a look beyond which this process was stopped or away. Ticks come every 2.5 s. */
#define CORE_WATCH_GAP_NS (5 * UTIL_NS_PER_S)

/** Rows of waits in use in this process; atomic. */
static uint32_t core_watch_waits;

static const struct sockaddr *core_watch_addr(const struct core_peer *peer)
{
	return (const struct sockaddr *)&peer->addr;
}

/* ---- the log ---- */

/** Returns true while a debugger is attached, which stops processes as it likes. */
static bool core_watch_is_traced(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[128];
	int pid = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "TracerPid: %d", &pid) == 1)
			break;
	if (file)
		fclose(file);
	return pid != 0;
}

/** Returns true if a process of this host is stopped, by a signal or a debugger. */
static bool core_watch_is_stopped(int32_t pid)
{
	char state = util_proc_state(pid);

	return state == 'T' || state == 't';
}

static struct util_job_name core_watch_identity(const struct core_chan *chan)
{
	return chan ? util_job_peer(chan->identity, chan->pid) : util_job_peer(NULL, 0);
}

static void core_watch_peer_name(const struct core_peer *peer, char *text, size_t size)
{
	const struct sockaddr_in6 *in6 = (const void *)&peer->addr;
	const struct sockaddr_in *in = (const void *)&peer->addr;
	struct util_job_name who = core_watch_identity(peer->chan);
	char host[INET6_ADDRSTRLEN] = "?", process[UTIL_JOB_TEXT_LEN];
	bool is_v6 = peer->addr.ss_family == AF_INET6;

	inet_ntop(peer->addr.ss_family, is_v6 ? (const void *)&in6->sin6_addr : &in->sin_addr, host,
		  sizeof(host));
	util_job_text(&who, process);
	snprintf(text, size, is_v6 ? "%s%s[%s]:%u" : "%s%s%s:%u", process, *process ? " at " : "",
		 host, ntohs(is_v6 ? in6->sin6_port : in->sin_port));
}

static double core_watch_s(uint64_t ns)
{
	return (double)ns / 1e9;
}

/** Writes what is known of the peer: ", which is stopped", for example. */
static void core_watch_peer_state(const struct core_peer *peer, uint64_t now_ns, char *text,
				  size_t size)
{
	const struct core_peer_watch *w = &peer->watch;

	*text = '\0';
	if (peer->chan && core_watch_is_stopped(peer->chan->pid))
		snprintf(text, size, ", which is stopped");
	else if (peer->chan && w->arrived_ns <= w->since_ns)
		snprintf(text, size, ", from which nothing has arrived for %.0f s",
			 core_watch_s(now_ns - w->arrived_ns));
	else if (peer->chan)
		snprintf(text, size,
			 ", which makes progress: something arrived from it in the "
			 "last %.0f s",
			 core_watch_s(now_ns - w->arrived_ns) + 1);
}

void core_watch_text(const struct core_peer *peer, uint64_t now_ns, char *text, size_t size)
{
	uint32_t others = __atomic_load_n(&core_watch_waits, __ATOMIC_RELAXED);
	char name[192], state[96], rank[32] = "this process";
	struct util_job_name self;
	int len;

	util_job_self(&self);
	if (self.rank >= 0)
		snprintf(rank, sizeof(rank), "rank %d", (int)self.rank);
	core_watch_peer_name(peer, name, sizeof(name));
	core_watch_peer_state(peer, now_ns, state, sizeof(state));
	len = snprintf(text, size, "%s (%s, pid %d) waits %.0f s for %s %s %s%s", rank, self.host,
		       (int)self.pid, core_watch_s(now_ns - peer->watch.since_ns),
		       util_event_cause(peer->watch.cause), util_event_cause_of(peer->watch.cause),
		       name, state);
	if (others > 1 && len > 0 && (size_t)len < size)
		snprintf(text + len, size - (size_t)len, "; %u more are waited for", others - 1);
}

/** Logs a wait, unless a line was logged in the last minute. */
static void core_watch_log(const struct core_peer *peer, uint64_t now_ns)
{
	static uint64_t next_ns;
	char text[512];

	if (!util_log_is_due(&next_ns) || core_watch_is_traced())
		return;
	core_watch_text(peer, now_ns, text, sizeof(text));
	UTIL_WARN(EP_DATA,
		  "%s. `copyrpc_top --waits` shows who waits for whom; FI_COPYRPC_WATCH sets the "
		  "time\n",
		  text);
}

/* ---- the page ---- */

static void core_watch_set_identity(struct copyrpc_stats_wait *row, const struct core_chan *chan)
{
	struct util_job_name who = core_watch_identity(chan);

	row->pid = who.pid;
	row->rank = who.rank;
	util_stats_set_text(row->host, sizeof(row->host), who.host);
}

static void core_watch_get_row(struct core_peer *peer)
{
	struct core_peer_watch *w = &peer->watch;
	struct copyrpc_stats_wait *row = util_stats_get(COPYRPC_STATS_WAITS);

	__atomic_fetch_add(&core_watch_waits, 1, __ATOMIC_RELAXED);
	w->counted = true;
	w->row = row;
	if (!row)
		return;
	util_stats_set_addr(&row->peer, core_watch_addr(peer));
	row->endpoint = util_stats_index(COPYRPC_STATS_ENDPOINTS, peer->ep->stats);
	core_watch_set_identity(row, peer->chan);
	row->since_ns = w->since_ns - util_event_clock();
	row->cause = w->cause;
	row->arrived_ns = w->arrived_ns - util_event_clock();
	util_stats_begin(row);
}

/** Updates the row of a peer that is waited for, and takes one first if it has none. */
static void core_watch_show(struct core_peer *peer)
{
	struct core_peer_watch *w = &peer->watch;

	if (!w->counted)
		core_watch_get_row(peer);
	if (!w->row)
		return;
	if (!w->row->pid) /* the peer may have connected since */
		core_watch_set_identity(w->row, peer->chan);
	__atomic_store_n(&w->row->cause, w->cause, __ATOMIC_RELAXED);
	__atomic_store_n(&w->row->since_ns, w->since_ns - util_event_clock(), __ATOMIC_RELAXED);
	__atomic_store_n(&w->row->arrived_ns, w->arrived_ns - util_event_clock(), __ATOMIC_RELAXED);
}

/** Ends the wait for a peer. */
static void core_watch_end(struct core_peer *peer, uint64_t now_ns)
{
	struct core_peer_watch *w = &peer->watch;

	if (w->reported)
		util_event(COPYRPC_STATS_WAIT_END, core_watch_addr(peer), w->cause,
			   now_ns - w->since_ns);
	if (w->counted)
		__atomic_fetch_sub(&core_watch_waits, 1, __ATOMIC_RELAXED);
	util_stats_end(w->row);
	w->row = NULL;
	w->counted = false;
	w->reported = false;
	w->cause = 0;
}

/* ---- waits ---- */

/** Returns the counter of attempts that were refused for lack of what `cause` says. */
static uint64_t core_watch_refused(const struct copyrpc_stats_peer *stats,
				   enum copyrpc_stats_cause cause)
{
	switch (cause) {
	case COPYRPC_STATS_FOR_CREDIT: return stats->no_credit;
	case COPYRPC_STATS_FOR_QUEUE: return stats->no_queue;
	default: return stats->no_space + stats->no_memory;
	}
}

/** Returns the cause for which attempts were refused since the last look, or that of before. */
static enum copyrpc_stats_cause core_watch_shortage(const struct core_peer *peer)
{
	static const enum copyrpc_stats_cause causes[] = { COPYRPC_STATS_FOR_ROOM,
							   COPYRPC_STATS_FOR_CREDIT,
							   COPYRPC_STATS_FOR_QUEUE };
	const struct core_peer_watch *w = &peer->watch;
	enum copyrpc_stats_cause best = w->shortage ? w->shortage : COPYRPC_STATS_FOR_ROOM;
	uint64_t most = 0, grown;

	for (size_t i = 0; peer->chan->stats && i < 3; i++) {
		grown = core_watch_refused(peer->chan->stats, causes[i]) - w->refused[i];
		if (grown > most && grown <= INT64_MAX) {
			most = grown;
			best = causes[i];
		}
	}
	return best;
}

/** Returns what the oldest open operation of a peer waits for. */
static enum copyrpc_stats_cause core_watch_op_cause(const struct core_peer *peer,
						    const struct core_op *op)
{
	if (peer->state != CORE_PEER_UP || (peer->holds && op->queued && !op->tried))
		return COPYRPC_STATS_FOR_CONNECTION;
	/* Calls have no wait_link until they are queued. */
	if (op->queued || (op->ops->stream && !util_list_is_empty(&op->wait_link)))
		return core_watch_shortage(peer);
	return op->ops->awaits ? op->ops->awaits : COPYRPC_STATS_FOR_RESPONSE;
}

/**
 * Returns what no later one has: the place on the ring of the oldest pending completion, or the
 * number of the oldest simple access. Numbers of pending completions return when the FIFO is empty.
 */
static uint64_t core_watch_head(const struct core_peer *peer)
{
	return core_pending_is_awaited(&peer->pending) ? core_pending_pos(&peer->pending)
						       : peer->simple.head;
}

/** Returns what the oldest receive from a peer waits for, 0 if there is none; *again as below. */
static enum copyrpc_stats_cause core_watch_receive(struct core_peer *peer, bool *again)
{
	struct core_peer_watch *w = &peer->watch;
	uint64_t number = 0;

	CORE_MODULES_CALL(peer_awaited, peer, &number);
	if (!number)
		return 0;
	*again = w->cause == COPYRPC_STATS_FOR_MESSAGE && w->head == number;
	w->head = number;
	return COPYRPC_STATS_FOR_MESSAGE;
}

/**
 * Marks what is oldest at a peer and returns what it waits for, 0 if nothing is open. *again: the
 * last look found the same.
 */
static enum copyrpc_stats_cause core_watch_oldest(struct core_peer *peer, bool *again)
{
	struct core_peer_watch *w = &peer->watch;
	struct util_list *first = util_list_first(&peer->tx);
	struct core_op *op;

	*again = false;
	if (first) {
		op = UTIL_CONTAINER_OF(first, struct core_op, peer_link);
		*again = op->watched;
		op->watched = true;
		return core_watch_op_cause(peer, op);
	}
	if (!core_pending_is_awaited(&peer->pending) && !core_simple_is_awaited(&peer->simple))
		return core_watch_receive(peer, again);
	*again = w->cause == COPYRPC_STATS_FOR_ACK && w->head == core_watch_head(peer);
	w->head = core_watch_head(peer);
	return COPYRPC_STATS_FOR_ACK;
}

/** Returns true if a wait is worth a line: a receive may be posted long before its message. */
static bool core_watch_is_notable(const struct core_peer *peer, uint64_t now_ns)
{
	const struct core_peer_watch *w = &peer->watch;

	if (now_ns - w->since_ns < (uint64_t)util_params.watch_s * UTIL_NS_PER_S)
		return false;
	return w->cause != COPYRPC_STATS_FOR_MESSAGE ||
	       (peer->chan && core_watch_is_stopped(peer->chan->pid));
}

static void core_watch_wait(struct core_peer *peer, uint64_t now_ns)
{
	struct core_peer_watch *w = &peer->watch;
	bool again;
	enum copyrpc_stats_cause cause = core_watch_oldest(peer, &again);

	if (!cause || !again) {
		core_watch_end(peer, now_ns);
		w->since_ns = now_ns;
		w->cause = cause;
		return;
	}
	w->cause = cause;
	core_watch_show(peer);
	if (!core_watch_is_notable(peer, now_ns))
		return;
	if (!w->reported)
		util_event(COPYRPC_STATS_WAIT, core_watch_addr(peer), cause, now_ns - w->since_ns);
	w->reported = true;
	core_watch_log(peer, now_ns);
}

/* ---- arrivals and stalls ---- */

/** Returns a number that changes when something arrives from the peer. */
static uint64_t core_watch_arrivals(const struct copyrpc_stats_peer *stats)
{
	return stats->rx_messages + stats->rx_bytes + stats->gets + stats->accesses;
}

/** Records the begin or end of a period in which a counter grows. `kind` is that of the begin. */
static void core_watch_stall(struct core_peer *peer, struct core_peer_stall *stall, uint64_t grown,
			     enum copyrpc_stats_event_kind kind, uint64_t cause, uint64_t now_ns)
{
	bool losses = kind == COPYRPC_STATS_LOSSES;

	if (grown && !stall->since_ns) {
		util_event(kind, core_watch_addr(peer), losses ? grown : cause, losses ? 0 : grown);
		*stall = (struct core_peer_stall){ .since_ns = now_ns };
	} else if (!grown && stall->since_ns) {
		util_event(kind + 1, core_watch_addr(peer), stall->cnt, now_ns - stall->since_ns);
		*stall = (struct core_peer_stall){ 0 };
	}
	if (stall->since_ns)
		stall->cnt += grown;
}

/** Compares the counters of a connection with those of the last look. */
static void core_watch_counters(struct core_peer *peer, uint64_t now_ns)
{
	const struct copyrpc_stats_peer *stats = peer->chan->stats;
	struct core_peer_watch *w = &peer->watch;
	uint64_t refused = 0, resent = stats->resent - w->resent;
	uint64_t seen[3] = { core_watch_refused(stats, COPYRPC_STATS_FOR_ROOM), stats->no_credit,
			     stats->no_queue };
	bool same = w->stats == stats && stats->addr.family;

	for (size_t i = 0; i < 3; i++) {
		refused += seen[i] - w->refused[i];
		w->refused[i] = seen[i];
	}
	if (same) { /* a row of its own, and the one of the last look */
		core_watch_stall(peer, &w->stall, refused, COPYRPC_STATS_STALL, w->shortage,
				 now_ns);
		core_watch_stall(peer, &w->losses, resent, COPYRPC_STATS_LOSSES, 0, now_ns);
	}
	if (!same || w->arrivals != core_watch_arrivals(stats))
		w->arrived_ns = now_ns;
	w->arrivals = core_watch_arrivals(stats);
	w->resent = stats->resent;
	w->stats = stats;
}

/** Adds the time without a look, except that of one tick. */
static void core_watch_count_gap(struct core_ep *ep, uint64_t now_ns)
{
	uint64_t gap_ns = now_ns - ep->watched_ns;

	if (ep->watched_ns && gap_ns > CORE_WATCH_GAP_NS)
		ep->unwatched_ns += gap_ns - CORE_WATCH_GAP_NS / 2;
	ep->watched_ns = now_ns;
}

/** Takes the time without a look off. */
static void core_watch_discount(const struct core_ep *ep, struct core_peer_watch *w)
{
	uint64_t gap_ns = ep->unwatched_ns - w->unwatched_ns;

	w->since_ns += gap_ns;
	w->arrived_ns += gap_ns;
	w->unwatched_ns = ep->unwatched_ns;
}

static void core_watch_peer(struct core_peer *peer, uint64_t now_ns)
{
	struct core_peer_watch *w = &peer->watch;

	core_watch_discount(peer->ep, w);
	if (peer->chan && peer->chan->stats) {
		core_chan_show(peer->chan);
		w->shortage = core_watch_shortage(peer);
		core_watch_counters(peer, now_ns);
	}
	core_watch_wait(peer, now_ns);
}

/* Moves each peer to the end of the list, so that the next look begins behind them. */
static uint32_t core_watch_list(struct util_list *peers, uint32_t left, uint64_t now_ns)
{
	struct util_list *last = peers->prev, *it;

	while (left && (it = util_list_first(peers))) {
		left--;
		util_list_remove(it);
		util_list_push_back(peers, it);
		core_watch_peer(UTIL_CONTAINER_OF(it, struct core_peer, ep_link), now_ns);
		if (it == last)
			break;
	}
	return left;
}

void core_watch_ep_at(struct core_ep *ep, uint64_t now_ns)
{
	uint32_t left;

	core_watch_count_gap(ep, now_ns);
	left = core_watch_list(&ep->unnamed, CORE_WATCH_PEERS / 2, now_ns);
	core_watch_list(&ep->known, left + CORE_WATCH_PEERS / 2, now_ns);
	core_ep_show(ep);
	util_held_refresh();
	util_event_looked(now_ns);
}

void core_watch_ep(struct core_ep *ep)
{
	core_watch_ep_at(ep, util_clock_ns());
}

void core_watch_forget_peer(struct core_peer *peer)
{
	core_watch_end(peer, util_clock_ns());
}
