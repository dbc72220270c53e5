/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lock of a path: flock(2) of its directory. Between processes, their users and their threads. Used
 * by crl_sock.c: two servers that both find the socket of a crashed one would otherwise remove each
 * other's.
 *
 * The directory is there anyway, so the lock leaves no file behind, whenever its holder is killed.
 * Every process that may read the directory can hold it: waiting is bounded, and a server without
 * the lock only loses the right to remove a socket.
 */
#ifndef LOCAL_CRL_LOCK_H
#define LOCAL_CRL_LOCK_H

#define CRL_LOCK_MS 10000 /* longest wait: a holder may be stopped, and is quick otherwise */

/**
 * Waits for the lock and takes it. path: absolute, shorter than PATH_MAX. The lock ends with
 * crl_lock_drop or with the process. Returns a descriptor, -EBUSY if another process holds the lock
 * for CRL_LOCK_MS, -ENOLCK if the system has no locks, or the negative errno of opening the
 * directory.
 */
int crl_lock_take(const char *path);

/** Gives the lock back. Closes the descriptor. */
void crl_lock_drop(int lock);

#endif
