/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bytes of frames; decoding never reads beyond their end. */
#include "wire/wire_erpc_msg.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "support/rng.h"

Test(wire_erpc_msg, frames_have_these_bytes)
{
	static const uint8_t msg[] = { 3,   0,   0,   1, 0x44, 0x33, 0x22, 0x11,
				       'a', 'b', 'c', 0, 0,    0,    0,    0 };
	static const uint8_t call[] = { 5,  0, 0, 2, 9,   0, 0, 0, 0xE8, 3, 0, 0,
					12, 0, 0, 0, 'x', 0, 0, 0, 0,    0, 0, 0 };
	uint8_t buf[24];
	uint32_t op = 12;

	memset(buf, 0xFF, sizeof(buf));
	memcpy(wire_erpc_frame_put(buf, WIRE_ERPC_FRAME_MSG, 0x11223344, 0, 3), "abc", 3);
	cr_expect_arr_eq(buf, msg, sizeof(msg));
	cr_expect_eq(wire_erpc_frame_span(WIRE_ERPC_FRAME_MSG, 3), sizeof(msg));

	memset(buf, 0xFF, sizeof(buf));
	memcpy(wire_erpc_frame_put(buf, WIRE_ERPC_FRAME_CALL, 9, 1000, 5), &op, sizeof(op));
	buf[16] = 'x';
	cr_expect_arr_eq(buf, call, sizeof(call));
	cr_expect_eq(wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, 5), sizeof(call));
}

Test(wire_erpc_msg, a_batch_head_has_these_bytes)
{
	static const uint8_t bytes[] = { 4, 3, 2, 1, 8, 7, 6, 5 };
	struct wire_erpc_batch head = { .seq = 0x01020304, .ack = 0x05060708 };

	cr_expect_arr_eq(&head, bytes, sizeof(bytes));
}

Test(wire_erpc_msg, a_written_frame_is_read_back)
{
	struct rng rng = { 5 };
	unsigned i;

	for (i = 0; i < 2000; i++) {
		enum wire_erpc_frame_kind kind =
			(enum wire_erpc_frame_kind)(1 + rng_below(&rng, 3));
		uint32_t least = kind == WIRE_ERPC_FRAME_CALL ? 4 : 0;
		uint32_t len = least + (uint32_t)rng_below(&rng, 40),
			 word = (uint32_t)rng_next(&rng);
		uint32_t span = wire_erpc_frame_span(kind, len), resp_max = i;
		uint8_t *buf = malloc(span), *bytes;
		const uint8_t *at = buf;
		struct wire_erpc_frame f;

		bytes = wire_erpc_frame_put(buf, kind, word, resp_max, len);
		memset(bytes, 7, len);
		cr_assert_eq(span % WIRE_ERPC_FRAME_ALIGN, 0);
		cr_assert(wire_erpc_frame_next(&f, &at, buf + span));
		cr_assert_eq(at, buf + span);
		cr_assert_eq(f.kind, kind);
		cr_assert_eq(f.word, word);
		cr_assert_eq(f.len, len);
		cr_assert_eq(f.data, bytes);
		cr_assert_eq(f.resp_max, kind == WIRE_ERPC_FRAME_CALL ? resp_max : 0);
		at = buf;
		cr_assert_not(wire_erpc_frame_next(&f, &at, buf + span - 1), "cut off");
		free(buf);
	}
}

Test(wire_erpc_msg, random_bytes_are_never_read_beyond_their_end)
{
	struct rng rng = { 6 };
	unsigned i, k;

	for (i = 0; i < 20000; i++) {
		uint32_t len = (uint32_t)rng_below(&rng, 64);
		uint8_t *buf = malloc(len + 1);
		const uint8_t *at = buf, *before;
		struct wire_erpc_frame f;

		for (k = 0; k < len; k++)
			buf[k] = (uint8_t)(rng_chance(&rng, 1, 2) ? rng_below(&rng, 4)
								  : rng_next(&rng));
		for (before = at; wire_erpc_frame_next(&f, &at, buf + len); before = at) {
			cr_assert_gt(at, before);
			cr_assert_leq(at, buf + len);
			cr_assert_leq(f.data + f.len, at);
		}
		free(buf);
	}
}

/* Decodes a frame with the fast function for its kind. */
static const uint8_t *next(const uint8_t **at, const uint8_t *end, enum wire_erpc_frame_kind kind,
			   uint32_t *word, uint32_t *resp_max, uint32_t *len)
{
	*resp_max = 0;
	if (kind == WIRE_ERPC_FRAME_CALL)
		return wire_erpc_call_next(at, end, word, resp_max, len);
	return wire_erpc_plain_next(at, end, kind, word, len);
}

/* Checks that the fast function agrees with wire_erpc_frame_next on its kind and refuses others. */
static void plain_is_read_as_any(enum wire_erpc_frame_kind kind)
{
	struct rng rng = { 11 };
	unsigned i, msgs = 0;

	for (i = 0; i < 20000; i++) {
		uint32_t span = 8 * (1 + (uint32_t)rng_below(&rng, 6)), op, len;
		uint32_t resp_max;
		uint8_t *buf = malloc(span);
		const uint8_t *at = buf, *other = buf, *data;
		struct wire_erpc_frame f;
		uint64_t head =
			rng_below(&rng, 8 * span) | rng_below(&rng, 5) << 24 | rng_next(&rng) << 32;
		bool any;

		memset(buf, 0, span);
		memcpy(buf, &head, sizeof(head));
		data = next(&at, buf + span, kind, &op, &resp_max, &len);
		any = wire_erpc_frame_next(&f, &other, buf + span);
		cr_assert_eq(data != NULL, any && f.kind == kind);
		cr_assert_eq(at, data ? other : buf);
		if (data)
			cr_assert(data == f.data && op == f.word && len == f.len &&
				  resp_max == f.resp_max);
		msgs += data != NULL;
		free(buf);
	}
	cr_assert_gt(msgs,
		     kind == WIRE_ERPC_FRAME_CALL ? 100 : 200); /* calls are longer, so fewer fit */
	cr_assert_lt(msgs, 19000);
}

Test(wire_erpc_msg, the_fast_function_decodes_messages_and_responses)
{
	plain_is_read_as_any(WIRE_ERPC_FRAME_MSG);
	plain_is_read_as_any(WIRE_ERPC_FRAME_REPLY);
}

Test(wire_erpc_msg, the_fast_function_decodes_calls)
{
	plain_is_read_as_any(WIRE_ERPC_FRAME_CALL);
}
