/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Summary of a page for people: see stats_print.h. Leaves out lines whose numbers are all zero. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats_print.h"

/** Writes a number of bytes with a binary prefix. */
static const char *stats_bytes(uint64_t bytes, char text[16])
{
	static const char units[] = "BKMGTPE";
	double v = (double)bytes;
	unsigned i = 0;

	while (v >= 10000 && units[i + 1]) {
		v /= 1024;
		i++;
	}
	snprintf(text, 16, i ? "%.1f %ciB" : "%.0f B", v, units[i]);
	return text;
}

void stats_print_head(FILE *out, const struct copyrpc_stats_page *page)
{
	fprintf(out, "copyrpc %s: %s, pid %d on %s", page->release, page->command, (int)page->pid,
		page->host);
	if (page->rank >= 0)
		fprintf(out, ", rank %d", (int)page->rank);
	fprintf(out, "\n");
}

static uint64_t stats_batches(const struct copyrpc_stats_peer *peer)
{
	uint64_t cnt = 0;

	for (unsigned k = 0; k < COPYRPC_STATS_SIZES; k++)
		cnt += stats_tx_batches(peer, k);
	return cnt;
}

static double stats_mean_batch(const struct copyrpc_stats_peer *peer)
{
	uint64_t cnt = stats_batches(peer);

	return cnt ? (double)stats_tx_messages(peer) / (double)cnt : 0;
}

static void stats_text_sums(FILE *out, const struct copyrpc_stats_peer *sum)
{
	char bytes[16];

	fprintf(out, "  sent      %12" PRIu64 " messages  %10s  %.1f a batch\n",
		stats_tx_messages(sum), stats_bytes(sum->tx_bytes, bytes), stats_mean_batch(sum));
	fprintf(out, "  received  %12" PRIu64 " messages  %10s\n", sum->rx_messages,
		stats_bytes(sum->rx_bytes, bytes));
	if (sum->gets || sum->get_errors)
		fprintf(out, "  fetched   %12" PRIu64 " transfers %10s  %" PRIu64 " failed\n",
			sum->gets, stats_bytes(sum->get_bytes, bytes), sum->get_errors);
	if (sum->given)
		fprintf(out, "  given     %12" PRIu64 " transfers %10s  which peers fetched\n",
			sum->given, stats_bytes(sum->given_bytes, bytes));
	if (sum->accesses || sum->access_errors)
		fprintf(out, "  accessed  %12" PRIu64 " ranges    %10s  %" PRIu64 " failed\n",
			sum->accesses, stats_bytes(sum->access_bytes, bytes), sum->access_errors);
	if (sum->tag_requests || sum->tag_matches || sum->tag_unmatched)
		fprintf(out,
			"  by tags   %12" PRIu64 " requests  %10" PRIu64
			" matched by the device, %" PRIu64 " by the processor\n",
			sum->tag_requests, sum->tag_matches, sum->tag_unmatched);
}

/** Writes the range of sizes that element k of tx_batches counts. */
static void stats_text_size(FILE *out, unsigned k)
{
	uint64_t least = UINT64_C(1) << k;

	fprintf(out, "  %" PRIu64, least);
	if (k)
		fprintf(out, "-%" PRIu64, 2 * least - 1);
}

/** Lists how many batches had how many messages. */
static void stats_text_sizes(FILE *out, const struct copyrpc_stats_peer *sum)
{
	uint64_t all = stats_batches(sum), cnt;

	if (!all)
		return;
	fprintf(out, "  messages in a batch:");
	for (unsigned k = 0; k < COPYRPC_STATS_SIZES; k++) {
		cnt = stats_tx_batches(sum, k);
		if (!cnt)
			continue;
		stats_text_size(out, k);
		fprintf(out, ": %" PRIu64 " (%.0f%%)", cnt, 100.0 * (double)cnt / (double)all);
	}
	fprintf(out, "\n");
	if (sum->tx_credits)
		fprintf(out, "  batches without messages (credit): %" PRIu64 "\n", sum->tx_credits);
}

struct stats_number {
	const char *name;
	uint64_t value;
};

/** Writes a line of the numbers that are not 0, if there are any. */
static void stats_text_line(FILE *out, const char *head, const struct stats_number *numbers,
			    size_t cnt)
{
	const char *sep = "  ";

	for (size_t i = 0; i < cnt; i++) {
		if (!numbers[i].value)
			continue;
		if (head)
			fprintf(out, "  %s:", head);
		head = NULL;
		fprintf(out, "%s%s %" PRIu64, sep, numbers[i].name, numbers[i].value);
		sep = ", ";
	}
	if (!head)
		fprintf(out, "\n");
}

#define STATS_LINE(out, head, ...)                                                                 \
	do {                                                                                       \
		const struct stats_number numbers[] = { __VA_ARGS__ };                             \
                                                                                                   \
		stats_text_line(out, head, numbers, sizeof(numbers) / sizeof(numbers[0]));         \
	} while (0)

static void stats_text_waits(FILE *out, const struct copyrpc_stats_peer *sum,
			     const struct copyrpc_stats_endpoint *eps)
{
	STATS_LINE(out, "operations that waited", { "for a connection", eps->waited_connection },
		   { "for the peer", eps->waited_peer });
	STATS_LINE(out, "attempts refused", { "room", sum->no_space }, { "credit", sum->no_credit },
		   { "send queue", sum->no_queue }, { "memory", sum->no_memory },
		   { "rate", sum->paced });
	STATS_LINE(out, "losses", { "packets sent again", sum->resent }, { "losses", sum->losses },
		   { "found by time", sum->timeouts });
	STATS_LINE(out, "packets", { "sent", eps->packets.tx_pkts },
		   { "received", eps->packets.rx_pkts });
	STATS_LINE(out, "packets refused", { "malformed", eps->packets.rx_malformed },
		   { "no session", eps->packets.rx_no_session },
		   { "wrong token", eps->packets.rx_bad_token },
		   { "wrong source", eps->packets.rx_bad_source },
		   { "of an ended session", eps->packets.rx_bad_state },
		   { "violations", eps->packets.rx_bad }, { "too late", eps->packets.rx_stale },
		   { "repeated", eps->packets.rx_repeats }, { "too early", eps->packets.rx_early },
		   { "no memory", eps->packets.rx_no_memory });
	STATS_LINE(out, "receives posted", { "now", eps->posted_now },
		   { "at most", eps->posted_most });
	STATS_LINE(out, "unexpected messages", { "in all", eps->unexpected },
		   { "queued now", eps->unexpected_queue },
		   { "at most", eps->unexpected_queue_most },
		   { "bytes held now", eps->unexpected_now });
	STATS_LINE(
		out, "handshakes refused", { "another job key", eps->handshakes.rx_bad_mac },
		{ "malformed", eps->handshakes.rx_malformed },
		{ "another user", eps->handshakes.incoming_foreign + eps->handshakes.rx_unproven },
		{ "bad cookie", eps->handshakes.rx_bad_cookie },
		{ "too many", eps->handshakes.incoming_evicted + eps->handshakes.pending_evicted +
				      eps->handshakes.unused_refused + eps->handshakes.rx_limited },
		{ "peer's port closed", eps->handshakes.rx_refused });
	STATS_LINE(out, "connections", { "up", eps->connects },
		   { "closed by the peer", eps->closed }, { "peer died", eps->died },
		   { "peer silent", eps->silent }, { "refused", eps->refused },
		   { "no path", eps->unreachable }, { "broken", eps->broken });
}

static void stats_text_queues(FILE *out, const struct stats_view *view)
{
	struct copyrpc_stats_queue sum = stats_view_sum_queues(view);

	STATS_LINE(out, "completions", { "written", sum.completions },
		   { "of these with an error", sum.failed }, { "not read yet", sum.unread });
}

/** Writes what the process holds. */
static void stats_text_process(FILE *out, const struct stats_view *view)
{
	const struct copyrpc_stats_process *process = stats_view_process(view);
	char bytes[16];

	if (process->registrations || process->registration_errors)
		fprintf(out,
			"  registered with RDMA devices: %" PRIu64 " ranges, %s now; %" PRIu64
			" in all, %" PRIu64 " refused\n",
			process->registered, stats_bytes(process->pinned, bytes),
			process->registrations, process->registration_errors);
	if (process->slots)
		fprintf(out, "  buffers for packets: %s\n", stats_bytes(process->slots, bytes));
	if (process->pools)
		fprintf(out, "  pools of requests and messages: %s\n",
			stats_bytes(process->pools, bytes));
}

static void stats_text_transports(FILE *out, const struct stats_view *view)
{
	char bytes[16];

	for (uint32_t i = 1; i < stats_view_rows(view, COPYRPC_STATS_TRANSPORTS); i++) {
		const struct copyrpc_stats_transport *row =
			stats_view_row(view, COPYRPC_STATS_TRANSPORTS, i);

		if (row && row->error)
			fprintf(out, "  path %s: %s is not used: %s\n", stats_path_name(row->path),
				row->name, strerror(row->error));
		else if (row && row->memory)
			fprintf(out, "  path %s: %s has %s of receive and send memory\n",
				stats_path_name(row->path), row->name,
				stats_bytes(row->memory, bytes));
	}
}

/* ---- connections ---- */

static uint64_t stats_weight(const struct copyrpc_stats_peer *peer)
{
	return peer->tx_bytes + peer->rx_bytes + peer->get_bytes + peer->given_bytes +
	       peer->access_bytes;
}

static int stats_heavier(const void *a, const void *b)
{
	uint64_t x = stats_weight(*(const struct copyrpc_stats_peer *const *)a);
	uint64_t y = stats_weight(*(const struct copyrpc_stats_peer *const *)b);

	return x < y ? 1 : x > y ? -1 : 0;
}

/** Writes the long transfers with a peer, if there were any, on a line of their own. */
static void stats_text_long(FILE *out, const struct copyrpc_stats_peer *peer)
{
	char gave[16], fetched[16];

	if (peer->given || peer->gets)
		fprintf(out,
			"    long transfers: gave %" PRIu64 " (%s), fetched %" PRIu64 " (%s)\n",
			peer->given, stats_bytes(peer->given_bytes, gave), peer->gets,
			stats_bytes(peer->get_bytes, fetched));
}

/** Writes what is known of the peer's identity and its round trips, on a line of their own. */
static void stats_text_identity(FILE *out, const struct copyrpc_stats_peer *peer)
{
	char who[STATS_NAME_LEN];

	stats_identity_text(peer->rank, peer->pid, peer->host, who);
	if (peer->rtt_ns)
		fprintf(out, "    %s%sround trip %.1f us, shortest %.1f us\n", who,
			*who ? "; " : "", (double)peer->rtt_ns / 1e3,
			(double)peer->rtt_best_ns / 1e3);
	else if (*who)
		fprintf(out, "    %s\n", who);
}

static void stats_text_peer(FILE *out, const struct stats_view *view,
			    const struct copyrpc_stats_peer *peer)
{
	char addr[STATS_ADDR_LEN], sent[16], received[16], why[96];
	const char *better = stats_better_path(view, peer, why, sizeof(why));

	stats_addr_text(&peer->addr, addr);
	fprintf(out, "  %-24s %s/%s%s  sent %" PRIu64 " (%s), received %" PRIu64 " (%s)\n", addr,
		stats_path_name(peer->path), peer->device,
		peer->row.state == COPYRPC_STATS_LIVE ? "" : ", ended", stats_tx_messages(peer),
		stats_bytes(peer->tx_bytes, sent), peer->rx_messages,
		stats_bytes(peer->rx_bytes, received));
	stats_text_long(out, peer);
	stats_text_identity(out, peer);
	if (better)
		fprintf(out, "    not %s: %s\n", better, why);
}

static void stats_text_peers(FILE *out, const struct stats_view *view)
{
	uint32_t rows = stats_view_rows(view, COPYRPC_STATS_PEERS), cnt = 0;
	const struct copyrpc_stats_peer **peers = calloc(rows + 1, sizeof(*peers));

	if (!peers)
		return;
	for (uint32_t i = 1; i < rows; i++) {
		peers[cnt] = stats_view_row(view, COPYRPC_STATS_PEERS, i);
		cnt += peers[cnt] != NULL;
	}
	qsort(peers, cnt, sizeof(*peers), stats_heavier);
	if (cnt)
		fprintf(out, "peers: %u, those with most bytes first\n", cnt);
	for (uint32_t i = 0; i < cnt && i < STATS_TEXT_PEERS; i++)
		stats_text_peer(out, view, peers[i]);
	free(peers);
}

void stats_print_text(FILE *out, const struct stats_view *view)
{
	struct copyrpc_stats_peer sum = stats_view_sum_peers(view);
	struct copyrpc_stats_endpoint eps = stats_view_sum_endpoints(view);

	stats_print_head(out, view->page);
	stats_text_sums(out, &sum);
	stats_text_sizes(out, &sum);
	stats_text_waits(out, &sum, &eps);
	stats_text_queues(out, view);
	stats_text_transports(out, view);
	stats_text_process(out, view);
	stats_text_peers(out, view);
}
