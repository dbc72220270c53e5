/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bodies of requests and responses: see wire_body.h. */
#include "wire_body.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "wire/wire_atomic.h"
#include "wire/wire_coll.h"
#include "wire/wire_erpc_msg.h"
#include "wire/wire_le.h"
#include "wire/wire_op.h"
#include "wire/wire_rma.h"
#include "wire_pcap.h"

void wire_body_begin(struct wire_body *body, uint32_t seq, uint32_t ack)
{
	const struct wire_erpc_batch head = { .seq = seq, .ack = ack };

	memcpy(body->bytes, &head, sizeof(head));
	body->len = sizeof(head);
}

static void add_frame(struct wire_body *body, enum wire_erpc_frame_kind kind, uint32_t word,
		      uint32_t resp_max, const void *data, uint32_t len)
{
	uint8_t *at = wire_erpc_frame_put(body->bytes + body->len, kind, word, resp_max, len);

	memcpy(at, data, len);
	body->len += wire_erpc_frame_span(kind, len);
	wire_pcap_check(body->len < WIRE_BODY_MAX, "a body that is too long");
}

void wire_body_add_msg(struct wire_body *body, uint32_t word, const void *data, uint32_t len)
{
	uint8_t bytes[512];
	uint32_t ext = wire_ext_len(word);

	for (uint32_t i = 0; i < ext; i++)
		bytes[i] = (uint8_t)(0x10 + i);
	memcpy(bytes + ext, data, len);
	add_frame(body, WIRE_ERPC_FRAME_MSG, word, 0, bytes, ext + len);
}

static void add_call(struct wire_body *body, uint32_t id, uint32_t word, const void *data,
		     uint32_t len)
{
	uint8_t bytes[512];
	uint32_t ext = (word & WIRE_OP_MASK) == WIRE_OP_RPC ? 0 : wire_ext_len(word);

	wire_put32(bytes, word);
	for (uint32_t i = 0; i < ext; i++)
		bytes[4 + i] = (uint8_t)(0x20 + i);
	memcpy(bytes + 4 + ext, data, len);
	add_frame(body, WIRE_ERPC_FRAME_CALL, id, 0x1000 + id, bytes, 4 + ext + len);
}

void wire_body_add_reply(struct wire_body *body, uint32_t id, const void *data, uint32_t len)
{
	add_frame(body, WIRE_ERPC_FRAME_REPLY, id, 0, data, len);
}

void wire_body_fill_messages(struct wire_body *body)
{
	const struct wire_part part = { .total_len = SPREAD, .send_id = 0x81828384 };
	const struct wire_cont cont = { .offset = SPREAD,
					.id = 0x81828384,
					.kind = WIRE_CONT_PULLED };
	const struct wire_rma_return end = { .exposure_id = 0x71727374, .status = FI_EIO };
	const struct wire_done done = { 0xB1B2B3B4, WIRE_STATUS_PULL, 0xC1C2C3C4, 0 };
	const struct wire_tags tags = { WIRE_TAGS_HELLO, 0x2122, 0 };
	const struct wire_failback failback = { WIRE_FAILBACK_ASK, 0xD1D2D3D4 };

	wire_body_begin(body, 0x01020304, 0x11121314);
	wire_body_add_msg(body, WIRE_OP_MSG, "plain", 5);
	wire_body_add_msg(body, WIRE_OP_MSG | WIRE_F_TAG, "tagged", 6);
	wire_body_add_msg(body, WIRE_OP_MSG | WIRE_F_TAG | WIRE_F_DATA32, "with data", 9);
	wire_body_add_msg(body, WIRE_OP_MSG | WIRE_F_DATA64, "", 0);
	wire_body_add_msg(body, WIRE_OP_PART | WIRE_F_TAG, &part, sizeof(part));
	wire_body_add_msg(body, WIRE_OP_CONT, &cont, sizeof(cont));
	wire_body_add_msg(body, WIRE_OP_EXPOSE, &end, sizeof(end));
	wire_body_add_msg(body, WIRE_OP_DONE, &done, sizeof(done));
	wire_body_add_msg(body, WIRE_OP_TAGS, &tags, sizeof(tags));
	wire_body_add_msg(body, WIRE_OP_FAILBACK, &failback, sizeof(failback));
}

/** Call ids of wire_body_fill_calls: the operation, and more where one has several responses. */
enum call {
	CALL_REFUSED = 20, /* EXPOSE without an exposure */
	CALL_REVOKE = 21,
};

void wire_body_fill_calls(struct wire_body *body)
{
	const struct wire_cont cont = { .offset = SPREAD, .id = 0x81828384 };
	const struct wire_rndv rndv = { SPREAD, SPREAD + 1, SPREAD + 2, 0x91929394, 0 };
	const uint8_t sync[] = { 0xA4, 0xA3, 0xA2, 0xA1, 'm', 'a', 't', 'c', 'h' };
	const struct wire_rma rma = { SPREAD, SPREAD + 1, SPREAD + 2, SPREAD + 3, SPREAD + 4 };
	const struct wire_rma_source source = { SPREAD + 5, SPREAD + 6 };
	const struct wire_atomic atomic = { SPREAD, SPREAD + 1, 0x01020304, 0x11121314, 0x2122,
					    2,      8,          5,          { 0 } };
	const struct wire_coll coll = { SPREAD,     0x01020304, 0x11121314, SPREAD + 1,
					SPREAD + 2, 3,          FI_EIO };
	const struct wire_lease_call lease = { .key = SPREAD },
				     revoke = { SPREAD, WIRE_LEASE_REVOKE, 0 };
	uint8_t fetch[sizeof(rma) + sizeof(source)];

	memcpy(fetch, &rma, sizeof(rma));
	memcpy(fetch + sizeof(rma), &source, sizeof(source));
	wire_body_begin(body, 0x01020305, 0x11121315);
	add_call(body, WIRE_OP_CONT, WIRE_OP_CONT, &cont, sizeof(cont));
	add_call(body, WIRE_OP_RNDV, WIRE_OP_RNDV | WIRE_F_TAG, &rndv, sizeof(rndv));
	add_call(body, WIRE_OP_DLVR, WIRE_OP_DLVR | WIRE_F_TAG | WIRE_F_DATA64, "confirm", 7);
	add_call(body, WIRE_OP_SYNC, WIRE_OP_SYNC | WIRE_F_TAG, sync, sizeof(sync));
	add_call(body, WIRE_OP_WRITE, WIRE_OP_WRITE | WIRE_F_DATA32, &rma, sizeof(rma));
	add_call(body, WIRE_OP_READ, WIRE_OP_READ, &rma, sizeof(rma));
	add_call(body, WIRE_OP_FETCH, WIRE_OP_FETCH, fetch, sizeof(fetch));
	add_call(body, WIRE_OP_EXPOSE, WIRE_OP_EXPOSE, &rma, sizeof(rma));
	add_call(body, CALL_REFUSED, WIRE_OP_EXPOSE, &rma, sizeof(rma));
	add_call(body, WIRE_OP_ATOMIC, WIRE_OP_ATOMIC, &atomic, sizeof(atomic));
	add_call(body, WIRE_OP_COLL, WIRE_OP_COLL, &coll, sizeof(coll));
	add_call(body, WIRE_OP_RPC, wire_rpc_word(0x123456), "a request", 9);
	add_call(body, WIRE_OP_LEASE, WIRE_OP_LEASE, &lease, sizeof(lease));
	add_call(body, CALL_REVOKE, WIRE_OP_LEASE, &revoke, sizeof(revoke));
}

void wire_body_fill_replies(struct wire_body *body)
{
	const struct wire_status status = { WIRE_STATUS_PULL, 0x01020304, SPREAD };
	const struct wire_rma_reply done = { .offset = SPREAD };
	const struct wire_rma_reply refused = { .status = WIRE_RMA_REFUSED, .offset = SPREAD };
	const struct wire_rma_exposure exposure = { SPREAD, SPREAD + 1, 0x71727374, 0 };
	const struct wire_atomic_reply atomic = { 0, 0x01020304 };
	const struct wire_coll_reply coll = { .off = SPREAD };
	const struct wire_lease lease = { 0, 3, SPREAD, SPREAD + 1, SPREAD + 2, SPREAD + 3 };
	struct wire_rma_reply exposed = { .status = WIRE_RMA_EXPOSED, .offset = SPREAD };
	uint8_t bytes[sizeof(exposed) + sizeof(exposure)];

	memcpy(bytes, &exposed, sizeof(exposed));
	memcpy(bytes + sizeof(exposed), &exposure, sizeof(exposure));
	wire_body_begin(body, 0, 0);
	wire_body_add_reply(body, WIRE_OP_CONT, &status, sizeof(status));
	wire_body_add_reply(body, WIRE_OP_RNDV, &status, sizeof(status));
	wire_body_add_reply(body, WIRE_OP_DLVR, &status, sizeof(status));
	wire_body_add_reply(body, WIRE_OP_SYNC, &status, sizeof(status));
	wire_body_add_reply(body, WIRE_OP_WRITE, &done, sizeof(done));
	wire_body_add_reply(body, WIRE_OP_READ, &done, sizeof(done));
	wire_body_add_reply(body, WIRE_OP_FETCH, &refused, sizeof(refused));
	wire_body_add_reply(body, WIRE_OP_EXPOSE, bytes, sizeof(bytes));
	wire_body_add_reply(body, CALL_REFUSED, &refused, sizeof(refused));
	wire_body_add_reply(body, WIRE_OP_ATOMIC, &atomic, sizeof(atomic));
	wire_body_add_reply(body, WIRE_OP_COLL, &coll, sizeof(coll));
	wire_body_add_reply(body, WIRE_OP_RPC, "a response", 10);
	wire_body_add_reply(body, WIRE_OP_LEASE, &lease, sizeof(lease));
	wire_body_add_reply(body, CALL_REVOKE, "", 0);
}
