/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device of a transport, and its wait descriptor: see ring_transport.h. */
#include "ring/ring_transport.h"

#include <rdma/fi_errno.h>

#include "engine/eng_stats.h"
#include "ring/ring_ack.h"
#include "ring/ring_call.h"
#include "ring/ring_direct.h"
#include "ring/ring_rail.h"
#include "ring/ring_room.h"
#include "util/probe.h"
#include "util/stats.h"

int ring_transport_open(struct eng_transport *eng, const struct dev_ops *dev_ops,
			const struct core_chan_ops *chan_ops,
			const struct eng_transport_ops *rails_ops)
{
	struct ring_transport *transport = ring_transport_of(eng);
	int ret;

	transport->dev_ops = dev_ops;
	transport->chan_ops = chan_ops;
	util_list_init(&transport->dirty);
	util_list_init(&transport->unacked);
	util_list_init(&transport->movable);
	util_list_init(&transport->regs);
	ret = dev_ops->open(&transport->dev);
	if (ret || !rails_ops)
		return ret;
	ret = ring_rails_open(transport);
	if (ret)
		ring_transport_close(eng);
	else if (transport->rails)
		eng->ops = rails_ops;
	return ret;
}

static void ring_transport_close_first(struct ring_transport *transport)
{
	if (!transport->dev)
		return;
	ring_direct_regs_end(transport);
	ring_bounce_fini(&transport->bounce, transport->dev_ops, transport->dev);
	if (transport->rails)
		ring_rails_watch(transport, false);
	transport->dev_ops->close(transport->dev);
	transport->dev = NULL;
}

void ring_transport_close(struct eng_transport *eng)
{
	struct ring_transport *transport = ring_transport_of(eng);

	ring_transport_close_first(transport);
	ring_rails_close(transport);
}

int ring_transport_health(struct eng_transport *eng)
{
	struct ring_transport *transport = ring_transport_of(eng);

	if (!transport->dev)
		return -FI_ENODEV;
	return transport->rails ? ring_rails_health(transport)
				: transport->dev_ops->health(transport->dev);
}

int ring_transport_reopen(struct eng_transport *eng)
{
	struct ring_transport *transport = ring_transport_of(eng);
	int ret;

	if (ring_rails_swap(transport))
		return 0;
	ring_transport_close_first(transport);
	ret = ring_rails_open_first(transport);
	if (ret) {
		transport->dev = NULL;
		return ret;
	}
	if (transport->rails)
		ring_rails_watch(transport, true);
	ring_direct_regs_renew(transport);
	return 0;
}

int ring_transport_wait_fd(struct eng_transport *eng)
{
	struct ring_transport *transport = ring_transport_of(eng);

	return transport->rails ? transport->rails->wait_fd
				: transport->dev_ops->wait_fd(transport->dev);
}

int ring_transport_arm(struct eng_transport *eng)
{
	struct ring_transport *transport = ring_transport_of(eng);

	if (!util_list_is_empty(&transport->dirty) || ring_ack_request_all(transport))
		return -FI_EAGAIN;
	if (transport->rails && ring_rails_arm(transport))
		return -FI_EAGAIN;
	return transport->dev_ops->arm(transport->dev);
}

void ring_transport_disarm(struct eng_transport *eng)
{
	struct ring_transport *transport = ring_transport_of(eng);

	transport->dev_ops->disarm(transport->dev);
	if (transport->rails && transport->rails->dev)
		transport->dev_ops->disarm(transport->rails->dev);
}

void ring_transport_positions(struct core_chan *chan, uint64_t *sent, uint64_t *parsed)
{
	const struct ring_flow *flow = &ring_conn_of(chan)->tx.flow;

	*sent = flow->producer;
	*parsed = flow->remote_consumer;
}

size_t ring_transport_call_room(struct core_chan *chan, size_t len, uint32_t resp_max)
{
	return ring_call_room(ring_conn_of(chan), len, resp_max);
}

enum core_shortage ring_transport_call_shortage(const struct core_chan *chan, size_t len,
						uint32_t resp_max)
{
	return ring_call_shortage((const struct ring_conn *)chan,
				  wire_msg_span(RING_CALL_WORD_LEN + (uint32_t)len), resp_max);
}

__attribute__((cold)) int ring_transport_refuse_cold(struct ring_conn *conn, uint64_t span,
						     uint32_t resp_max, int err)
{
	enum core_shortage shortage = ring_call_shortage(conn, span, resp_max);
	struct core_chan *chan = &conn->eng.chan;

	core_chan_refuse(chan, shortage, err);
	eng_stats_shortage(chan);
	if (shortage == CORE_SHORT_SPACE && err == -FI_EAGAIN)
		ring_room_refused(conn);
	return err;
}

__attribute__((cold)) int ring_transport_no_space_cold(struct ring_conn *conn)
{
	conn->eng.chan.stats->no_space++;
	UTIL_PROBE2(wait, conn->eng.chan.stats, UTIL_PROBE_SPACE);
	ring_room_refused(conn);
	return -FI_EAGAIN;
}
