/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collective groups and operations. Called by ofi/xfer and core_peer.
 *
 * A group is an ordered list of members, each an address of the AV, this endpoint among them. Its
 * id needs no messages: it follows from the members' addresses and from the number of joins of such
 * a group. An operation has a sequence number in the order of the calls, which must be the same at
 * all members.
 *
 *   core_coll_post -> plan (core_coll_plan.h) -> phases of moves (core_coll_op.h)
 *     -> messages (core_coll_msg.h) -> end
 *
 * Messages that arrive before their operation is posted are kept: short ones with their bytes, of
 * long ones only the announcement. All count as unexpected messages (core_limits), except aborts of
 * groups that are not joined yet: one per peer and group is kept, and the oldest of too many go.
 * An abort and the leave of a group free what was kept for it. A new process at a peer's address
 * numbers its groups as its predecessor did, whose messages are freed when it connects. Those of a
 * peer in no AV are freed with it.
 *
 * A member that fails aborts the group and notifies the others. Their open operations, and all
 * later ones in this group, end with an error. A member that cannot be reached then is notified
 * when a connection to it comes up.
 */
#ifndef CORE_COLL_CORE_COLL_H
#define CORE_COLL_CORE_COLL_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/coll/core_coll_plan.h"
#include "core/core_atomic_math.h"
#include "core/core_chan.h"
#include "core/core_peer.h"
#include "util/list.h"

/** Most bytes from one member for one other. */
#define CORE_COLL_LEN_MAX     (1u << 30)
#define CORE_COLL_MEMBERS_MAX 65536u
/** Most aborts of one peer that are kept for groups that are not joined here. */
#define CORE_COLL_ABORTS_MAX 1024u

struct core_coll_group {
	struct util_list link; /* core_coll.groups */
	struct core_ep *ep;
	uint64_t id;
	fi_addr_t *members;
	uint32_t cnt;
	uint32_t me;
	uint32_t seq;         /* sequence number of the next operation */
	int err;              /* -FI_E*: aborted */
	struct util_list ops; /* core_coll_op.link */
	/* Reports that the group is complete (0) or failed (-FI_E*). Called once, by progress. */
	void (*joined)(struct core_coll_group *group, int err);
};

/** Message that arrived before its operation was posted. */
struct core_coll_unexp {
	struct util_list link; /* core_coll.unexp */
	struct core_peer *peer;
	uint64_t incarnation; /* of the peer */
	uint64_t group;
	uint32_t seq;
	uint32_t from;
	int abort;  /* 0, or -FI_E*: abort of the group */
	size_t len; /* of the message */
	bool whole; /* with its bytes */
	uint8_t data[];
};

/** Number of joins of groups with the same members. */
struct core_coll_joins {
	uint64_t members; /* a hash */
	uint64_t cnt;
};

/** Collective state of an endpoint. */
struct core_coll {
	struct util_list groups;
	struct util_list unexp; /* oldest first */
	struct core_coll_joins *joins;
	size_t join_cnt;
};

/** Operation that has not ended. */
struct core_coll_op {
	struct util_list link; /* core_coll_group.ops */
	struct core_coll_group *group;
	struct core_coll_plan plan;
	uint32_t seq;
	size_t next;  /* index of the first move that has not started */
	size_t open;  /* moves in progress */
	bool running; /* moves are being started: must not be freed */
	bool is_join;
	int err;
	core_atomic_fn *reduce;
	unsigned type; /* datatype of an element, with reduce */
	size_t size;   /* of an element */
	void *context;
	uint64_t flags;        /* FI_COMPLETION */
	struct util_list msgs; /* core_coll_msg.coll_link */
};

/** Arguments of an operation. */
struct core_coll_args {
	struct core_coll_call call; /* me and cnt are set by core_coll_op_post */
	core_atomic_fn *reduce;     /* combines elements, or NULL */
	unsigned type;              /* datatype of an element, with reduce */
	size_t size;                /* of an element, with reduce */
	void *context;
	uint64_t flags;
};

/**
 * Opens and closes the collective state of an endpoint, between core_ep_open and core_ep_close.
 * Returns 0 or -FI_ENOMEM.
 */
int core_coll_init(struct core_ep *ep);
void core_coll_fini(struct core_ep *ep);

/**
 * Joins a group of distinct members of the endpoint's AV, each known by the same name at all
 * members. The caller zeroed `group` and set `joined`. `parent`: 0, or the id of the group in which
 * this one is made. `managed`: the application manages membership, and the group is complete at
 * once. Returns 0, -FI_ENOMEM, or -FI_EINVAL if this endpoint is not a member or an address is
 * unknown.
 */
int core_coll_join(struct core_ep *ep, struct core_coll_group *group, const fi_addr_t *members,
		   uint32_t cnt, uint64_t parent, bool managed);

/** Leaves the group: open operations end with FI_ECANCELED, kept messages are freed. */
void core_coll_leave(struct core_coll_group *group);

/** Starts an operation. Returns 0, -FI_ENOMEM, or the error of an aborted group. */
ssize_t core_coll_post(struct core_coll_group *group, const struct core_coll_args *args);

/** Finds the rank of an address in the group. Returns 0 and *rank, or -FI_EINVAL. */
int core_coll_rank_of(const struct core_coll_group *group, fi_addr_t addr, uint32_t *rank);

/** Returns whether a peer is this member. A peer may be in the AV under several addresses. */
static inline bool core_coll_is_member(const struct core_coll_group *group,
				       const struct core_peer *peer, uint32_t member)
{
	return member < group->cnt && core_peer_lookup(group->ep, group->members[member]) == peer;
}

/**
 * Called when a peer is up: frees messages of its predecessor, and notifies it of the groups with
 * it that were aborted.
 */
void core_coll_peer_up(struct core_peer *peer);
/** Called when a peer fails, and before it is freed. */
void core_coll_fail_peer(struct core_peer *peer, int err);
void core_coll_forget_peer(struct core_peer *peer);

/** Aborts the group with `err`. With `notify` the other members are notified. */
void core_coll_abort(struct core_coll_group *group, int err, bool notify);
/** Returns the group with this id, or NULL. */
struct core_coll_group *core_coll_find(struct core_ep *ep, uint64_t id);

#endif
