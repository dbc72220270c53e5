/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Abstract SOCK_SEQPACKET sockets, which carry packets and descriptors between processes of one
 * host.
 *
 * They belong to one network namespace, preserve packet boundaries, carry descriptors (SCM_RIGHTS),
 * identify the peer's user, and end with the peer process. No function blocks. Descriptors beyond
 * the limit of a packet, or of an incomplete set, are closed at once.
 */
#ifndef CM_BASE_CM_FD_H
#define CM_BASE_CM_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/wire_cm.h"

/** Received packet. The descriptors belong to its holder until cm_fd_drop. */
struct cm_fd_msg {
	uint8_t buf[WIRE_CM_MAX];
	size_t len;
	uint32_t fd_cnt;
	int fds[WIRE_CM_FDS_MAX];
	bool is_cut; /* bytes or descriptors were lost: too many sent, or no free descriptor here */
};

/** Opens a listening socket named `name` (WIRE_CM_NAME_LEN digits). Returns fd or -FI_E*. */
int cm_fd_listen(const char *name);
/** Accepts a stream. Returns fd, -FI_EAGAIN if none is waiting, or another -FI_E*. */
int cm_fd_accept(int listen_fd);
/** Opens a socket. Returns fd or -FI_E*. */
int cm_fd_socket(void);
/** Connects. Returns 0, -FI_EAGAIN if the listener's queue is full, or another -FI_E*. */
int cm_fd_connect(int fd, const char *name);

/**
 * Gets the user of the other process, as of its connect or listen. Returns 0, -EOVERFLOW if the
 * kernel cannot name it here (util/uid.h), or another error.
 */
int cm_fd_peer_uid(int fd, uid_t *uid);
/** Returns the number of that process, or 0 if it is unknown, as in another PID namespace. */
pid_t cm_fd_peer_pid(int fd);

/** Sends one packet. Returns 0 or -FI_E*. */
int cm_fd_send(int fd, const uint8_t *buf, size_t len, const int *fds, uint32_t fd_cnt);
/** Receives one packet. Returns 1, 0 at the end of the connection, or -FI_EAGAIN. */
int cm_fd_recv(int fd, struct cm_fd_msg *msg);
/** Closes the descriptors of `msg`. */
void cm_fd_drop(struct cm_fd_msg *msg);

#endif
