/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What do members of a collective group say to each other? (docs/ring-protocol.md, section 3,
 * "collective operations")
 *
 * A call with the operation word WIRE_OP_COLL, without flags, and struct wire_coll. Its answer is struct
 * wire_coll_reply.
 *
 *   PUT    the bytes that `from` has for this operation follow, or, if there are none but len > 0,
 *          they can be read
 *   READ   asks `from`, no longer than until everything was read, for `len` bytes at `off`: they
 *          follow the reply
 *   ABORT  `from` has given the group up, with `status`
 *
 * In an operation a member has at most one message for each other member, so group, operation and
 * sender name it.
 */
#ifndef WIRE_COLL_H
#define WIRE_COLL_H

#include <assert.h>
#include <stdint.h>

enum wire_coll_what { WIRE_COLL_PUT = 1, WIRE_COLL_READ = 2, WIRE_COLL_ABORT = 3 };

struct wire_coll {
	uint64_t group;
	uint32_t seq;    /* of the operation in the group */
	uint32_t from;   /* PUT, ABORT: who says it; READ: who asks. A place in the group */
	uint64_t len;    /* PUT: of the message; READ: of this piece */
	uint64_t off;    /* READ */
	uint32_t what;   /* enum wire_coll_what */
	uint32_t status; /* ABORT: a positive FI_E*; else 0 */
};

struct wire_coll_reply {
	uint32_t status; /* 0 or a positive FI_E* */
	uint32_t zero;
	uint64_t off; /* as in the call */
};

static_assert(sizeof(struct wire_coll) == 40, "wire");
static_assert(sizeof(struct wire_coll_reply) == 16, "wire");

#endif
