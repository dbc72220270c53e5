/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Output of a checked page: a summary for people, and JSON (docs/statistics.md). */
#ifndef STATS_STATS_PRINT_H
#define STATS_STATS_PRINT_H

#include <stdio.h>

#include "stats/stats_view.h"

/** Connections that the summary lists. */
#define STATS_TEXT_PEERS 10u

/** Writes the summary. */
void stats_print_text(FILE *out, const struct stats_view *view);

/** Writes the line that names the process. */
void stats_print_head(FILE *out, const struct copyrpc_stats_page *page);

/** Writes the events, for people, and as a JSON array. */
void stats_print_events(FILE *out, const struct stats_view *view);
void stats_print_json_events(FILE *out, const struct stats_view *view);

/** Writes one JSON object, without a newline at its end. */
void stats_print_json(FILE *out, const struct stats_view *view);

#endif
