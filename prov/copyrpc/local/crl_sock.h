/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unix sockets between the server and its clients: addresses, users, liveness, and messages that
 * carry descriptors. Used by crl_server.c, crl_accept.c and crl_client.c.
 */
#ifndef LOCAL_CRL_SOCK_H
#define LOCAL_CRL_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CRL_SOCK_FDS   3      /* descriptors in a message */
#define CRL_SOCK_WAKES 64     /* wakeups of a peer beside one for each sleep */
#define CRL_SOCK_ARMED 65536u /* sleeps that count between two looks */

/** File of a listening socket. All 0: an abstract name, which has none. */
struct crl_sock_file {
	dev_t dev;
	ino_t ino;
};

/**
 * Creates the listening socket of `name` and stores which file it has. A path is taken from the
 * socket of a server that ended without crl_sock_unlink, by one of those that try at a time.
 * Returns a descriptor or a negative errno.
 */
int crl_sock_listen(const char *name, struct crl_sock_file *file);

/** Ends the connection for both sides, also if forked children have the descriptor. Closes it. */
void crl_sock_end(int sock);

/**
 * Removes the file of a listening socket that is still open, unless another one has its path by
 * now.
 */
void crl_sock_unlink(const char *name, const struct crl_sock_file *file);

/** Connects to `name`. Returns a descriptor or a negative errno. */
int crl_sock_connect(const char *name, int timeout_ms);

/** Returns 0 if the peer has this process's effective user, otherwise -EACCES. */
int crl_sock_check_user(int sock);

/** Returns a descriptor that becomes readable when the peer's process ends, or -1. */
int crl_sock_pidfd(int sock);

/** Opens a descriptor that serves nothing but to be closed. Returns it or -1. */
int crl_sock_spare(void);

/** Sends a message and descriptors without blocking. Returns 0 or a negative errno. */
int crl_sock_send(int sock, const void *msg, size_t len, const int *fds, int fd_cnt);

/**
 * Receives a message of exactly `len` bytes and up to CRL_SOCK_FDS descriptors, waiting at most
 * timeout_ms. Returns their number or a negative errno; then none is left open.
 */
int crl_sock_recv(int sock, void *msg, size_t len, int *fds, int timeout_ms);

/** Wakes the peer, which sleeps on its end: one byte. */
void crl_sock_wake(int sock);

/**
 * Takes the bytes of wakeups. armed: how often this side was armed to sleep since the last look at
 * this socket; not each of them was a sleep that took bytes. Returns false if the peer has closed
 * its end, or breaks the rules: it wakes once for each time, so CRL_SOCK_WAKES bytes beside these
 * are more than it may have sent.
 */
bool crl_sock_drain(int sock, uint32_t armed);

#endif
