/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operation word of a message and the fields it announces (docs/ring-protocol.md, section 3,
 * "operations").
 *
 * A one-way message carries its operation word in the 31 bits of call_id; a call carries the word
 * in the first four bytes of its payload. Operation and flags select the extension fields, which
 * precede the user's bytes in this order:
 *
 *   31 30        8 7      4 3    0
 *   |R|  zero     | flags  |  op  |        R: response bit of call_id, never part of the word
 * 
 *   tag     u64   WIRE_F_TAG
 *   data    u32   WIRE_F_DATA32, or u64 with WIRE_F_DATA64 (remote CQ data; never both)
 *   (operation's own fields, see the structs below)
 *
 * An 8-byte tagged message with 32 bits of CQ data takes 12 + 8 + 4 + 8 = 32 bytes: one block. An
 * unknown operation or bit fails the connection.
 */
#ifndef WIRE_WIRE_OP_H
#define WIRE_WIRE_OP_H

#include <assert.h>
#include <stdint.h>

enum wire_op {
	WIRE_OP_FAILBACK = 0, /* one-way: the end of the connection, for a better one: struct
			      * wire_failback follows */
	WIRE_OP_MSG = 1,      /* whole message: matched, delivered */
	WIRE_OP_PART = 2,     /* first part of a message sent in parts: struct wire_part follows */
	WIRE_OP_CONT = 3,     /* later part: struct wire_cont, no tag, no data; the last part may be
			      * a call, and is after WIRE_STATUS_PULL */
	WIRE_OP_RNDV = 4,   /* call: announces a message for rendezvous: struct wire_rndv follows */
	WIRE_OP_DLVR = 5,   /* call: whole message; the response confirms its delivery */
	WIRE_OP_WRITE = 6,  /* call: remote write, with its bytes (wire_rma.h) */
	WIRE_OP_READ = 7,   /* call: remote read, bytes in the response */
	WIRE_OP_FETCH = 8,  /* call: remote write, the target gets the bytes */
	WIRE_OP_EXPOSE = 9, /* call: remote read, the target exposes the bytes; one-way: the
			      * reader has got them */
	WIRE_OP_ATOMIC =
		10,         /* call: atomic operation, old values in the response (wire_atomic.h) */
	WIRE_OP_COLL = 11,  /* call: collective operation (wire_coll.h) */
	WIRE_OP_RPC = 12,   /* call: user's request; no flags, the word carries the maximum
			      * response size instead: wire_rpc_word */
	WIRE_OP_LEASE = 13, /* call: requests the lease of a region, or revokes it (wire_rma.h) */
	WIRE_OP_SYNC = 14,  /* call: whole message, struct wire_sync before its bytes; the response
			      * confirms its match */
	WIRE_OP_TAGS = WIRE_OP_SYNC, /* one-way: contact for tag matching by devices: struct
				      * wire_tags, and a description behind HELLO */
	WIRE_OP_DONE = 15, /* one-way: end of a message after WIRE_STATUS_KEPT: struct wire_done */
	WIRE_OP_LAST = WIRE_OP_DONE,
};

#define WIRE_OP_MASK    0x0000000Fu
#define WIRE_F_TAG      0x00000010u
#define WIRE_F_DATA32   0x00000020u
#define WIRE_F_DATA64   0x00000040u
#define WIRE_F_MASK     0x00000070u
#define WIRE_OP_UNKNOWN (~(WIRE_OP_MASK | WIRE_F_MASK))

/*
 * Word of WIRE_OP_RPC. Carries the exact maximum response size, which a ring rounds up to its
 * blocks.
 *
 *   31 30                8 7      4 3    0
 *   |0|  resp_max (bytes)  |  zero  |  op  |
 */
#define WIRE_RPC_RESP_MAX 0x007FFFFFu
#define WIRE_RPC_UNKNOWN  0x800000F0u

static inline uint32_t wire_rpc_word(uint32_t resp_max)
{
	return WIRE_OP_RPC | resp_max << 8;
}

static inline uint32_t wire_rpc_resp_max(uint32_t word)
{
	return word >> 8 & WIRE_RPC_RESP_MAX;
}

/** WIRE_OP_PART: follows tag and data, precedes the first bytes of the message. */
struct wire_part {
	uint64_t total_len; /* of the whole message */
	uint32_t send_id;   /* identifies the message in CONT parts; unique while it is in flight */
	uint32_t zero;
};

/** WIRE_OP_CONT: the bytes from `offset` on. Parts arrive in order; offset is a check. */
struct wire_cont {
	uint64_t offset;
	uint32_t id;   /* send_id of the PART, or recv_id of the response with WIRE_STATUS_PULL */
	uint32_t kind; /* enum wire_cont_kind */
};

enum wire_cont_kind {
	WIRE_CONT_SENT = 0,   /* id is a send_id */
	WIRE_CONT_PULLED = 1, /* id is a recv_id */
};

/** WIRE_OP_RNDV: location of the bytes. The response is struct wire_status. */
struct wire_rndv {
	uint64_t total_len;
	uint64_t addr; /* in the sender's address space, for the device's get; 0: send in parts */
	uint64_t key;  /* the device's rkey; 0 if the device needs none */
	uint32_t send_id; /* identifies the message in DONE; unique while it is in flight */
	uint32_t zero;
};

/** WIRE_OP_SYNC: follows tag and data, precedes the bytes. The response is struct wire_status. */
struct wire_sync {
	uint32_t send_id; /* identifies the message in DONE; unique while it is in flight */
};

/** Response to RNDV, DLVR, SYNC and a CONT that is a call. */
struct wire_status {
	uint32_t status;  /* 0: delivered; a positive FI_E*; WIRE_STATUS_PULL, to RNDV only; or
			   * WIRE_STATUS_KEPT, to RNDV and SYNC only */
	uint32_t recv_id; /* WIRE_STATUS_PULL: identifies the message in CONT parts; else a hint */
	uint64_t len;     /* bytes of the message */
};

/** WIRE_OP_DONE: what the response would have been, had a receive been posted. */
struct wire_done {
	uint32_t send_id; /* of the RNDV or SYNC */
	uint32_t status;  /* see struct wire_status; not WIRE_STATUS_KEPT */
	uint32_t recv_id; /* likewise */
	uint32_t zero;
};

/** WIRE_OP_TAGS: see core/msg/core_offload.h. */
struct wire_tags {
	uint16_t kind; /* enum wire_tags_kind */
	uint16_t id;   /* of the receiver of this message, in the tags of its requests */
	uint32_t zero;
};

enum wire_tags_kind {
	WIRE_TAGS_HELLO = 1, /* queue pairs of the sender's list follow */
	WIRE_TAGS_READY = 2, /* the sender is connected to those of the receiver */
};

/** WIRE_OP_FAILBACK: see core/core_failback.h. */
struct wire_failback {
	uint32_t kind;  /* enum wire_failback_kind */
	uint32_t paths; /* ASK: those that the sender can use again, WIRE_FAILBACK_*; else 0 */
};

/* Reasons beside paths, both for rings of another size */
#define WIRE_FAILBACK_ROOM  0x40000000u /* the ring of the receiver limits the sender */
#define WIRE_FAILBACK_QUIET 0x80000000u /* the sender is short of memory, and the rings are idle */

enum wire_failback_kind {
	WIRE_FAILBACK_ASK = 1,   /* the sender is idle, and proposes the end */
	WIRE_FAILBACK_YES = 2,   /* the sender is idle: the other end closes the connection */
	WIRE_FAILBACK_NO = 3,    /* the sender has none of these paths */
	WIRE_FAILBACK_LATER = 4, /* the sender does not become idle, or has no memory now */
};

#define WIRE_STATUS_PULL 0xFFFFFFFFu /* the receiver cannot get the bytes: send in parts */
#define WIRE_STATUS_KEPT 0xFFFFFFFEu /* no receive matches yet: a DONE follows */
#define WIRE_HINT_LATE   1u          /* no receive was posted when the message arrived */

static_assert(sizeof(struct wire_part) == 16, "wire");
static_assert(sizeof(struct wire_cont) == 16, "wire");
static_assert(sizeof(struct wire_rndv) == 32, "wire");
static_assert(sizeof(struct wire_sync) == 4, "wire");
static_assert(sizeof(struct wire_status) == 16, "wire");
static_assert(sizeof(struct wire_done) == 16, "wire");
static_assert(sizeof(struct wire_failback) == 8, "wire");
static_assert(sizeof(struct wire_tags) == 8, "wire");

/** Returns the bytes of tag and CQ data that the flags of an operation word announce. */
static inline uint32_t wire_ext_len(uint32_t op)
{
	/* One byte for each combination of the flags: none, T, D32, T D32, D64, T D64, (both). */
	const uint64_t lens = 0x140C10080C040800;

	return (lens >> (op >> 1 & 0x38)) & 0xFF;
}

#endif
