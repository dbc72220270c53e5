/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Setup of a ring connection: the transport's part of the handshake. Called by the engine in the
 * control thread.
 *
 * prepare makes the local half: a ring for the peer to write, its description, and the local limit
 * of response credit. establish connects to the peer's half. Both ends compute the first credit of
 * both directions from the two halves, so none is transmitted.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/eng_engine.h"
#include "engine/eng_room.h"
#include "ring/ring_len.h"
#include "ring/ring_rail.h"
#include "ring/ring_room.h"
#include "ring/ring_transport.h"
#include "util/log.h"
#include "util/param.h"
#include "wire/wire_cm.h"

#define RING_SETUP_VERSION 5u
#define RING_GRANT_DEFAULT (32u << 10) /* Response bytes granted if FI_COPYRPC_GRANT_MAX is 0 */
#define RING_GRANT_LEAST   64u         /* Smallest reservation of a call */
/* Tag and 64 bits of data are in front of the least eager message. */
#define RING_SETUP_EAGER_LEAST (UTIL_PARAM_EAGER_MIN + 16u)

/** Local bytes in struct cm_params. */
struct ring_params {
	uint32_t version;
	uint32_t features;  /* RING_RAIL_FEATURE, where the handshake permits it; else zero */
	uint64_t grant_max; /* 0: the default of this version */
};

static_assert(sizeof(struct ring_params) <= CM_ENGINE_MAX, "fits a half");

/**
 * Returns R_max of the end that writes a ring of `ring_len` bytes and announced `announced`. By
 * default an eighth of the ring at most, since one-way traffic never gets twice R_max; a quarter,
 * the most that flow control permits, if the user asks for more.
 */
static uint64_t ring_setup_grant(uint64_t announced, uint64_t ring_len)
{
	uint64_t bound = announced ? ring_len / 4 : ring_len / 8;
	uint64_t grant = announced ? announced : RING_GRANT_DEFAULT;

	return (grant < bound ? grant : bound) & ~(uint64_t)(WIRE_ALIGN - 1);
}

static void ring_setup_warn_mem(void)
{
	UTIL_WARN(EP_CTRL,
		  "no ring memory left for another peer: raise FI_COPYRPC_MEM (now %zu bytes), or "
		  "lower FI_COPYRPC_RING_SIZE\n",
		  util_params.mem);
}

static void ring_setup_params(struct cm_params *params, bool has_rail)
{
	struct ring_params own = { .version = RING_SETUP_VERSION,
				   .features = has_rail ? RING_RAIL_FEATURE : 0,
				   .grant_max = util_params.grant_max };

	memcpy(params->engine, &own, sizeof(own));
	params->engine_len = sizeof(own);
}

static int ring_setup_link(struct ring_conn *conn, struct ring_transport *transport, uint64_t len,
			   struct cm_params *params)
{
	int ret = transport->dev_ops->link_create(transport->dev, len, &conn->link);

	if (ret)
		return ret;
	conn->dev = transport->dev;
	params->dev.peer_moves =
		util_params.rc_interval_ms && (params->features & WIRE_CM_FEATURE_MOVES);
	ret = conn->link->ops->describe(conn->link, &params->dev);
	if (ret)
		conn->link->ops->close(conn->link);
	return ret;
}

static void ring_setup_note_len(struct core_engine *engine, uint64_t len, enum eng_size size)
{
	if (size == ENG_SIZE_LARGE)
		UTIL_INFO(EP_CTRL, "a peer that sends much gets a ring of %llu bytes\n",
			  (unsigned long long)len);
	if (size == ENG_SIZE_DEFAULT && len < RING_LEN_DEFAULT && !util_params.ring_size)
		eng_room_note_short(engine);
}

int ring_setup_prepare(struct eng_transport *eng, struct core_engine_ep *eep, void *ep_state,
		       enum eng_size size, struct cm_params *params, struct eng_conn **out)
{
	struct ring_transport *transport = ring_transport_of(eng);
	uint64_t len = ring_room_len(transport, eep->engine, size);
	struct ring_conn *conn;
	bool has_rail;
	int ret;

	if (!len) {
		ring_setup_warn_mem();
		return -FI_ENOMEM;
	}
	conn = aligned_alloc(UTIL_CACHE_LINE, sizeof(*conn));
	if (!conn)
		return -FI_ENOMEM;
	memset(conn, 0, sizeof(*conn));
	ret = ring_setup_link(conn, transport, len, params);
	if (ret) {
		free(conn);
		return ret;
	}
	ring_rails_add_link(transport);
	conn->knows_rails = transport->rails && (params->features & WIRE_CM_FEATURE_RAILS);
	has_rail = conn->knows_rails && ring_rail_prepare(conn, transport, &params->dev);
	conn->lacks_rail = conn->knows_rails && !has_rail;
	ring_setup_params(params, has_rail);
	ring_setup_note_len(eep->engine, len, size);
	conn->eng.engine = eep->engine;
	conn->eng.transport = eng;
	conn->eng.chan.ops = transport->chan_ops;
	util_list_init(&conn->dirty_link);
	util_list_init(&conn->gets);
	util_list_init(&conn->ack.link);
	util_list_init(&conn->balance_link);
	eng_mem_count(&conn->eng, conn->link->rx_len);
	*out = &conn->eng;
	return 0;
}

/**
 * Counts the send ring against the budget where it is a local copy. The peer has chosen its size.
 */
static int ring_setup_count_send_ring(struct ring_conn *conn)
{
	struct dev_link *link = conn->link;

	if (link->caps & DEV_CAP_DIRECT)
		return 0;
	if (link->tx_len > eng_mem_left(conn->eng.engine)) {
		ring_setup_warn_mem();
		return -FI_ENOMEM;
	}
	eng_mem_count(&conn->eng, link->tx_len);
	return 0;
}

int ring_setup_establish(struct eng_conn *eng, const struct cm_params *peer)
{
	struct ring_conn *conn = ring_conn_of(&eng->chan);
	struct dev_link *link = conn->link;
	struct ring_params peer_params;
	struct dev_desc first, second;
	int ret;

	if (peer->engine_len != sizeof(peer_params))
		return -FI_EIO;
	memcpy(&peer_params, peer->engine, sizeof(peer_params));
	if (peer_params.version != RING_SETUP_VERSION ||
	    (peer_params.features & ~RING_RAIL_FEATURE)) {
		UTIL_WARN(EP_CTRL,
			  "the peer uses ring protocol %u (features %#x), this process %u: "
			  "install the same copyrpc on both sides\n",
			  peer_params.version, peer_params.features, RING_SETUP_VERSION);
		return -FI_EOPNOTSUPP;
	}
	ret = ring_rail_split(&peer->dev, peer_params.features & RING_RAIL_FEATURE, &first,
			      &second);
	if (!ret)
		ret = link->ops->connect(link, &first);
	if (!ret)
		ret = ring_setup_count_send_ring(conn);
	if (ret)
		return ret;
	ring_rail_establish(conn, &second);
	if (link->tx_len < RING_LEN_MIN || link->tx_len > RING_LEN_MAX ||
	    !util_is_pow2(link->tx_len))
		return -FI_EIO;
	/* With less, no call would ever be admitted. */
	if (ring_setup_grant(peer_params.grant_max, link->rx_len) < RING_GRANT_LEAST)
		return -FI_EIO;
	ring_conn_init(conn, link, ring_setup_grant(util_params.grant_max, link->tx_len),
		       ring_setup_grant(peer_params.grant_max, link->rx_len));
	if (conn->eng.chan.eager_max < RING_SETUP_EAGER_LEAST) {
		UTIL_WARN(
			EP_CTRL,
			"a ring of %llu bytes has no room for messages beside %llu for responses: "
			"lower FI_COPYRPC_GRANT_MAX, or raise FI_COPYRPC_RING_SIZE at the peer\n",
			(unsigned long long)link->tx_len,
			(unsigned long long)conn->tx.flow.grant_max);
		return -FI_EIO;
	}
	if (ring_transport_registers(ring_conn_transport(conn)))
		conn->eng.chan.get_min = util_params.rndv_min;
	if (ring_transport_registers(ring_conn_transport(conn)) && (link->caps & DEV_CAP_PUT) &&
	    util_params.nic_rma) {
		conn->eng.chan.reg_dev = conn->eng.transport;
		conn->eng.chan.access_inline = link->inline_max;
	}
	return 0;
}
