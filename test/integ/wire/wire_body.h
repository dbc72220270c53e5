/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bodies that wire_packets sends: batches of messages, calls and replies. Each operation is in one
 * of them, made by copyrpc's own encoders. Fields have values whose bytes differ, so that a decoder
 * that reads a wrong one is found.
 */
#ifndef WIRE_BODY_H
#define WIRE_BODY_H

#include <stdint.h>

#define WIRE_BODY_MAX 4096u
#define SPREAD        0x0123456789ABCDEFull /* a number whose bytes differ */

/** Content of a request or response. */
struct wire_body {
	uint8_t bytes[WIRE_BODY_MAX];
	uint32_t len;
};

/** Begins a batch, in place of what the body had. */
void wire_body_begin(struct wire_body *body, uint32_t seq, uint32_t ack);
/** Adds a one-way message: tag and data by the flags of `word`, then `len` bytes. */
void wire_body_add_msg(struct wire_body *body, uint32_t word, const void *data, uint32_t len);
/** Adds a reply to call `id`. */
void wire_body_add_reply(struct wire_body *body, uint32_t id, const void *data, uint32_t len);

/** Fill a body with one-way messages, with calls, and with the replies to these calls. */
void wire_body_fill_messages(struct wire_body *body);
void wire_body_fill_calls(struct wire_body *body);
void wire_body_fill_replies(struct wire_body *body);

#endif
