/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * States of processes of this host, by /proc. Used by the watch and by copyrpc_top. Any thread.
 * Tested by test/unit/util/test_proc.c.
 */
#ifndef UTIL_PROC_H
#define UTIL_PROC_H

/** Returns the state of a process as in proc_pid_stat(5), 'T' for example; 0: unknown. */
char util_proc_state(int pid);

#endif
