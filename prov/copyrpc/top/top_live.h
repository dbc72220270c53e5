/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Live view on the terminal (ncurses): processes with their rates, and the connections of one of
 * them. Reads the pages anew after each interval. Tested by test/suite.d/54-top.
 */
#ifndef TOP_TOP_LIVE_H
#define TOP_TOP_LIVE_H

/**
 * Shows the view until the user quits. `seconds`: the interval, above 0. Returns 0, -ENOTSUP
 * if this build has no ncurses, -ENOTTY if it does not know the terminal (TERM), or another -errno
 * if /proc cannot be read.
 */
int top_live(double seconds);

#endif
