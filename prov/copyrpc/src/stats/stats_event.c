/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events of a page, for people and as JSON: see stats_print.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stats/stats_print.h"
#include "util/event.h"

#define STATS_NS_PER_S 1000000000u

/** Meaning of a value of an event. */
enum stats_value {
	STATS_NOTHING,
	STATS_BY_PATH,   /* a path */
	STATS_FROM_PATH, /* a path */
	STATS_NOT_PATHS, /* a sum of paths, perhaps 0 */
	STATS_FOR_ERRNO, /* an errno */
	STATS_FOR_CAUSE, /* a cause */
	STATS_FOR_TIME,  /* nanoseconds */
	STATS_COUNT,     /* a number of attempts or packets */
};

struct stats_kind {
	const char *name; /* in JSON */
	const char *text;
	enum stats_value values[2];
};

static const struct stats_kind stats_kinds[] = {
	[COPYRPC_STATS_DEVICE_UNUSED] = { "device_unused",
					  "no device",
					  { STATS_BY_PATH, STATS_FOR_ERRNO } },
	[COPYRPC_STATS_CONNECTING] = { "connecting", "requests a connection", { 0 } },
	[COPYRPC_STATS_CONNECTED] = { "connected",
				      "connected",
				      { STATS_BY_PATH, STATS_NOT_PATHS } },
	[COPYRPC_STATS_MOVED] = { "moved", "connected again", { STATS_BY_PATH, STATS_FROM_PATH } },
	[COPYRPC_STATS_NOT_CONNECTED] = { "not_connected",
					  "not connected",
					  { STATS_NOTHING, STATS_FOR_ERRNO } },
	[COPYRPC_STATS_PATH_FAILED] = { "path_failed",
					"cannot be connected",
					{ STATS_BY_PATH, STATS_FOR_ERRNO } },
	[COPYRPC_STATS_PATH_AVOIDED] = { "path_avoided",
					 "nothing arrived on several connections",
					 { STATS_BY_PATH, STATS_NOTHING } },
	[COPYRPC_STATS_CLOSED] = { "closed",
				   "closed by the peer",
				   { STATS_BY_PATH, STATS_NOTHING } },
	[COPYRPC_STATS_CLOSED_HERE] = { "closed_here",
					"closed at this end",
					{ STATS_BY_PATH, STATS_NOTHING } },
	[COPYRPC_STATS_LOST] = { "lost", "connection lost", { STATS_BY_PATH, STATS_FOR_ERRNO } },
	[COPYRPC_STATS_DEVICE_OUT] = { "device_out",
				       "the device is out",
				       { STATS_BY_PATH, STATS_FOR_ERRNO } },
	[COPYRPC_STATS_DEVICE_BACK] = { "device_back",
					"the device is back",
					{ STATS_BY_PATH, STATS_FOR_TIME } },
	[COPYRPC_STATS_STALL] = { "stall", "sending is refused", { STATS_FOR_CAUSE, STATS_COUNT } },
	[COPYRPC_STATS_STALL_END] = { "stall_end",
				      "sending was refused",
				      { STATS_COUNT, STATS_FOR_TIME } },
	[COPYRPC_STATS_LOSSES] = { "losses",
				   "packets are sent again",
				   { STATS_COUNT, STATS_NOTHING } },
	[COPYRPC_STATS_LOSSES_END] = { "losses_end",
				       "packets were sent again",
				       { STATS_COUNT, STATS_FOR_TIME } },
	[COPYRPC_STATS_WAIT] = { "wait",
				 "an operation waits",
				 { STATS_FOR_CAUSE, STATS_FOR_TIME } },
	[COPYRPC_STATS_WAIT_END] = { "wait_end",
				     "the operation waited",
				     { STATS_FOR_CAUSE, STATS_FOR_TIME } },
};

static const struct stats_kind *stats_kind(uint32_t kind)
{
	return kind < sizeof(stats_kinds) / sizeof(stats_kinds[0]) && stats_kinds[kind].name
		       ? &stats_kinds[kind]
		       : NULL;
}

static void stats_text_paths(FILE *out, uint64_t paths)
{
	const char *sep = "; not by ";

	for (uint32_t path = COPYRPC_STATS_SHM; path <= COPYRPC_STATS_UDP; path <<= 1)
		if (paths & path) {
			fprintf(out, "%s%s", sep, stats_path_name(path));
			sep = ", ";
		}
	if (*sep == ',')
		fprintf(out, ": the peer does not offer it, or it does not lead there");
}

static void stats_text_value(FILE *out, enum stats_value meaning, uint64_t value)
{
	switch (meaning) {
	case STATS_NOTHING: break;
	case STATS_BY_PATH: fprintf(out, " by %s", stats_path_name((uint32_t)value)); break;
	case STATS_FROM_PATH:
		fprintf(out, ", before by %s", stats_path_name((uint32_t)value));
		break;
	case STATS_NOT_PATHS: stats_text_paths(out, value); break;
	case STATS_FOR_ERRNO:
		fprintf(out, ": %s", value < 4096 ? strerror((int)value) : "?");
		break;
	case STATS_FOR_CAUSE: fprintf(out, " for %s", util_event_cause((uint32_t)value)); break;
	case STATS_FOR_TIME: fprintf(out, " for %.1f s", (double)value / STATS_NS_PER_S); break;
	case STATS_COUNT: fprintf(out, ", %" PRIu64 " times", value); break;
	}
}

/** Writes one event on a line. */
static void stats_text_event(FILE *out, const struct copyrpc_stats_event *event)
{
	const struct stats_kind *kind = stats_kind(event->kind);
	char addr[STATS_ADDR_LEN] = "";

	if (event->peer.family)
		stats_addr_text(&event->peer, addr);
	fprintf(out, "  %+14.6f s  %-22s ", (double)event->time_ns / STATS_NS_PER_S, addr);
	if (!kind) {
		fprintf(out, "event %" PRIu32 ": %" PRIu64 ", %" PRIu64 "\n", event->kind,
			event->values[0], event->values[1]);
		return;
	}
	fprintf(out, "%s", kind->text);
	stats_text_value(out, kind->values[0], event->values[0]);
	stats_text_value(out, kind->values[1], event->values[1]);
	fprintf(out, "\n");
}

static void stats_text_start(FILE *out, const struct copyrpc_stats_page *page)
{
	time_t start = (time_t)(page->start_ns / STATS_NS_PER_S);
	char text[64] = "?";
	struct tm tm;

	if (localtime_r(&start, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm);
	fprintf(out, "events, in seconds since %s\n", text);
}

void stats_print_events(FILE *out, const struct stats_view *view)
{
	const struct copyrpc_stats_event **events;
	size_t cnt;

	stats_print_head(out, view->page);
	stats_text_start(out, view->page);
	events = stats_view_events(view, &cnt);
	for (size_t i = 0; i < cnt; i++)
		stats_text_event(out, events[i]);
	if (!cnt)
		fprintf(out, "  none\n");
	free(events);
}

void stats_print_json_events(FILE *out, const struct stats_view *view)
{
	const struct copyrpc_stats_event **events;
	char addr[STATS_ADDR_LEN];
	size_t cnt;

	events = stats_view_events(view, &cnt);
	fprintf(out, "[");
	for (size_t i = 0; i < cnt; i++) {
		const struct stats_kind *kind = stats_kind(events[i]->kind);

		stats_addr_text(&events[i]->peer, addr);
		fprintf(out, "%s{\"time_ns\":%" PRIu64 ",\"kind\":\"%s\",\"address\":\"%s\"",
			i ? "," : "", events[i]->time_ns, kind ? kind->name : "?",
			events[i]->peer.family ? addr : "");
		fprintf(out, ",\"values\":[%" PRIu64 ",%" PRIu64 "]}", events[i]->values[0],
			events[i]->values[1]);
	}
	fprintf(out, "]");
	free(events);
}
