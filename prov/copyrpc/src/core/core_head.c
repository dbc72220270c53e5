/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Decoding of the head of a message or call. See core_head.h. */
#include "core/core_head.h"

#include <string.h>

#include "wire/wire_op.h"

bool core_head_parse(struct core_head *head, uint32_t op, const uint8_t *data, uint32_t len)
{
	uint32_t ext_len = wire_ext_len(op);

	if ((op & WIRE_OP_UNKNOWN) || len < ext_len ||
	    (op & (WIRE_F_DATA32 | WIRE_F_DATA64)) == (WIRE_F_DATA32 | WIRE_F_DATA64))
		return false;
	head->op = op & WIRE_OP_MASK;
	head->tagged = op & WIRE_F_TAG;
	head->has_data = op & (WIRE_F_DATA32 | WIRE_F_DATA64);
	head->tag = 0;
	head->data = 0;
	head->body = data + ext_len;
	head->body_len = len - ext_len;
	if (head->tagged) {
		memcpy(&head->tag, data, sizeof(head->tag));
		data += sizeof(head->tag);
	}
	if (op & WIRE_F_DATA32)
		memcpy(&head->data, data, 4);
	else if (op & WIRE_F_DATA64)
		memcpy(&head->data, data, 8);
	return true;
}
