/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do packets and descriptors get from process to process?
 *
 * Abstract SOCK_SEQPACKET sockets: they exist in one network namespace of one host, keep packet
 * borders, carry descriptors (SCM_RIGHTS), know the peer's user, and end when the peer ends.
 * Nothing here blocks. What arrives is counted: more descriptors than a packet may carry, or
 * fewer than were sent, are closed on the spot, never leaked.
 *
 * Shown by test/unit/cm/base/test_cm_fd.c.
 */
#ifndef CM_CM_FD_H
#define CM_CM_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/wire_cm.h"

/** A packet as it came. The descriptors are the holder's until cm_fd_drop. */
struct cm_fd_msg {
	uint8_t buf[WIRE_CM_MAX];
	size_t len;
	uint32_t fd_cnt;
	int fds[WIRE_CM_FDS_MAX];
	bool is_cut; /* bytes or descriptors were lost: too many sent, or none left here */
};

/** A listening socket of the name `name` (WIRE_CM_NAME_LEN digits): fd or -FI_E*. */
int cm_fd_listen(const char *name);
/** Accepts one: fd or -FI_E* (-FI_EAGAIN: nobody waits). */
int cm_fd_accept(int listen_fd);
/** A socket: fd or -FI_E*. Then connects it: 0 or -FI_E* (-FI_EAGAIN: the queue there is full). */
int cm_fd_socket(void);
int cm_fd_connect(int fd, const char *name);

/** The user at the other end, as of its connect or listen. */
int cm_fd_peer_uid(int fd, uid_t *uid);

/** Sends one packet: 0 or -FI_E*. */
int cm_fd_send(int fd, const uint8_t *buf, size_t len, const int *fds, uint32_t fd_cnt);
/** Receives one: 1, 0 at the end of the connection, or -FI_EAGAIN. */
int cm_fd_recv(int fd, struct cm_fd_msg *msg);
/** Closes the descriptors that came with `msg`. */
void cm_fd_drop(struct cm_fd_msg *msg);

#endif
