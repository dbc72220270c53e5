/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines of the live view: a process, a connection, and the columns above them. Text only, for a
 * screen of any width. Tested by test/unit/top/test_top_lines.c.
 */
#ifndef TOP_TOP_LINES_H
#define TOP_TOP_LINES_H

#include "top/top_rate.h"

/** Length of a line, its end included. Longer ones are cut. */
#define TOP_LINE_LEN 512u

/** Columns of the lines below. */
extern const char *const top_process_columns;
extern const char *const top_peer_columns;

/** Writes the line of a process. `rate`: NULL if it was not there at the read before. */
void top_process_line(char line[TOP_LINE_LEN], const struct stats_view *view,
		      const struct top_rate *rate);

/** Writes the line of a connection; at its end the error, or why no better path carries it. */
void top_peer_line(char line[TOP_LINE_LEN], const struct stats_view *view,
		   const struct copyrpc_stats_peer *peer, const struct top_rate *rate);

/** Writes a number in at most 6 characters: 0.26, 42, 9.9k, 12M. Returns `text`. */
const char *top_number_text(double number, char text[8]);

#endif
