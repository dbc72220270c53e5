/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What do the requests and responses of datagram sessions say? (docs/datagram-protocol.md, section 5)
 *
 *   BATCH    {seq, ack} frame...  messages, calls and answers in order; its response: {0, 0} frame...,
 *   REPLIES  {0, 0} frame...      answers that found no response to ride in; empty response
 *   GET      struct wire_erpc_get; the response is memory of who answers
 *
 *   frame = {len 24 | kind 8, word} (a call: {allowance, op}) bytes, zeroes up to a multiple of 8
 *
 * `len` counts the bytes; of a call they begin with its operation word, which the second half of the
 * call's own eight bytes holds. All little endian. Nothing here may be believed before it is checked:
 * wire_erpc_frame_next does. Pure.
 *
 * Shown by test/unit/wire/test_wire_erpc_msg.c.
 */
#ifndef WIRE_ERPC_MSG_H
#define WIRE_ERPC_MSG_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WIRE_ERPC_VERSION 1u

/** req_type of a request. */
enum wire_erpc_type {
	WIRE_ERPC_BATCH = 1,
	WIRE_ERPC_REPLIES = 2,
	WIRE_ERPC_GET = 3,
};

/** req_type of CR and RESP. */
enum wire_erpc_sent {
	WIRE_ERPC_PROMPT = 0, /* what it answers had just come */
	WIRE_ERPC_LATE = 1, /* it waited for somebody: its round trip says nothing of the network */
	WIRE_ERPC_REFUSED = 2, /* to GET: there is no such memory (any more); no bytes */
	WIRE_ERPC_AWAY = 3,    /* who answers had not looked for a while: it may have lain there */
	/* CR: it is missing; all before it are here, and others behind it. */
	WIRE_ERPC_GAP = 4,
	/*
	 * CR, to the last packet of a BATCH: it is here, and one before it is not: msg_size is the low 24
	 * bits of the seq of that.
	 */
	WIRE_ERPC_KEPT = 5,
};

struct wire_erpc_batch {
	uint32_t seq; /* of BATCH: one more than that of the batch before it */
	/* Of BATCH: all of the receiver's before this one need no answer any more; it was empty, or it came. */
	uint32_t ack;
};

enum wire_erpc_frame_kind {
	WIRE_ERPC_FRAME_MSG = 1,   /* word: operation */
	WIRE_ERPC_FRAME_CALL = 2,  /* word: the caller's name for the call */
	WIRE_ERPC_FRAME_REPLY = 3, /* word: the same */
};

#define WIRE_ERPC_FRAME_LEN   8u
#define WIRE_ERPC_CALL_LEN    12u /* of a call in front of its bytes, which begin with the operation */
#define WIRE_ERPC_FRAME_ALIGN 8u

struct wire_erpc_get {
	uint64_t addr;
	uint64_t key;
	uint32_t len;
	uint32_t zero;
};

/** An end's own bytes in the handshake. */
struct wire_erpc_params {
	uint32_t version;
	uint16_t session; /* its number here */
	uint16_t credits; /* packets that it may be sent and not have answered */
	uint64_t token;
	uint32_t mtu; /* bytes of the longest datagram; the lesser one of both ends counts */
	uint32_t zero;
};

static_assert(sizeof(struct wire_erpc_batch) == 8, "wire");
static_assert(sizeof(struct wire_erpc_get) == 24, "wire");
static_assert(sizeof(struct wire_erpc_params) == 24, "wire");

/** A frame that was read. */
struct wire_erpc_frame {
	enum wire_erpc_frame_kind kind;
	uint32_t word;
	uint32_t resp_max; /* CALL */
	uint32_t len;
	const uint8_t *data; /* of a CALL from its operation word on */
};

/** Bytes that a frame with `len` bytes takes, a call's operation word included in them. */
static inline uint32_t wire_erpc_frame_span(enum wire_erpc_frame_kind kind, uint32_t len)
{
	uint32_t head = kind == WIRE_ERPC_FRAME_CALL ? WIRE_ERPC_CALL_LEN : WIRE_ERPC_FRAME_LEN;

	return (head + len + WIRE_ERPC_FRAME_ALIGN - 1) & ~(WIRE_ERPC_FRAME_ALIGN - 1);
}

/** Writes the head of a frame and the zeroes behind its bytes: where the bytes belong. */
static inline uint8_t *wire_erpc_frame_put(uint8_t *at, enum wire_erpc_frame_kind kind,
					   uint32_t word, uint32_t resp_max, uint32_t len)
{
	uint64_t head = len | (uint32_t)kind << 24 | (uint64_t)word << 32, zero = 0;

	/* The bytes come afterwards: what the last eight hold of them is written then. */
	memcpy(at + wire_erpc_frame_span(kind, len) - sizeof(zero), &zero, sizeof(zero));
	memcpy(at, &head, sizeof(head));
	if (kind != WIRE_ERPC_FRAME_CALL)
		return at + WIRE_ERPC_FRAME_LEN;
	memcpy(at + WIRE_ERPC_FRAME_LEN, &resp_max, sizeof(resp_max));
	return at + WIRE_ERPC_CALL_LEN;
}

/**
 * The bytes of the frame at *at, which moves behind it, before `end`: NULL if it is none of that kind (MSG or
 * REPLY, a constant) that is whole, and nothing has moved: wire_erpc_frame_next says what it is.
 */
static inline const uint8_t *wire_erpc_plain_next(const uint8_t **at, const uint8_t *end,
						  enum wire_erpc_frame_kind kind, uint32_t *word,
						  uint32_t *len)
{
	const uint8_t *frame = *at;
	size_t rest = (size_t)(end - frame);
	uint64_t head;
	uint32_t span;

	if (rest < sizeof(head))
		return NULL;
	memcpy(&head, frame, sizeof(head));
	*word = (uint32_t)(head >> 32);
	*len = (uint32_t)head - ((uint32_t)kind << 24);
	span = wire_erpc_frame_span(kind, *len & 0xFFFFFF);
	if (*len > 0xFFFFFF || span > rest)
		return NULL;
	*at = frame + span;
	return frame + WIRE_ERPC_FRAME_LEN;
}

/** As wire_erpc_plain_next, for a call: from its operation word on. */
static inline const uint8_t *wire_erpc_call_next(const uint8_t **at, const uint8_t *end,
						 uint32_t *id, uint32_t *resp_max, uint32_t *len)
{
	const uint8_t *frame = *at;
	size_t rest = (size_t)(end - frame);
	uint64_t head;
	uint32_t span;

	if (rest < WIRE_ERPC_CALL_LEN)
		return NULL;
	memcpy(&head, frame, sizeof(head));
	*id = (uint32_t)(head >> 32);
	*len = (uint32_t)head - ((uint32_t)WIRE_ERPC_FRAME_CALL << 24);
	span = wire_erpc_frame_span(WIRE_ERPC_FRAME_CALL, *len & 0xFFFFFF);
	if (*len > 0xFFFFFF || *len < sizeof(uint32_t) || span > rest)
		return NULL;
	memcpy(resp_max, frame + WIRE_ERPC_FRAME_LEN, sizeof(*resp_max));
	*at = frame + span;
	return frame + WIRE_ERPC_CALL_LEN;
}

/** The frame at *at, before `end`, which moves behind it: false if there is none, or no legal one. */
static inline bool wire_erpc_frame_next(struct wire_erpc_frame *f, const uint8_t **at,
					const uint8_t *end)
{
	size_t rest = (size_t)(end - *at);
	uint64_t head;
	uint32_t span;

	if (rest < sizeof(head))
		return false;
	memcpy(&head, *at, sizeof(head));
	f->len = head & 0xFFFFFF;
	f->kind = (enum wire_erpc_frame_kind)(head >> 24 & 0xFF);
	f->word = (uint32_t)(head >> 32);
	span = wire_erpc_frame_span(f->kind, f->len);
	if (span > rest || f->kind < WIRE_ERPC_FRAME_MSG || f->kind > WIRE_ERPC_FRAME_REPLY)
		return false;
	f->data = *at + WIRE_ERPC_FRAME_LEN;
	f->resp_max = 0;
	if (f->kind == WIRE_ERPC_FRAME_CALL) {
		if (f->len < sizeof(uint32_t))
			return false;
		memcpy(&f->resp_max, f->data, sizeof(f->resp_max));
		f->data = *at + WIRE_ERPC_CALL_LEN;
	}
	*at += span;
	return true;
}

#endif
