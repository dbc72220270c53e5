/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints the fields of messages, calls and responses, as they stand on rings and in the batches of
 * sessions. Used by wire_decode_session.c.
 */
#ifndef WIRE_DECODE_MSG_H
#define WIRE_DECODE_MSG_H

#include <stdbool.h>
#include <stdint.h>

/** Prints an operation word and the extension that begins at `at`. */
void wire_decode_operation(uint32_t word, bool is_call, const uint8_t *at);

/** Prints the response to a call of this operation. */
void wire_decode_reply(uint32_t op, const uint8_t *at, uint32_t len);

#endif
