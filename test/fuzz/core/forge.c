/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Forms of messages, calls and responses: see forge.h. */
#include "forge.h"

#include "wire/wire_op.h"

/**
 * Form of a body, field by field:
 *
 *   1 2 4 8  a small number in so many bytes
 *   0        three bytes: zero
 *   z Z      zeroes: four bytes, eight bytes
 *   X        four bytes: a status that has a meaning of its own
 *   e E      four and eight bytes of the last message of the endpoint, mostly ids and offsets
 *   k        eight bytes: the key of the region
 *   c        eight bytes: the group of collective operations
 *   a        eight bytes: an aligned address in the region
 *   n L      eight bytes: a length, the same one everywhere
 *   T C K t o  of an atomic operation: elements in all and here, kind, datatype, operation
 *   w        sixteen random bytes
 *   b        so many bytes as the length
 */
struct form {
	uint32_t op;
	const char *fields;
};

static const struct form msgs[] = {
	{ WIRE_OP_FAILBACK, "44" }, { WIRE_OP_MSG, "b" },     { WIRE_OP_PART, "8ezw" },
	{ WIRE_OP_PART, "nezb" },   { WIRE_OP_CONT, "EE" },   { WIRE_OP_CONT, "8e4w" },
	{ WIRE_OP_EXPOSE, "e4" },   { WIRE_OP_DONE, "e4ez" }, { WIRE_OP_TAGS, "22zwwZ" },
	{ WIRE_OP_TAGS, "22z" },
};

static const struct form calls[] = {
	{ WIRE_OP_CONT, "8e4w" },
	{ WIRE_OP_RNDV, "888ez" },
	{ WIRE_OP_RNDV, "n884z" },
	{ WIRE_OP_DLVR, "b" },
	{ WIRE_OP_WRITE, "aknZLb" },
	{ WIRE_OP_WRITE, "8kn8Lb" },
	{ WIRE_OP_READ, "aknZL" },
	{ WIRE_OP_READ, "8kn8L" },
	{ WIRE_OP_FETCH, "aknZL88" },
	{ WIRE_OP_EXPOSE, "aknZL" },
	{ WIRE_OP_LEASE, "k4z" },
	{ WIRE_OP_SYNC, "4b" },
	{ WIRE_OP_ATOMIC, "akzTCKto0w" },
	{ WIRE_OP_COLL, "c44LZ4zb" },
	{ WIRE_OP_RPC, "b" },
};

static const struct form responses[] = {
	{ 0, "44n" }, { 0, "z4E" }, { 0, "zzEw" },    { 0, "4z88z" }, { 0, "z4Znaa" },
	{ 0, "b" },   { 0, "44b" }, { 0, "XzE88ez" }, { 0, "X4n" },   { 0, "" },
};

uint64_t forge_group;

/** Where a body is being made. */
struct forge {
	struct script *script;
	const uint8_t *echo;
	struct forged *out;
	uint8_t len; /* of n, L and b; 0: not taken yet */
};

static void put(struct forge *f, const void *from, uint32_t len)
{
	if (f->out->len + len > FORGE_MAX)
		return;
	memcpy(f->out->body + f->out->len, from, len);
	f->out->len += len;
}

static void put_number(struct forge *f, uint64_t number, uint32_t len)
{
	put(f, &number, len);
}

static uint8_t length(struct forge *f)
{
	if (!f->len)
		f->len = (uint8_t)(script_take(f->script, 1) | 1);
	return f->len;
}

static void put_bytes(struct forge *f, uint32_t len)
{
	uint8_t bytes[256];

	script_bytes(f->script, bytes, len);
	put(f, bytes, len);
}

static void put_field(struct forge *f, char kind)
{
	struct script *s = f->script;

	switch (kind) {
	case 'z': put_number(f, 0, 4); break;
	case 'Z': put_number(f, 0, 8); break;
	case '0': put_number(f, 0, 3); break;
	case 'X': put_number(f, UINT32_MAX - (script_take(s, 1) & 1), 4); break;
	case 'e': put(f, f->echo + (script_take(s, 1) & 0x3c), 4); break;
	case 'E': put(f, f->echo + (script_take(s, 1) & 0x38), 8); break;
	case 'k': put_number(f, FORGE_KEY, 8); break;
	case 'c': put_number(f, forge_group, 8); break;
	case 'a': put_number(f, script_take(s, 1) & 0xf8, 8); break;
	case 'T': put_number(f, 16, 4); break;
	case 'C': put_number(f, 1u << (script_take(s, 1) & 7), 2); break;
	case 'K': put_number(f, script_take(s, 1) & 3, 1); break;
	case 't': put_number(f, script_take(s, 1) & 15, 1); break;
	case 'o': put_number(f, script_take(s, 1) & 31, 1); break;
	case 'n':
	case 'L': put_number(f, length(f), 8); break;
	case 'w': put_bytes(f, 16); break;
	case 'b': put_bytes(f, length(f)); break;
	default: put_number(f, script_take(s, 1), (uint32_t)(kind - '0')); break;
	}
}

/** Tag and remote CQ data, as the flags announce. */
static void put_ext(struct forge *f, uint32_t op)
{
	if (op & WIRE_F_TAG)
		put_number(f, script_take(f->script, 1) & 3, 8);
	if (op & WIRE_F_DATA32)
		put_number(f, script_take(f->script, 1), 4);
	if (op & WIRE_F_DATA64)
		put_number(f, script_take(f->script, 1), 8);
}

static void forge(struct forge *f, const struct form *form, uint32_t flags)
{
	f->out->op = form->op | flags;
	f->out->len = 0;
	if (form->op != WIRE_OP_RPC)
		put_ext(f, flags);
	for (const char *field = form->fields; *field; field++)
		put_field(f, *field);
}

static uint32_t take_flags(struct script *script)
{
	uint32_t b = (uint32_t)script_take(script, 1);

	return (b & 1 ? WIRE_F_TAG : 0) | (b & 2 ? b & 4 ? WIRE_F_DATA32 : WIRE_F_DATA64 : 0);
}

#define SELECT(script, forms)                                                                      \
	(&(forms)[script_take(script, 1) % (sizeof(forms) / sizeof((forms)[0]))])

void forge_msg(struct script *script, const uint8_t *echo, struct forged *out)
{
	struct forge f = { script, echo, out, 0 };
	const struct form *form = SELECT(script, msgs);

	forge(&f, form, take_flags(script));
}

void forge_call(struct script *script, const uint8_t *echo, struct forged *out)
{
	struct forge f = { script, echo, out, 0 };
	const struct form *form = SELECT(script, calls);
	bool is_rpc = form->op == WIRE_OP_RPC;

	forge(&f, form,
	      is_rpc ? wire_rpc_word((uint32_t)script_take(script, 1)) : take_flags(script));
}

void forge_response(struct script *script, const uint8_t *echo, struct forged *out)
{
	struct forge f = { script, echo, out, 0 };

	forge(&f, SELECT(script, responses), 0);
}
