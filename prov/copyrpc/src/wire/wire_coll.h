/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages between members of a collective group (docs/ring-protocol.md, section 3, "collective
 * operations").
 *
 * A call with the operation word WIRE_OP_COLL, without flags, and struct wire_coll. The response is
 * struct wire_coll_reply.
 *
 *   PUT    the bytes of member `from` for this operation follow. If none follow although
 *          len > 0, the receiver reads them with READ
 *   READ   member `from` reads `len` bytes at `off`, and stops when it has all; they follow the
 *          response
 *   ABORT  member `from` gave up the group with `status`
 *
 * In one operation a member has at most one message for each other member, so group, operation and
 * sender identify the message.
 */
#ifndef WIRE_WIRE_COLL_H
#define WIRE_WIRE_COLL_H

#include <assert.h>
#include <stdint.h>

enum wire_coll_what { WIRE_COLL_PUT = 1, WIRE_COLL_READ = 2, WIRE_COLL_ABORT = 3 };

struct wire_coll {
	uint64_t group;
	uint32_t seq;    /* number of the operation in the group */
	uint32_t from;   /* rank in the group: PUT, ABORT: of the sender; READ: of the reader */
	uint64_t len;    /* PUT: bytes of the message; READ: bytes of this piece */
	uint64_t off;    /* READ */
	uint32_t what;   /* enum wire_coll_what */
	uint32_t status; /* ABORT: a positive FI_E*; else 0 */
};

struct wire_coll_reply {
	uint32_t status; /* 0 or a positive FI_E* */
	uint32_t zero;
	uint64_t off; /* from the call */
};

static_assert(sizeof(struct wire_coll) == 40, "wire");
static_assert(sizeof(struct wire_coll_reply) == 16, "wire");

#endif
