/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contents of the requests and responses of sessions (docs/datagram-protocol.md, section 5).
 *
 *   BATCH    {seq, ack} frame...  messages, calls, responses in order; response: {0, 0} frame...
 *   REPLIES  {0, 0} frame...      responses that no other packet carries; empty response
 *   GET      struct wire_erpc_get; the response is memory of the peer
 * 
 *   frame = {len 24 | kind 8, word} (a call: {resp_max, op}) bytes, zeros up to a multiple of 8
 *
 * `len` counts the bytes. In a call they begin with its operation word, the second half of the
 * call's own eight bytes. All fields are little endian. wire_erpc_frame_next checks all of them.
 * Pure.
 */
#ifndef WIRE_WIRE_ERPC_MSG_H
#define WIRE_WIRE_ERPC_MSG_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WIRE_ERPC_VERSION 3u

/** req_type of a request. */
enum wire_erpc_type {
	WIRE_ERPC_BATCH = 1,
	WIRE_ERPC_REPLIES = 2,
	WIRE_ERPC_GET = 3,
};

/** req_type of CR and RESP. */
enum wire_erpc_sent {
	WIRE_ERPC_PROMPT = 0, /* sent at once: its time measures the network */
	WIRE_ERPC_LATE =
		1, /* sent after a wait: its round-trip time does not measure the network */
	WIRE_ERPC_REFUSED = 2, /* response to GET: no such memory; no bytes */
	WIRE_ERPC_AWAY = 3, /* the server had not polled for a while: the request may have waited */
	WIRE_ERPC_GAP = 4, /* CR: this packet is missing, all before it and some after it arrived */
	/*
	 * CR for the last packet of a BATCH that arrived before an older batch. msg_size is the low
	 * 24 bits of the older batch's seq.
	 */
	WIRE_ERPC_KEPT = 5,
};

struct wire_erpc_batch {
	uint32_t seq; /* of BATCH: counts batches */
	/* of BATCH: the receiver's batches before this number need no response any more. */
	uint32_t ack;
};

enum wire_erpc_frame_kind {
	WIRE_ERPC_FRAME_MSG = 1,   /* word: operation */
	WIRE_ERPC_FRAME_CALL = 2,  /* word: id of the call */
	WIRE_ERPC_FRAME_REPLY = 3, /* word: id of the call */
};

#define WIRE_ERPC_FRAME_LEN   8u
#define WIRE_ERPC_CALL_LEN    12u
#define WIRE_ERPC_FRAME_ALIGN 8u

struct wire_erpc_get {
	uint64_t addr;
	uint64_t key;
	uint32_t len;
	uint32_t more; /* parts of the response that follow the first without an RFR */
};

/** Connection parameters of one end, sent in the handshake. */
struct wire_erpc_params {
	uint32_t version;
	uint16_t session; /* session number at the sender of these parameters */
	uint16_t credits; /* packets that may be in flight to this end, unacknowledged */
	uint64_t token;
	uint32_t mtu; /* longest datagram in bytes; both ends use the smaller value */
	uint32_t zero;
};

static_assert(sizeof(struct wire_erpc_batch) == 8, "wire");
static_assert(sizeof(struct wire_erpc_get) == 24, "wire");
static_assert(sizeof(struct wire_erpc_params) == 24, "wire");

/** Decoded frame. */
struct wire_erpc_frame {
	enum wire_erpc_frame_kind kind;
	uint32_t word;
	uint32_t resp_max; /* CALL */
	uint32_t len;
	const uint8_t *data; /* in a CALL including the operation word */
};

/** Returns the bytes of a frame with `len` bytes; in a call `len` includes the operation word. */
static inline uint32_t wire_erpc_frame_span(enum wire_erpc_frame_kind kind, uint32_t len)
{
	uint32_t head = kind == WIRE_ERPC_FRAME_CALL ? WIRE_ERPC_CALL_LEN : WIRE_ERPC_FRAME_LEN;

	return (head + len + WIRE_ERPC_FRAME_ALIGN - 1) & ~(WIRE_ERPC_FRAME_ALIGN - 1);
}

/** Writes the head of a frame and its trailing zeros. Returns the address for its bytes. */
static inline uint8_t *wire_erpc_frame_put(uint8_t *at, enum wire_erpc_frame_kind kind,
					   uint32_t word, uint32_t resp_max, uint32_t len)
{
	uint64_t head = len | (uint32_t)kind << 24 | (uint64_t)word << 32, zero = 0;

	/* The bytes are written afterwards and overwrite part of these eight. */
	memcpy(at + wire_erpc_frame_span(kind, len) - sizeof(zero), &zero, sizeof(zero));
	memcpy(at, &head, sizeof(head));
	if (kind != WIRE_ERPC_FRAME_CALL)
		return at + WIRE_ERPC_FRAME_LEN;
	memcpy(at + WIRE_ERPC_FRAME_LEN, &resp_max, sizeof(resp_max));
	return at + WIRE_ERPC_CALL_LEN;
}

/**
 * Returns the bytes of the frame at *at, before `end`, and moves *at behind it. Returns NULL, with
 * *at unchanged, if the frame is incomplete or not of `kind` (MSG or REPLY, a constant); then
 * wire_erpc_frame_next decodes it.
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

/** Reads a call like wire_erpc_plain_next. Returns its bytes from the operation word on. */
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

/**
 * Decodes the frame at *at, before `end`, and moves *at behind it. Returns false if there is none.
 */
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
