/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fields of messages, calls and responses: see wire_decode_msg.h. */
#include "wire_decode_msg.h"

#include <stddef.h>
#include <string.h>

#include "wire/wire_atomic.h"
#include "wire/wire_coll.h"
#include "wire/wire_le.h"
#include "wire/wire_op.h"
#include "wire/wire_rma.h"
#include "wire_show.h"

/** Member of a structure. A list of them ends with a name of NULL. */
struct field {
	const char *name;
	size_t offset;
	size_t len;
	bool is_bytes; /* no number */
};

#define MEMBER(type, group, member, is_bytes)                                                      \
	{                                                                                          \
		group "." #member, offsetof(struct type, member),                                  \
			sizeof(((struct type *)NULL)->member), is_bytes                            \
	}
#define FIELD(type, group, member) MEMBER(type, group, member, false)
#define BYTES(type, group, member) MEMBER(type, group, member, true)

static void show_fields(const struct field *f, const uint8_t *at)
{
	uint64_t value;

	for (; f->name; f++) {
		value = 0;
		if (f->is_bytes) {
			wire_show_bytes(f->name, at + f->offset, f->len);
			continue;
		}
		memcpy(&value, at + f->offset, f->len); /* both are little-endian */
		wire_show(f->name, value);
	}
}

/* Messages and calls */

static const struct field part_fields[] = {
	FIELD(wire_part, "part", total_len),
	FIELD(wire_part, "part", send_id),
	FIELD(wire_part, "part", zero),
	{ 0 },
};

static const struct field cont_fields[] = {
	FIELD(wire_cont, "cont", offset),
	FIELD(wire_cont, "cont", id),
	FIELD(wire_cont, "cont", kind),
	{ 0 },
};

static const struct field rndv_fields[] = {
	FIELD(wire_rndv, "rndv", total_len), FIELD(wire_rndv, "rndv", addr),
	FIELD(wire_rndv, "rndv", key),       FIELD(wire_rndv, "rndv", send_id),
	FIELD(wire_rndv, "rndv", zero),      { 0 },
};

static const struct field sync_fields[] = {
	FIELD(wire_sync, "sync", send_id),
	{ 0 },
};

static const struct field done_fields[] = {
	FIELD(wire_done, "done", send_id),
	FIELD(wire_done, "done", status),
	FIELD(wire_done, "done", recv_id),
	FIELD(wire_done, "done", zero),
	{ 0 },
};

static const struct field failback_fields[] = {
	FIELD(wire_failback, "failback", kind),
	FIELD(wire_failback, "failback", paths),
	{ 0 },
};

static const struct field access_fields[] = {
	FIELD(wire_rma, "access", addr),  FIELD(wire_rma, "access", key),
	FIELD(wire_rma, "access", len),   FIELD(wire_rma, "access", offset),
	FIELD(wire_rma, "access", total), { 0 },
};

static const struct field fetch_fields[] = {
	FIELD(wire_rma_source, "fetch", addr),
	FIELD(wire_rma_source, "fetch", key),
	{ 0 },
};

static const struct field expose_fields[] = {
	FIELD(wire_rma_return, "expose", exposure_id),
	FIELD(wire_rma_return, "expose", status),
	{ 0 },
};

static const struct field tags_fields[] = {
	FIELD(wire_tags, "tags", kind),
	FIELD(wire_tags, "tags", id),
	FIELD(wire_tags, "tags", zero),
	{ 0 },
};

static const struct field atomic_fields[] = {
	FIELD(wire_atomic, "atomic", addr),  FIELD(wire_atomic, "atomic", key),
	FIELD(wire_atomic, "atomic", first), FIELD(wire_atomic, "atomic", total),
	FIELD(wire_atomic, "atomic", count), FIELD(wire_atomic, "atomic", kind),
	FIELD(wire_atomic, "atomic", type),  FIELD(wire_atomic, "atomic", op),
	BYTES(wire_atomic, "atomic", zero),  { 0 },
};

static const struct field coll_fields[] = {
	FIELD(wire_coll, "coll", group),  FIELD(wire_coll, "coll", seq),
	FIELD(wire_coll, "coll", from),   FIELD(wire_coll, "coll", len),
	FIELD(wire_coll, "coll", off),    FIELD(wire_coll, "coll", what),
	FIELD(wire_coll, "coll", status), { 0 },
};

static const struct field lease_fields[] = {
	FIELD(wire_lease_call, "lease", key),
	FIELD(wire_lease_call, "lease", kind),
	FIELD(wire_lease_call, "lease", zero),
	{ 0 },
};

/** Fields behind tag and data. Operations without an entry have none of their own. */
static const struct field *const own_fields[WIRE_OP_MASK + 1] = {
	[WIRE_OP_PART] = part_fields,         [WIRE_OP_CONT] = cont_fields,
	[WIRE_OP_RNDV] = rndv_fields,         [WIRE_OP_SYNC] = sync_fields,
	[WIRE_OP_DONE] = done_fields,         [WIRE_OP_WRITE] = access_fields,
	[WIRE_OP_READ] = access_fields,       [WIRE_OP_FETCH] = access_fields,
	[WIRE_OP_EXPOSE] = access_fields,     [WIRE_OP_ATOMIC] = atomic_fields,
	[WIRE_OP_COLL] = coll_fields,         [WIRE_OP_LEASE] = lease_fields,
	[WIRE_OP_FAILBACK] = failback_fields,
};

/** Prints the operation's own fields, behind tag and data. */
static void decode_own_fields(uint32_t op, bool is_call, const uint8_t *at)
{
	const struct field *fields = own_fields[op];

	if (op == WIRE_OP_EXPOSE && !is_call)
		fields = expose_fields;
	if (op == WIRE_OP_TAGS && !is_call)
		fields = tags_fields;
	if (fields)
		show_fields(fields, at);
	if (op == WIRE_OP_FETCH)
		show_fields(fetch_fields, at + sizeof(struct wire_rma));
}

void wire_decode_operation(uint32_t word, bool is_call, const uint8_t *at)
{
	uint32_t op = word & WIRE_OP_MASK;

	if (op == WIRE_OP_RPC) {
		wire_show("rpc.operation", op);
		wire_show("rpc.flags", word >> 4 & 0xF);
		wire_show("rpc.resp_max", wire_rpc_resp_max(word));
		wire_show("rpc.zero", word >> 31);
		return;
	}
	wire_show("operation.operation", op);
	wire_show("operation.flags", word >> 4 & 7);
	wire_show("operation.zero", word >> 7);
	wire_show("flags.tag", !!(word & WIRE_F_TAG));
	wire_show("flags.data32", !!(word & WIRE_F_DATA32));
	wire_show("flags.data64", !!(word & WIRE_F_DATA64));
	if (word & WIRE_F_TAG) {
		wire_show("operation.tag", wire_get64(at));
		at += 8;
	}
	if (word & WIRE_F_DATA32) {
		wire_show("operation.data32", wire_get32(at));
		at += 4;
	} else if (word & WIRE_F_DATA64) {
		wire_show("operation.data64", wire_get64(at));
		at += 8;
	}
	decode_own_fields(op, is_call, at);
}

/* Responses */

static const struct field status_fields[] = {
	FIELD(wire_status, "status", status),
	FIELD(wire_status, "status", recv_id),
	FIELD(wire_status, "status", len),
	{ 0 },
};

static const struct field access_reply_fields[] = {
	FIELD(wire_rma_reply, "access_response", status),
	FIELD(wire_rma_reply, "access_response", zero),
	FIELD(wire_rma_reply, "access_response", offset),
	{ 0 },
};

static const struct field exposure_fields[] = {
	FIELD(wire_rma_exposure, "exposure", addr),
	FIELD(wire_rma_exposure, "exposure", key),
	FIELD(wire_rma_exposure, "exposure", exposure_id),
	FIELD(wire_rma_exposure, "exposure", zero),
	{ 0 },
};

static const struct field atomic_reply_fields[] = {
	FIELD(wire_atomic_reply, "atomic_response", status),
	FIELD(wire_atomic_reply, "atomic_response", first),
	{ 0 },
};

static const struct field coll_reply_fields[] = {
	FIELD(wire_coll_reply, "coll_response", status),
	FIELD(wire_coll_reply, "coll_response", zero),
	FIELD(wire_coll_reply, "coll_response", off),
	{ 0 },
};

static const struct field lease_reply_fields[] = {
	FIELD(wire_lease, "lease_response", status),
	FIELD(wire_lease, "lease_response", rights),
	FIELD(wire_lease, "lease_response", base),
	FIELD(wire_lease, "lease_response", len),
	FIELD(wire_lease, "lease_response", addr),
	FIELD(wire_lease, "lease_response", rkey),
	{ 0 },
};

/** First fields of a response. Operations without an entry have no response, or the user's. */
static const struct field *const reply_fields[WIRE_OP_MASK + 1] = {
	[WIRE_OP_RNDV] = status_fields,         [WIRE_OP_DLVR] = status_fields,
	[WIRE_OP_SYNC] = status_fields,         [WIRE_OP_CONT] = status_fields,
	[WIRE_OP_WRITE] = access_reply_fields,  [WIRE_OP_READ] = access_reply_fields,
	[WIRE_OP_FETCH] = access_reply_fields,  [WIRE_OP_EXPOSE] = access_reply_fields,
	[WIRE_OP_ATOMIC] = atomic_reply_fields, [WIRE_OP_COLL] = coll_reply_fields,
	[WIRE_OP_LEASE] = lease_reply_fields,
};

void wire_decode_reply(uint32_t op, const uint8_t *at, uint32_t len)
{
	if (!reply_fields[op] || (op == WIRE_OP_LEASE && !len))
		return;
	show_fields(reply_fields[op], at);
	if (op == WIRE_OP_EXPOSE && wire_get32(at) == WIRE_RMA_EXPOSED)
		show_fields(exposure_fields, at + sizeof(struct wire_rma_reply));
}
