/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lock of a path: a file beside it, which exists while a process holds or awaits the lock. Between
 * processes and between threads. Used by crl_sock.c: two servers that both find the socket of a
 * crashed one would otherwise remove each other's.
 */
#ifndef LOCAL_CRL_LOCK_H
#define LOCAL_CRL_LOCK_H

#define CRL_LOCK_SUFFIX ".copyrpc-lock"
#define CRL_LOCK_MS     10000 /* longest wait: a holder may be stopped, and is quick otherwise */

/**
 * Waits for the lock and takes it. It ends with crl_lock_drop or with the process. Returns a
 * descriptor, -EADDRINUSE if another process holds the lock for CRL_LOCK_MS, -ENOLCK if the file
 * system has no locks, or the negative errno of creating the file.
 */
int crl_lock_take(const char *path);

/** Removes the file and gives the lock back. Closes the descriptor. */
void crl_lock_drop(const char *path, int lock);

#endif
