/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waits of the processes of this host for one another, for copyrpc_top --waits: all waits, circles,
 * and the processes at which chains end.
 *
 * A wait leads to the process whose endpoint has the address that is waited for, and whose number
 * is that of the wait, if it has one: the addresses of network namespaces may be the same. A chain
 * follows the oldest wait of each process. Tested by test/unit/top/test_top_waits.c and
 * test/suite.d/54-waits.
 */
#ifndef TOP_TOP_WAITS_H
#define TOP_TOP_WAITS_H

#include <stdint.h>
#include <stdio.h>

#include "top/top_pages.h"

/**
 * Writes all waits, circles and ends of chains. `now_ns` is CLOCK_MONOTONIC. `state` returns the
 * state of a process, as in proc_pid_stat(5), or 0 if it is unknown.
 */
void top_waits_print(FILE *out, const struct top_pages *pages, uint64_t now_ns,
		     char (*state)(int pid));

#endif
