/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The segment: how a process finds it, and how one finds things in it.
 *
 * It is a sparse file in /dev/shm, mapped whole by every process of the fabric. All of it lives until
 * `copyrpc_hca reset` or until a process finds that nobody uses it any more.
 *
 * What these functions never do: call malloc, stdio or anything else that a signal handler may not,
 * except mdl_segment_attach(), which is called from ordinary code.
 */
#ifndef MDL_SEGMENT_H
#define MDL_SEGMENT_H

#include "model/mdl_objects.h"

#include <stddef.h>

#define MDL_PAGE 4096u

/* What the launcher decided for this process, from the environment (COPYRPC_HCA_*). */
struct mdl_config {
	char segment[64]; /* name of the fabric */
	uint32_t link, nodes, node, mode;
	uint64_t seed;
	char faults[256]; /* the fault plan as it was written; the NIC parses it */
	uint32_t stats;   /* at exit: 0 nothing, 1 one line, 2 one counter a line */
};

/* Of this process. seg is null until the device was first opened (or counters were asked for). */
struct mdl_self {
	struct mdl_segment *seg;
	struct mdl_proc *proc;
	uint32_t slot; /* of proc */
	struct mdl_config config;
};

extern struct mdl_self mdl_self;

/* Reads the environment once; safe to call again. */
const struct mdl_config *mdl_config_get(void);

/* Maps the segment, creating it where it does not exist. 0 or -errno. */
int mdl_segment_map(bool create);
/* The same under the lock file of the fabric: mdl_segment_lock() gives its descriptor, close() lets go. */
int mdl_segment_lock(void);
int mdl_segment_map_locked(bool create);
/* The descriptor of the mapped file: kept above all that programs use, closed by nobody. */
int mdl_segment_fd(void);
/* "/dev/shm/copyrpc_hca-<uid>-<name>" followed by suffix. Returns its length, or -1 if it does not fit. */
int mdl_segment_path(char *path, size_t size, const char *suffix);
/* mdl_segment_map() and a slot of the process table for this process. 0 or -errno. */
int mdl_segment_attach(void);

static inline void *mdl_at(uint64_t offset)
{
	return (char *)mdl_self.seg + offset;
}

/* True: the previous holder died with the lock; the object may be half changed. */
bool mdl_lock(struct mdl_lock *lock);
bool mdl_trylock(struct mdl_lock *lock, bool *taken);
void mdl_unlock(struct mdl_lock *lock);
void mdl_lock_init(struct mdl_lock *lock);

/* The object with that number, or null: free, another generation, out of range. No lock is taken. */
struct mdl_qp *mdl_qp_find(uint32_t qpn);
struct mdl_cq *mdl_cq_find(uint32_t cqn);
struct mdl_srq *mdl_srq_find(uint32_t srqn);
struct mdl_mr *mdl_mr_find(uint32_t key);
/* The node that a LID (IB) or a GID (RoCE, or a GRH) names, or null. */
struct mdl_node *mdl_node_by_lid(uint16_t lid);
struct mdl_node *mdl_node_by_gid(const uint8_t gid[16]);
static inline uint32_t mdl_node_index(const struct mdl_node *node)
{
	return (uint32_t)(node - mdl_self.seg->node);
}

/* Whether the process in that slot is gone. Looks at /proc at most once a millisecond a process. */
bool mdl_proc_is_dead(uint32_t slot);
/* The same, by its process id and start time, at once. */
bool mdl_pid_is_dead(int32_t pid, uint64_t started);
/* Start time of a process in clock ticks; 0: there is none, or it is a zombie. */
uint64_t mdl_pid_started(int32_t pid);
/* Takes the objects of processes that are gone out of the tables. Called by ordinary code. */
void mdl_proc_sweep(void);

/* Pages of the arena: contiguous, zeroed; 0 where there are none. */
uint64_t mdl_pages_alloc(uint64_t pages);
void mdl_pages_free(uint64_t offset, uint64_t pages);

uint64_t mdl_now_ns(void);

/*
 * Ends the program: it broke a rule of the device. The text names the rule, what was found and what a
 * driver does instead. Counted in characters of one line; a newline is added.
 */
_Noreturn void mdl_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A remark on stderr, once per place where the caller sees to that. */
void mdl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* MDL_SEGMENT_H */
