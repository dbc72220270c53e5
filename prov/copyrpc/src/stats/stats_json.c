/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A page as JSON: see stats_print.h. Names and meaning of all members: docs/statistics.md. */
#include <inttypes.h>

#include "stats/stats_print.h"
#include "util/event.h"

/** Name and place of a counter. */
struct stats_member {
	const char *name;
	size_t offset;
};

#define STATS_MEMBER(type, field)                                                                  \
	{                                                                                          \
#field, offsetof(struct type, field)                                               \
	}
#define STATS_PEER(field)       STATS_MEMBER(copyrpc_stats_peer, field)
#define STATS_ENDPOINT(field)   STATS_MEMBER(copyrpc_stats_endpoint, field)
#define STATS_QUEUE(field)      STATS_MEMBER(copyrpc_stats_queue, field)
#define STATS_PROCESS(field)    STATS_MEMBER(copyrpc_stats_process, field)
#define STATS_PACKETS(field)    STATS_MEMBER(copyrpc_stats_packets, field)
#define STATS_HANDSHAKES(field) STATS_MEMBER(copyrpc_stats_handshakes, field)

static const struct stats_member stats_peer_members[] = {
	STATS_PEER(tx_bytes),    STATS_PEER(rx_messages),   STATS_PEER(rx_bytes),
	STATS_PEER(tx_credits),  STATS_PEER(gets),          STATS_PEER(get_bytes),
	STATS_PEER(get_errors),  STATS_PEER(no_space),      STATS_PEER(no_credit),
	STATS_PEER(no_queue),    STATS_PEER(no_memory),     STATS_PEER(paced),
	STATS_PEER(resent),      STATS_PEER(losses),        STATS_PEER(timeouts),
	STATS_PEER(accesses),    STATS_PEER(access_bytes),  STATS_PEER(access_errors),
	STATS_PEER(given),       STATS_PEER(given_bytes),   STATS_PEER(tag_requests),
	STATS_PEER(tag_matches), STATS_PEER(tag_unmatched),
};

static const struct stats_member stats_endpoint_members[] = {
	STATS_ENDPOINT(unexpected_now),
	STATS_ENDPOINT(waited_connection),
	STATS_ENDPOINT(waited_peer),
	STATS_ENDPOINT(unexpected),
	STATS_ENDPOINT(connects),
	STATS_ENDPOINT(closed),
	STATS_ENDPOINT(died),
	STATS_ENDPOINT(silent),
	STATS_ENDPOINT(refused),
	STATS_ENDPOINT(unreachable),
	STATS_ENDPOINT(broken),
	STATS_ENDPOINT(posted_now),
	STATS_ENDPOINT(posted_most),
	STATS_ENDPOINT(unexpected_queue),
	STATS_ENDPOINT(unexpected_queue_most),
};

static const struct stats_member stats_queue_members[] = {
	STATS_QUEUE(completions),
	STATS_QUEUE(failed),
	STATS_QUEUE(unread),
};

static const struct stats_member stats_process_members[] = {
	STATS_PROCESS(registrations), STATS_PROCESS(registration_errors),
	STATS_PROCESS(registered),    STATS_PROCESS(pinned),
	STATS_PROCESS(slots),         STATS_PROCESS(pools),
};

static const struct stats_member stats_packets_members[] = {
	STATS_PACKETS(tx_pkts),       STATS_PACKETS(rx_pkts),      STATS_PACKETS(rx_malformed),
	STATS_PACKETS(rx_no_session), STATS_PACKETS(rx_bad_token), STATS_PACKETS(rx_bad_source),
	STATS_PACKETS(rx_bad_state),  STATS_PACKETS(rx_stale),     STATS_PACKETS(rx_early),
	STATS_PACKETS(rx_bad),        STATS_PACKETS(rx_repeats),   STATS_PACKETS(rx_no_memory),
	STATS_PACKETS(gaps),          STATS_PACKETS(piggybacks),
};

static const struct stats_member stats_handshakes_members[] = {
	STATS_HANDSHAKES(rx_pkts),         STATS_HANDSHAKES(rx_malformed),
	STATS_HANDSHAKES(rx_bad_mac),      STATS_HANDSHAKES(rx_bad_cookie),
	STATS_HANDSHAKES(rx_stale),        STATS_HANDSHAKES(rx_refused),
	STATS_HANDSHAKES(tx_reqs),         STATS_HANDSHAKES(tx_acks),
	STATS_HANDSHAKES(tx_naks),         STATS_HANDSHAKES(tx_pings),
	STATS_HANDSHAKES(crossings),       STATS_HANDSHAKES(incoming_foreign),
	STATS_HANDSHAKES(rx_unproven),     STATS_HANDSHAKES(incoming_evicted),
	STATS_HANDSHAKES(pending_evicted), STATS_HANDSHAKES(unused_refused),
	STATS_HANDSHAKES(cookies_renewed), STATS_HANDSHAKES(accept_pauses),
	STATS_HANDSHAKES(rx_limited),
};

/** Writes counters, each behind a separator: `sep` before the first one. */
static void stats_json_members(FILE *out, const char *sep, const void *row,
			       const struct stats_member *members, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : sep, members[i].name,
			*(const uint64_t *)((const char *)row + members[i].offset));
}

/** Writes the counters of connections as members of an object that is open. */
static void stats_json_counters(FILE *out, const struct copyrpc_stats_peer *peer)
{
	unsigned last = COPYRPC_STATS_SIZES;

	fprintf(out, "\"tx_messages\":%" PRIu64, stats_tx_messages(peer));
	stats_json_members(out, ",", peer, stats_peer_members,
			   sizeof(stats_peer_members) / sizeof(stats_peer_members[0]));
	while (last && !stats_tx_batches(peer, last - 1))
		last--;
	fprintf(out, ",\"tx_batches\":[");
	for (unsigned k = 0; k < last; k++)
		fprintf(out, "%s%" PRIu64, k ? "," : "", stats_tx_batches(peer, k));
	fprintf(out, "]");
}

static const char *stats_state_name(uint32_t state)
{
	return state == COPYRPC_STATS_LIVE ? "up" : "ended";
}

/** Writes counters as an object, the member `name`. */
static void stats_json_object(FILE *out, const char *name, const void *row,
			      const struct stats_member *members, size_t cnt)
{
	fprintf(out, ",\"%s\":{", name);
	stats_json_members(out, "", row, members, cnt);
	fprintf(out, "}");
}

/** Writes the counters of an endpoint as members of an object that is open. */
static void stats_json_endpoint_counters(FILE *out, const struct copyrpc_stats_endpoint *row)
{
	stats_json_members(out, ",", row, stats_endpoint_members,
			   sizeof(stats_endpoint_members) / sizeof(stats_endpoint_members[0]));
	stats_json_object(out, "packets", &row->packets, stats_packets_members,
			  sizeof(stats_packets_members) / sizeof(stats_packets_members[0]));
	stats_json_object(out, "handshakes", &row->handshakes, stats_handshakes_members,
			  sizeof(stats_handshakes_members) / sizeof(stats_handshakes_members[0]));
}

static void stats_json_transport(FILE *out, const struct copyrpc_stats_transport *row)
{
	fprintf(out, "{\"name\":\"%s\",\"path\":\"%s\",\"state\":\"%s\",\"error\":%d", row->name,
		stats_path_name(row->path),
		row->error ? "failed" : stats_state_name(row->row.state), (int)row->error);
	fprintf(out, ",\"memory\":%" PRIu64 "}", row->memory);
}

static void stats_json_endpoint(FILE *out, const struct copyrpc_stats_endpoint *row)
{
	char addr[STATS_ADDR_LEN];

	stats_addr_text(&row->addr, addr);
	fprintf(out, "{\"address\":\"%s\",\"state\":\"%s\"", addr,
		stats_state_name(row->row.state));
	stats_json_endpoint_counters(out, row);
	fprintf(out, "}");
}

static void stats_json_peer(FILE *out, const struct stats_view *view,
			    const struct copyrpc_stats_peer *row)
{
	const struct copyrpc_stats_endpoint *ep =
		stats_view_row(view, COPYRPC_STATS_ENDPOINTS, row->endpoint);
	char addr[STATS_ADDR_LEN], own[STATS_ADDR_LEN] = "?", why[96];
	const char *better = stats_better_path(view, row, why, sizeof(why));

	stats_addr_text(&row->addr, addr);
	if (ep)
		stats_addr_text(&ep->addr, own);
	fprintf(out, "{\"address\":\"%s\",\"endpoint\":\"%s\",\"state\":\"%s\"", addr, own,
		stats_state_name(row->row.state));
	fprintf(out, ",\"path\":\"%s\",\"device\":\"%s\",\"error\":%d,", stats_path_name(row->path),
		row->device, (int)row->error);
	fprintf(out, "\"pid\":%d,\"rank\":%d,\"host\":\"%s\",", (int)row->pid, (int)row->rank,
		row->host);
	fprintf(out, "\"rtt_ns\":%" PRIu64 ",\"rtt_best_ns\":%" PRIu64 ",", row->rtt_ns,
		row->rtt_best_ns);
	if (better)
		fprintf(out, "\"better_path\":\"%s\",\"why_not\":\"%s\",", better, why);
	stats_json_counters(out, row);
	fprintf(out, "}");
}

static void stats_json_queue(FILE *out, const struct copyrpc_stats_queue *row)
{
	fprintf(out, "{\"state\":\"%s\",\"room\":%" PRIu64, stats_state_name(row->row.state),
		row->room);
	stats_json_members(out, ",", row, stats_queue_members,
			   sizeof(stats_queue_members) / sizeof(stats_queue_members[0]));
	fprintf(out, "}");
}

static void stats_json_total(FILE *out, const struct stats_view *view)
{
	struct copyrpc_stats_peer sum = stats_view_sum_peers(view);
	struct copyrpc_stats_endpoint eps = stats_view_sum_endpoints(view);
	struct copyrpc_stats_queue queues = stats_view_sum_queues(view);

	fprintf(out, "\"total\":{");
	stats_json_counters(out, &sum);
	stats_json_endpoint_counters(out, &eps);
	stats_json_object(out, "queues", &queues, stats_queue_members,
			  sizeof(stats_queue_members) / sizeof(stats_queue_members[0]));
	fprintf(out, "}");
}

/** Writes an array of the rows of a table. */
static void stats_json_table(FILE *out, const struct stats_view *view,
			     enum copyrpc_stats_table_id table)
{
	const char *sep = "";

	for (uint32_t i = 1; i < stats_view_rows(view, table); i++) {
		const void *row = stats_view_row(view, table, i);

		if (!row)
			continue;
		fprintf(out, "%s", sep);
		sep = ",";
		if (table == COPYRPC_STATS_TRANSPORTS)
			stats_json_transport(out, row);
		else if (table == COPYRPC_STATS_ENDPOINTS)
			stats_json_endpoint(out, row);
		else if (table == COPYRPC_STATS_QUEUES)
			stats_json_queue(out, row);
		else
			stats_json_peer(out, view, row);
	}
}

static void stats_json_waits(FILE *out, const struct stats_view *view)
{
	const char *sep = "";
	char addr[STATS_ADDR_LEN];

	fprintf(out, "[");
	for (uint32_t i = 1; i < stats_view_rows(view, COPYRPC_STATS_WAITS); i++) {
		const struct copyrpc_stats_wait *wait = stats_view_wait(view, i);

		if (!wait)
			continue;
		stats_addr_text(&wait->peer, addr);
		fprintf(out, "%s{\"address\":\"%s\",\"pid\":%d,\"rank\":%d,\"host\":\"%s\"", sep,
			addr, (int)wait->pid, (int)wait->rank, wait->host);
		fprintf(out, ",\"for\":\"%s\"", util_event_cause(wait->cause));
		fprintf(out, ",\"since_ns\":%" PRIu64 ",\"arrived_ns\":%" PRIu64 "}",
			wait->since_ns, wait->arrived_ns);
		sep = ",";
	}
	fprintf(out, "]");
}

void stats_print_json(FILE *out, const struct stats_view *view)
{
	const struct copyrpc_stats_page *page = view->page;

	fprintf(out, "{\"format\":\"copyrpc-stats\",\"version\":%u,\"release\":\"%s\"",
		page->version, page->release);
	fprintf(out, ",\"command\":\"%s\",\"host\":\"%s\",\"pid\":%d,\"rank\":%d", page->command,
		page->host, (int)page->pid, (int)page->rank);
	fprintf(out, ",\"start_ns\":%" PRIu64 ",", page->start_ns);
	stats_json_total(out, view);
	stats_json_object(out, "process", stats_view_process(view), stats_process_members,
			  sizeof(stats_process_members) / sizeof(stats_process_members[0]));
	fprintf(out, ",\"transports\":[");
	stats_json_table(out, view, COPYRPC_STATS_TRANSPORTS);
	fprintf(out, "],\"endpoints\":[");
	stats_json_table(out, view, COPYRPC_STATS_ENDPOINTS);
	fprintf(out, "],\"queues\":[");
	stats_json_table(out, view, COPYRPC_STATS_QUEUES);
	fprintf(out, "],\"peers\":[");
	stats_json_table(out, view, COPYRPC_STATS_PEERS);
	fprintf(out, "],\"events\":");
	stats_print_json_events(out, view);
	fprintf(out, ",\"waits\":");
	stats_json_waits(out, view);
	fprintf(out, "}");
}
