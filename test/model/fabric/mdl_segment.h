/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The segment: mapping it, and lookup of the objects in it.
 *
 * The segment is a sparse file in /dev/shm, mapped whole by every process of the fabric. It lives
 * until `copyrpc_hca reset`, or until a process finds that no process uses it any more.
 *
 * Signal handlers may call all of these functions except mdl_segment_attach(): they call neither
 * malloc nor stdio.
 */
#ifndef MDL_SEGMENT_H
#define MDL_SEGMENT_H

#include "model/fabric/mdl_objects.h"

#include <stddef.h>

#define MDL_PAGE 4096u

/* Launcher's settings for this process, from the environment (COPYRPC_HCA_*). */
struct mdl_config {
	char segment[64]; /* name of the fabric */
	uint32_t link, nodes, devices, node, mode;
	uint64_t seed;
	char faults[256]; /* fault plan as text; parsed by the NIC */
	uint32_t stats;   /* output at exit: 0 nothing, 1 one line, 2 one counter a line */
};

/* State of this process. seg is null until the device is first opened or counters are read. */
struct mdl_self {
	struct mdl_segment *seg;
	struct mdl_proc *proc;
	uint32_t slot; /* slot of proc */
	struct mdl_config config;
};

extern struct mdl_self mdl_self;

/* Reads the environment once; safe to call again. */
const struct mdl_config *mdl_config_get(void);

/* Maps the segment, creating it if it does not exist. Returns 0 or -errno. */
int mdl_segment_map(bool create);
/* Returns the pid of a process that uses the fabric, or 0 if no process does. */
int mdl_segment_user(const struct mdl_segment *seg);
/*
 * Maps the segment as mdl_segment_map() does, with the fabric's lock file already locked.
 * mdl_segment_lock() returns the lock file's descriptor; close() unlocks it.
 */
int mdl_segment_lock(void);
int mdl_segment_map_locked(bool create);
/* Returns the descriptor of the mapped file: above all that programs use, and never closed. */
int mdl_segment_fd(void);
/*
 * Writes "/dev/shm/copyrpc_hca-<uid>-<name>" followed by suffix. Returns its length, or -1 if it
 * does not fit.
 */
int mdl_segment_path(char *path, size_t size, const char *suffix);
/*
 * Returns whether the open file or directory belongs to this user and no other user may write it.
 * If not, a line says so: every user can make files in /dev/shm, under any name.
 */
bool mdl_fd_is_own(int fd, const char *path);
/* Maps the segment and claims a slot of the process table for this process. Returns 0 or -errno. */
int mdl_segment_attach(void);

static inline void *mdl_at(uint64_t offset)
{
	return (char *)mdl_self.seg + offset;
}

/*
 * Takes a lock. Returns true if the previous owner died with it; the object may then be half
 * changed.
 */
bool mdl_lock(struct mdl_lock *lock);
bool mdl_trylock(struct mdl_lock *lock, bool *taken);
void mdl_unlock(struct mdl_lock *lock);
void mdl_lock_init(struct mdl_lock *lock);

/*
 * Return the object with that number, or null if it is free, of another generation or out of range.
 * Take no lock.
 */
struct mdl_qp *mdl_qp_find(uint32_t qpn);
struct mdl_cq *mdl_cq_find(uint32_t cqn);
struct mdl_srq *mdl_srq_find(uint32_t srqn);
struct mdl_mr *mdl_mr_find(uint32_t key);
/* Return the port with a LID (IB) or a GID (RoCE, or a GRH), or null. */
struct mdl_port *mdl_port_by_lid(uint16_t lid);
struct mdl_port *mdl_port_by_gid(const uint8_t gid[16]);
static inline uint32_t mdl_port_index(const struct mdl_port *port)
{
	return (uint32_t)(port - mdl_self.seg->port);
}
/* Returns the index of the port of a device of this process's node. */
static inline uint32_t mdl_own_port(uint32_t device)
{
	return device * mdl_self.seg->node_cnt + mdl_self.proc->node;
}
/* Returns which device of its node a port belongs to. */
static inline uint32_t mdl_port_device(uint32_t port)
{
	return port / mdl_self.seg->node_cnt;
}

/*
 * Returns true if the process in that slot is dead. Reads /proc at most once a millisecond for each
 * process.
 */
bool mdl_proc_is_dead(uint32_t slot);
/* Returns true if the process with that pid and start time is dead. Always reads /proc. */
bool mdl_pid_is_dead(int32_t pid, uint64_t started);
/* Returns the start time of a process in clock ticks, 0 if there is none or it is a zombie. */
uint64_t mdl_pid_started(int32_t pid);
/* Removes the objects of dead processes from the tables. Not for signal handlers. */
void mdl_proc_sweep(void);

/* Allocates contiguous, zeroed pages of the arena. Returns 0 if there are none. */
uint64_t mdl_pages_alloc(uint64_t pages);
void mdl_pages_free(uint64_t offset, uint64_t pages);

uint64_t mdl_now_ns(void);

/*
 * Ends the program because it broke a rule of the device. The text names the rule, the value found
 * and what a driver does instead, in one line; a newline is added.
 */
_Noreturn void mdl_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a remark on stderr. Callers that must not repeat it check that themselves. */
void mdl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* MDL_SEGMENT_H */
