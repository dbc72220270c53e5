/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do many endpoints do one thing together?
 *
 * A group is an ordered list of members, each an address of the AV, this endpoint among them. Members
 * agree on its number without a word: it follows from their addresses and from how often
 * this endpoint has joined such a group. Each operation in it has a number too, in the order of
 * the calls, which must be the same at all members.
 *
 *   core_coll_post -> plan (core_coll_plan.h) -> phases of moves -> messages (core_coll_msg.h) -> end
 *
 * Messages that come before their operation was called wait here: short ones with their bytes, of long
 * ones only that they can be read. All of them count as unexpected messages (core_limits).
 *
 * A member that cannot go on gives the group up, and says so to the others: their operations end
 * with an error too, and so does every later one in this group.
 *
 * Shown by test/unit/core/coll/test_core_coll.c.
 */
#ifndef CORE_COLL_H
#define CORE_COLL_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/rma/core_atomic_math.h"
#include "core/core_chan.h"
#include "core/coll/core_coll_plan.h"
#include "util/list.h"

/** Bytes that one member may have for one other. */
#define CORE_COLL_LEN_MAX     (1u << 30)
#define CORE_COLL_MEMBERS_MAX 65536u

struct core_coll_group {
	struct util_list link; /* core_coll.groups */
	struct core_ep *ep;
	uint64_t id;
	fi_addr_t *members;
	uint32_t cnt;
	uint32_t me;
	uint32_t seq;         /* of the next operation */
	int err;              /* -FI_E*: it is given up */
	struct util_list ops; /* core_coll_op.link */
	/* The group is complete (0), or will never be (-FI_E*). Called once, by progress. */
	void (*joined)(struct core_coll_group *group, int err);
};

/** A message that has come and that nothing was waiting for. */
struct core_coll_unexp {
	struct util_list link; /* core_coll.unexp */
	struct core_peer *peer;
	uint64_t group;
	uint32_t seq;
	uint32_t from;
	int abort;  /* 0 or -FI_E*: it says that the group was given up */
	size_t len; /* of the message */
	bool whole; /* its bytes are here */
	uint8_t data[];
};

/** How often a group with these members was joined. */
struct core_coll_joins {
	uint64_t members; /* a hash */
	uint64_t cnt;
};

/** An endpoint's part in collective operations. */
struct core_coll {
	struct util_list groups;
	struct util_list unexp; /* oldest first */
	struct core_coll_joins *joins;
	size_t join_cnt;
};

/** An operation that has not ended. */
struct core_coll_op {
	struct util_list link; /* core_coll_group.ops */
	struct core_coll_group *group;
	struct core_coll_plan plan;
	uint32_t seq;
	size_t next;  /* of plan.moves: the first that has not started */
	size_t open;  /* moves that have started and not ended */
	bool running; /* moves are being started: it is not freed */
	bool is_join;
	int err;
	core_atomic_fn *reduce;
	size_t size; /* of an element */
	void *context;
	uint64_t flags;        /* FI_COMPLETION */
	struct util_list msgs; /* core_coll_msg.coll_link */
};

/** What is asked for. */
struct core_coll_args {
	struct core_coll_call call; /* me and cnt are filled in */
	core_atomic_fn *reduce;     /* how elements are combined, or NULL */
	size_t size;                /* of an element, if they are */
	void *context;
	uint64_t flags;
};

/** Endpoints that take part: between core_ep_open and core_ep_close. 0 or -FI_ENOMEM. */
int core_coll_init(struct core_ep *ep);
void core_coll_fini(struct core_ep *ep);

/**
 * A group of these members of the endpoint's AV, each of them once; the caller zeroed `group` and set
 * `joined`. `parent`: 0, or the id of a group that it is made in. `managed`: the application sees to
 * membership, and the group is complete at once. 0, -FI_ENOMEM, or -FI_EINVAL: this endpoint is not
 * among them, or an address is unknown.
 */
int core_coll_join(struct core_ep *ep, struct core_coll_group *group, const fi_addr_t *members,
		   uint32_t cnt, uint64_t parent, bool managed);

/** Leaves it: what has not ended ends with FI_ECANCELED. */
void core_coll_leave(struct core_coll_group *group);

/** 0, -FI_ENOMEM, or why the group was given up. */
ssize_t core_coll_post(struct core_coll_group *group, const struct core_coll_args *args);

/** The place of an address in the group: 0 and *place, or -FI_EINVAL. */
int core_coll_rank_of(const struct core_coll_group *group, fi_addr_t addr, uint32_t *place);

/** A peer is lost, and about to be freed. */
void core_coll_fail_peer(struct core_peer *peer, int err);
void core_coll_forget_peer(struct core_peer *peer);

/** It ends for all members, who are told of it (`tell`): `err` from now on. */
void core_coll_give_up(struct core_coll_group *group, int err, bool tell);
/** NULL: this endpoint is in no group of that number. */
struct core_coll_group *core_coll_find(struct core_ep *ep, uint64_t id);

#endif
