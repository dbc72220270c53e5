/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Closer: closes descriptors whose release may wait, in a thread of its own. Called by the control
 * threads and where a CM endpoint closes.
 *
 * An unread message holds the descriptors that came with it. Closing the stream releases them, and
 * so does reading the message and closing them. The release of some waits: a TCP socket with unsent
 * data and SO_LINGER, a file of a file system in user space. So the streams of other users are
 * never read, and are closed here.
 *
 * The thread is started when there is something to close and ends when that is done. It is detached
 * and never waited for, so the library stays loaded (-z nodelete). At most CM_CLOSER_MAX streams
 * wait for it; then their listener is paused.
 *
 * One for the process, under a lock of its own that is taken last.
 */
#ifndef CM_NODE_CM_CLOSER_H
#define CM_NODE_CM_CLOSER_H

#include <stdbool.h>

#define CM_CLOSER_MAX   64u
#define CM_CLOSER_SPARE 64u /* further ones that cannot be refused: cm_closer_close */

/** Returns whether another stream may be accepted that has to be closed here. */
bool cm_closer_has_room(void);

/**
 * Shuts down the socket `fd` at once, takes it over and closes it later. Does not wait. If
 * CM_CLOSER_SPARE more descriptors than CM_CLOSER_MAX wait already, this one stays open.
 */
void cm_closer_close(int fd);

/** Hold the lock during a fork; a child has no thread (cm_fork.h). */
void cm_closer_fork_before(void);
void cm_closer_fork_in_parent(void);
void cm_closer_fork_in_child(void);

#endif
