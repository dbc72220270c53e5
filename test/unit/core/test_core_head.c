/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decoding of message heads. No bytes of a peer make the decoder read beyond them. The oracle is
 * wire_op.h.
 */
#include "core/core_head.h"

#include <criterion/criterion.h>
#include <string.h>

#include "unit/core/must.h"
#include "wire/wire_op.h"

static const uint8_t bytes[24] = { 1,    2,    3,    4,    5,    6,    7,    8,    0x11, 0x12,
				   0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24 };

#define TAG 0x0807060504030201ull

static bool is_legal(uint32_t op)
{
	bool both = (op & WIRE_F_DATA32) && (op & WIRE_F_DATA64);

	return !both && !(op & ~(uint32_t)(WIRE_OP_MASK | WIRE_F_MASK));
}

static uint32_t need_of(uint32_t op)
{
	return (op & WIRE_F_TAG ? 8 : 0) + (op & WIRE_F_DATA32 ? 4 : 0) +
	       (op & WIRE_F_DATA64 ? 8 : 0);
}

Test(core_head, a_head_is_legal_with_known_flags_and_all_fields)
{
	for (uint32_t op = 0; op < 0x400; op++) {
		for (uint32_t len = 0; len <= sizeof(bytes); len++) {
			struct core_head head;
			bool ok = core_head_parse(&head, op, bytes, len);

			MUST(ok == (is_legal(op) && len >= need_of(op)));
			if (!ok)
				continue;
			MUST(head.body == bytes + need_of(op));
			MUST(head.body_len == len - need_of(op));
			MUST(head.op == (op & WIRE_OP_MASK));
		}
	}
}

Test(core_head, each_unknown_bit_is_refused)
{
	for (unsigned bit = 7; bit < 32; bit++) {
		struct core_head head;

		MUST(!core_head_parse(&head, WIRE_OP_MSG | 1u << bit, bytes, sizeof(bytes)));
	}
}

Test(core_head, tag_and_data_are_little_endian_and_in_this_order)
{
	struct core_head head;

	cr_assert(core_head_parse(&head, WIRE_OP_MSG, bytes, 24));
	cr_assert(!head.tagged && !head.has_data && head.tag == 0 && head.data == 0);
	cr_assert(core_head_parse(&head, WIRE_OP_MSG | WIRE_F_TAG, bytes, 24));
	cr_assert(head.tagged && !head.has_data && head.tag == TAG && head.data == 0);
	cr_assert(core_head_parse(&head, WIRE_OP_MSG | WIRE_F_DATA32, bytes, 24));
	cr_assert(!head.tagged && head.has_data && head.data == (uint32_t)TAG);
	cr_assert(core_head_parse(&head, WIRE_OP_MSG | WIRE_F_TAG | WIRE_F_DATA32, bytes, 24));
	cr_assert(head.tag == TAG && head.data == 0x14131211);
	cr_assert(core_head_parse(&head, WIRE_OP_MSG | WIRE_F_TAG | WIRE_F_DATA64, bytes, 24));
	cr_assert(head.tag == TAG && head.data == 0x1817161514131211ull);
}
