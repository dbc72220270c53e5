/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tag matching by a ConnectX for core: see ring_mlx5_tags.h. */
#include "ring/ring_mlx5_tags.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "dev/mlx5/m5.h"
#include "dev/mlx5/m5_tm.h"
#include "dev/mlx5/m5_tm_desc.h"
#include "ring/ring_conn.h"
#include "ring/ring_transport.h"

struct ring_tags {
	struct core_tags_list base;
	struct dev *dev;
	struct m5_tm *tm;
};

/** Receive with the registration of its buffer. */
struct ring_tags_recv {
	struct m5_tm_recv tm;
	struct dev_mem *mem;
};

static_assert(sizeof(struct ring_tags_recv) <= sizeof(struct core_tags_recv), "fits");
static_assert(M5_TM_DESC_LEN == CORE_TAGS_DESC_LEN, "format");
static_assert(sizeof(struct m5_tm_send) <= sizeof(struct core_tags_send), "fits");

static struct ring_tags *ring_tags_of(struct core_tags_list *list)
{
	return (struct ring_tags *)list;
}

static struct m5_tm_peer *ring_tags_peer_of(struct core_tags_peer *peer)
{
	return (struct m5_tm_peer *)peer;
}

static struct ring_tags_recv *ring_tags_recv_of(struct core_tags_recv *recv)
{
	return (struct ring_tags_recv *)recv;
}

static void ring_tags_close(struct core_tags_list *list)
{
	m5_tm_close(ring_tags_of(list)->tm);
	free(list);
}

/* ---- peers ---- */

static int ring_tags_peer_open(struct core_tags_list *list, void *user, uint8_t *desc,
			       struct core_tags_peer **out)
{
	struct m5_tm_peer *peer;
	int ret = m5_tm_peer_open(ring_tags_of(list)->tm, user, &peer);

	if (ret)
		return ret;
	m5_tm_desc_encode(peer, desc);
	*out = (struct core_tags_peer *)peer;
	return 0;
}

static int ring_tags_peer_connect(struct core_tags_peer *peer, const uint8_t *desc)
{
	return m5_tm_desc_connect(ring_tags_peer_of(peer), desc);
}

static void ring_tags_peer_close(struct core_tags_peer *peer)
{
	m5_tm_peer_close(ring_tags_peer_of(peer));
}

/* ---- operations ---- */

static void ring_tags_drop(struct core_tags_list *list, struct core_tags_recv *recv)
{
	m5_dev_ops.mem_dereg(ring_tags_of(list)->dev, ring_tags_recv_of(recv)->mem);
}

static int ring_tags_append(struct core_tags_list *list, struct core_tags_recv *base, uint64_t tag,
			    uint64_t mask, void *buf, size_t len, bool more)
{
	struct ring_tags *tags = ring_tags_of(list);
	struct ring_tags_recv *recv = ring_tags_recv_of(base);
	int ret;

	if (!m5_tm_has_room(tags->tm)) /* a registration is a system call */
		return -FI_EAGAIN;
	ret = m5_dev_ops.mem_reg(tags->dev, buf, len, DEV_MEM_LOCAL, &recv->mem);
	if (ret)
		return ret;
	ret = m5_tm_append(tags->tm, &recv->tm, tag, mask, buf, (uint32_t)len,
			   ib_user_lkey(recv->mem), more);
	if (ret)
		m5_dev_ops.mem_dereg(tags->dev, recv->mem);
	return ret;
}

static int ring_tags_remove(struct core_tags_list *list, struct core_tags_recv *recv, bool is_sure)
{
	return m5_tm_remove(ring_tags_of(list)->tm, &ring_tags_recv_of(recv)->tm, is_sure);
}

static int ring_tags_send(struct core_tags_peer *peer, struct core_tags_send *send, uint64_t tag,
			  const uint32_t *data, uint64_t addr, uint64_t key, uint32_t len)
{
	return m5_tm_send(ring_tags_peer_of(peer), (struct m5_tm_send *)send, tag, data != NULL,
			  data ? *data : 0, addr, (uint32_t)key, len);
}

static struct m5_tm_request ring_tags_request(struct core_tags_peer *peer,
					      const struct core_tags_request *request)
{
	return (struct m5_tm_request){ .peer = ring_tags_peer_of(peer),
				       .tag = request->tag,
				       .addr = request->addr,
				       .rkey = (uint32_t)request->key,
				       .len = request->len,
				       .id = request->id,
				       .data = request->data,
				       .has_data = request->has_data };
}

static int ring_tags_finish(struct core_tags_peer *peer, const struct core_tags_request *request)
{
	const struct m5_tm_request own = ring_tags_request(peer, request);

	return m5_tm_finish(&own);
}

static int ring_tags_keep(struct core_tags_peer *peer, const struct core_tags_request *request)
{
	const struct m5_tm_request own = ring_tags_request(peer, request);

	return m5_tm_keep(&own);
}

/* ---- events ---- */

static const enum core_tags_kind ring_tags_kinds[] = {
	[M5_TM_MATCHED] = CORE_TAGS_MATCHED,
	[M5_TM_RECEIVED] = CORE_TAGS_RECEIVED,
	[M5_TM_TOO_LONG] = CORE_TAGS_TOO_LONG,
	[M5_TM_REMOVED] = CORE_TAGS_REMOVED,
	[M5_TM_UNEXPECTED] = CORE_TAGS_UNEXPECTED,
	[M5_TM_SENT] = CORE_TAGS_SENT,
	[M5_TM_KEPT] = CORE_TAGS_KEPT,
	[M5_TM_DOWN] = CORE_TAGS_DOWN,
};

/** Copies what an event has of a message: all of a request, or tag and data of a match. */
static void ring_tags_take_request(const struct m5_tm_event *from, struct core_tags_event *ev)
{
	bool whole = from->kind == M5_TM_UNEXPECTED || from->kind == M5_TM_TOO_LONG;

	ev->request = (struct core_tags_request){
		.tag = whole        ? from->request.tag
		       : from->recv ? from->recv->tag
				    : 0,
		.addr = from->request.addr,
		.key = from->request.rkey,
		.len = from->request.len,
		.id = from->request.id,
		.data = whole ? from->request.data : from->data,
		.has_data = whole ? from->request.has_data : from->has_data,
	};
}

static bool ring_tags_poll(struct core_tags_list *list, struct core_tags_event *ev)
{
	struct m5_tm_event from;

	if (!m5_tm_poll(ring_tags_of(list)->tm, &from))
		return false;
	ev->kind = ring_tags_kinds[from.kind];
	ev->status = from.status;
	ev->len = from.len;
	ev->recv = (struct core_tags_recv *)from.recv;
	ev->send = (struct core_tags_send *)from.send;
	ev->user = from.peer ? from.peer->user : NULL;
	ring_tags_take_request(&from, ev);
	return true;
}

static const struct core_tags_ops ring_tags_ops = {
	.close = ring_tags_close,
	.peer_open = ring_tags_peer_open,
	.peer_connect = ring_tags_peer_connect,
	.peer_close = ring_tags_peer_close,
	.append = ring_tags_append,
	.remove = ring_tags_remove,
	.drop = ring_tags_drop,
	.send = ring_tags_send,
	.finish = ring_tags_finish,
	.keep = ring_tags_keep,
	.poll = ring_tags_poll,
};

#define RING_TAGS_MIN 32u /* receives in a list that is of use */

int ring_mlx5_tags_open(struct core_chan *chan, uint32_t cnt, struct core_tags_list **out)
{
	struct ring_conn *conn = ring_conn_of(chan);
	struct ring_tags *tags;
	uint32_t most;
	int ret;

	if (conn->rail || ring_conn_transport(conn)->rails)
		return -FI_EOPNOTSUPP;
	tags = calloc(1, sizeof(*tags));
	if (!tags)
		return -FI_ENOMEM;
	tags->base.ops = &ring_tags_ops;
	tags->dev = conn->dev;
	most = m5_tm_most((struct m5_dev *)conn->dev);
	if (cnt > most)
		cnt = most < RING_TAGS_MIN ? RING_TAGS_MIN : most;
	ret = m5_tm_open((struct m5_dev *)conn->dev, cnt, &tags->tm);
	if (ret) {
		free(tags);
		return ret;
	}
	*out = &tags->base;
	return 0;
}
