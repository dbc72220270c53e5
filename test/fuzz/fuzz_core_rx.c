/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of core's handlers: connected peers that send any message, call or response can only
 * fail their own connection, and read or write what is registered for them.
 *
 * The input is a script of the user's operations and of what two peers state: messages, calls and
 * responses of any bytes, into which ids of this end's messages are put; requests to the list of a
 * device that matches tags; failures. Each operation has a buffer of its own, freed when it ends.
 *
 * Checks besides the sanitizers: each operation ends once; the rules of core/side.h; nothing is
 * left when the endpoint is closed.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#include "fuzz/core/forge.h"
#include "fuzz/core/side.h"
#include "fuzz/core/user.h"
#include "support/fake_direct.h"
#include "util/param.h"
#include "wire/wire_op.h"

static uint64_t take(unsigned bytes)
{
	return script_take(&script, bytes);
}

/* ---- peers ---- */

/** Changes a few words of what was forged. */
static void damage(struct forged *forged)
{
	for (uint8_t cnt = (uint8_t)take(1); (cnt & 0xe0) == 0xe0; cnt <<= 1) {
		uint32_t at = (uint32_t)take(1);

		if (at + 4 <= forged->len)
			script_bytes(&script, forged->body + at, 4);
		else
			forged->len = at < forged->len ? at : forged->len;
	}
}

static void peer_msg(unsigned peer)
{
	struct forged forged;

	forge_msg(&script, side_echo, &forged);
	damage(&forged);
	side_msg(peer, forged.op, forged.body, forged.len);
}

static void peer_call(unsigned peer)
{
	static const uint16_t rooms[] = { 1024, 15, 16, 24, 64, 300, 0, 1023 };
	uint32_t resp_max = rooms[take(1) & 7];
	uint8_t bytes[FORGE_MAX + 4];
	struct forged forged;

	forge_call(&script, side_echo, &forged);
	damage(&forged);
	memcpy(bytes, &forged.op, 4);
	memcpy(bytes + 4, forged.body, forged.len);
	side_call(peer, resp_max, bytes, forged.len + 4);
}

static void peer_respond(unsigned peer)
{
	unsigned which = (unsigned)take(1);
	struct forged forged;

	forge_response(&script, side_echo, &forged);
	damage(&forged);
	side_respond(peer, which, forged.body, forged.len);
}

/** Bytes without any form, shorter than the head of a message, too. */
static void peer_noise(unsigned peer)
{
	uint32_t op = (uint32_t)take(4), len = (uint32_t)take(1);
	uint8_t bytes[256];

	script_bytes(&script, bytes, len);
	if (op >> 31)
		side_call(peer, 1024, bytes, len);
	else
		side_msg(peer, op, bytes, len);
}

static void peer_request(unsigned peer)
{
	uint8_t how = (uint8_t)take(1);
	struct core_tags_request request = { .tag = user_tag(),
					     .addr = take(1) << 12,
					     .key = take(1),
					     .len = (uint32_t)take(2),
					     .id = (uint32_t)take(1),
					     .data = (uint32_t)take(1),
					     .has_data = how & 1 };

	request.tag &= CORE_TAGS_LEN_MAX;
	request.tag |= (uint64_t)(how & 2 ? take(2) : side_tags_number(peer)) << 48;
	side_tags_request(peer, &request);
}

/* ---- the script ---- */

static void act_device(uint8_t what, uint8_t how)
{
	switch (what % 8) {
	case 0: side_tags_end(how, (uint32_t)take(2), 0); break;
	case 1: side_tags_end(how, 0, -FI_EIO); break;
	case 2: side_tags_sent(how, false); break;
	case 3: side_tags_sent(how, true); break;
	case 4: side_tags_fail(how); break;
	case 5: side_parse(how); break;
	case 6: side_break(how % SIDE_PEERS); break;
	case 7:
		side_cfg.full = how & 1;
		side_cfg.holds_get = how & 2;
		side_cfg.get_err = how & 4 ? -FI_EIO : 0;
		side_cfg.tags_full = how & 8;
		side_cfg.late_get = how & 16;
		break;
	}
}

static void act(void)
{
	uint8_t what = (uint8_t)take(1), how = (uint8_t)take(1);

	switch (what & 7) {
	case 0: user_act(what >> 3, how); break;
	case 1: act_device(what >> 3, how); break;
	case 2: peer_msg(how % SIDE_PEERS); break;
	case 3: peer_call(how % SIDE_PEERS); break;
	case 4: peer_respond(how % SIDE_PEERS); break;
	case 5:
		if (what & 8)
			peer_noise(how % SIDE_PEERS);
		else
			peer_request(how % SIDE_PEERS);
		break;
	default: user_progress(what & 8);
	}
}

/** Peers whose devices match tags make contact. */
static void greet(unsigned peer)
{
	uint8_t hello[sizeof(struct wire_tags) + CORE_TAGS_DESC_LEN] = { WIRE_TAGS_HELLO, 0, 9 };
	const uint8_t ready[sizeof(struct wire_tags)] = { WIRE_TAGS_READY, 0, 9 };

	side_msg(peer, WIRE_OP_TAGS, hello, sizeof(hello));
	side_msg(peer, WIRE_OP_TAGS, ready, sizeof(ready));
	side_parse(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t how;

	script = (struct script){ data, data + len };
	how = (uint8_t)take(1);
	memset(side_echo, 0, sizeof(side_echo));
	util_params.tag_offload = how & 1;
	fake_direct_reset();
	fake_direct_cfg.on = how & 2;
	side_cfg = (struct side_cfg){ .has_tags = true };
	user_open();
	for (unsigned i = 0; how & 4 && i < SIDE_PEERS; i++)
		greet(i);
	while (!script_is_over(&script))
		act();
	user_close();
	return 0;
}
