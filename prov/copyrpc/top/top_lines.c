/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines of the live view: see top_lines.h. */
#include "top/top_lines.h"

#include <stdio.h>
#include <string.h>

const char *const top_process_columns =
	"    PID RANK COMMAND          PATHS       SENT/s  RECV/s  SENT B/s RECV B/s  BATCH "
	"WAITS/s PEERS  GONE";
const char *const top_peer_columns =
	"ADDRESS                  PATH/DEVICE      SENT/s  RECV/s  SENT B/s RECV B/s  BATCH "
	"WAITS/s STATE";

const char *top_number_text(double number, char text[8])
{
	static const char units[] = " kMGTPE";
	unsigned unit = 0;

	while (number >= 999.5 && units[unit + 1]) {
		number /= 1000;
		unit++;
	}
	snprintf(text, 8, number < 9.95 ? "%.2g%.1s" : "%.0f%.1s", number,
		 unit ? &units[unit] : "");
	return text;
}

/** Writes the columns that processes and connections share. */
static void top_rate_columns(char *text, size_t size, const struct top_rate *rate)
{
	char n[6][8];

	if (!rate) {
		snprintf(text, size, "%7s %7s %9s %8s %6s %7s", "-", "-", "-", "-", "-", "-");
		return;
	}
	snprintf(text, size, "%7s %7s %9s %8s %6s %7s", top_number_text(rate->tx_messages, n[0]),
		 top_number_text(rate->rx_messages, n[1]), top_number_text(rate->tx_bytes, n[2]),
		 top_number_text(rate->rx_bytes, n[3]), top_number_text(rate->batch, n[4]),
		 top_number_text(rate->waits, n[5]));
}

/** Writes the paths of the connections that are up ("shm,udp"), and returns how many are. */
static unsigned top_paths(const struct stats_view *view, char *text, size_t size)
{
	uint32_t paths = 0;
	unsigned up = 0;
	size_t len = 0;

	for (uint32_t i = 1; i < stats_view_rows(view, COPYRPC_STATS_PEERS); i++) {
		const struct copyrpc_stats_peer *peer =
			stats_view_row(view, COPYRPC_STATS_PEERS, i);

		if (!peer || peer->row.state != COPYRPC_STATS_LIVE)
			continue;
		up++;
		paths |= peer->path;
	}
	snprintf(text, size, "-");
	for (uint32_t path = COPYRPC_STATS_SHM; path <= COPYRPC_STATS_UDP; path <<= 1) {
		if (!(paths & path) || len >= size)
			continue;
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? "," : "",
					stats_path_name(path));
	}
	return up;
}

void top_process_line(char line[TOP_LINE_LEN], const struct stats_view *view,
		      const struct top_rate *rate)
{
	struct copyrpc_stats_endpoint eps = stats_view_sum_endpoints(view);
	uint64_t gone = eps.died + eps.silent + eps.broken;
	char paths[24], rank[16] = "-", columns[96], gone_text[8];
	unsigned up = top_paths(view, paths, sizeof(paths));

	if (view->page->rank >= 0)
		snprintf(rank, sizeof(rank), "%d", (int)view->page->rank);
	top_rate_columns(columns, sizeof(columns), rate);
	snprintf(line, TOP_LINE_LEN, "%7d %4s %-16.16s %-11.11s%s %5u %5s", (int)view->page->pid,
		 rank, view->page->command, paths, columns, up,
		 top_number_text((double)gone, gone_text));
}

void top_peer_line(char line[TOP_LINE_LEN], const struct stats_view *view,
		   const struct copyrpc_stats_peer *peer, const struct top_rate *rate)
{
	char addr[STATS_ADDR_LEN], path[32], columns[96], why[96], state[160] = "up";
	char who[STATS_NAME_LEN];
	char rtt[48] = "";
	const char *better = stats_better_path(view, peer, why, sizeof(why));

	stats_addr_text(&peer->addr, addr);
	snprintf(path, sizeof(path), "%s/%s", stats_path_name(peer->path), peer->device);
	top_rate_columns(columns, sizeof(columns), rate);
	if (peer->row.state != COPYRPC_STATS_LIVE && peer->error)
		snprintf(state, sizeof(state), "ended: %s", strerror(peer->error));
	else if (peer->row.state != COPYRPC_STATS_LIVE)
		snprintf(state, sizeof(state), "ended");
	else if (better)
		snprintf(state, sizeof(state), "up, not %s: %s", better, why);
	stats_identity_text(peer->rank, peer->pid, peer->host, who);
	if (peer->rtt_ns)
		snprintf(rtt, sizeof(rtt), "; round trip %.1f us", (double)peer->rtt_ns / 1e3);
	snprintf(line, TOP_LINE_LEN, "%-24s %-16.16s%s %s%s%s%s", addr, path, columns, state,
		 *who ? "; " : "", who, rtt);
}
