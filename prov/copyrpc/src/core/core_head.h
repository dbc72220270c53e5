/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decoding of the operation word, tag and remote CQ data (wire/wire_op.h) that begin all messages
 * and calls except RPCs. Called by the up-calls before they pass a message to its handler.
 */
#ifndef CORE_CORE_HEAD_H
#define CORE_CORE_HEAD_H

#include <stdbool.h>
#include <stdint.h>

/** Decoded head of a message or call. */
struct core_head {
	uint32_t op;
	bool tagged;
	bool has_data;
	uint64_t tag;
	uint64_t data;
	const uint8_t *body; /* after tag and data */
	uint32_t body_len;
};

/** Decodes tag and data according to the flags in `op`. Returns false if the frame is malformed. */
bool core_head_parse(struct core_head *head, uint32_t op, const uint8_t *data, uint32_t len);

#endif
