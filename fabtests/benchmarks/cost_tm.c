/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two ends of cost.h by tag matching of an mlx5 device (dev/mlx5/m5_tm.h), bare: nothing of
 * core/ or ring/ is executed. So the figures are the least that copyrpc could reach with it.
 * Buffers are registered for each message, as copyrpc does for its rendezvous.
 */
#include "cost.h"

#include <rdma/fi_errno.h>
#include <rdma/fabric.h>
#include <stdlib.h>
#include <string.h>

#include "dev/mlx5/m5.h"
#include "dev/mlx5/m5_dev.h"
#include "dev/mlx5/m5_tm.h"
#include "util/bits.h"

#define COST_TAG 7u

const char *const cost_transport = "tm_cost_bench";
const struct cost_access_ops *const cost_accesses = NULL;

struct cost_tm_send {
	struct m5_tm_send tm;
	struct dev_mem *mem;
};

struct cost_tm_recv {
	struct m5_tm_recv tm;
	struct dev_mem *mem;
};

struct cost_tm_end {
	struct dev *dev;
	struct m5_tm *tm;
	struct m5_tm_peer *peer;
	struct cost_tm_send *sends; /* by slot */
	struct cost_tm_recv *recvs;
};

struct cost_tm {
	struct cost_pair pair;
	struct cost_tm_end end[COST_ENDS];
	int window;
};

static void must(const char *what, int err)
{
	if (err)
		cost_die(what, fi_strerror(-err));
}

static struct cost_tm_end *cost_tm_end(struct cost_pair *pair, int end)
{
	return &UTIL_CONTAINER_OF(pair, struct cost_tm, pair)->end[end];
}

static void cost_tm_open(struct cost_tm_end *e, uint32_t slots)
{
	e->sends = calloc(slots, sizeof(*e->sends));
	e->recvs = calloc(slots, sizeof(*e->recvs));
	if (!e->sends || !e->recvs)
		cost_die("a pair of ends", "out of memory");
	must("opening the device", m5_dev_ops.open(&e->dev));
	must("opening tag matching", m5_tm_open((struct m5_dev *)e->dev, slots, &e->tm));
	must("opening a peer", m5_tm_peer_open(e->tm, NULL, &e->peer));
}

static void cost_tm_connect(struct cost_tm_end *e, const struct cost_tm_end *other)
{
	struct ib_desc tx, rx;

	m5_tm_peer_describe(other->peer, &tx, &rx);
	must("connecting", m5_tm_peer_connect(e->peer, &tx, &rx));
}

/* `slots` are two windows. */
struct cost_pair *cost_pair_open(const char *name, int slots, bool accesses)
{
	struct cost_tm *cost = calloc(1, sizeof(*cost));

	if (!cost)
		cost_die("a pair of ends", "out of memory");
	cost->window = slots / 2;
	for (int i = 0; i < COST_ENDS; i++)
		cost_tm_open(&cost->end[i], (uint32_t)slots);
	for (int i = 0; i < COST_ENDS; i++)
		cost_tm_connect(&cost->end[i], &cost->end[!i]);
	return &cost->pair;
}

void cost_pair_close(struct cost_pair *pair)
{
	struct m5_tm_event ev;

	for (int i = 0; i < COST_ENDS; i++) {
		struct cost_tm_end *e = cost_tm_end(pair, i);

		m5_tm_peer_close(e->peer);
		while (m5_tm_poll(e->tm, &ev))
			;
		m5_tm_close(e->tm);
		m5_dev_ops.close(e->dev);
		free(e->sends);
		free(e->recvs);
	}
	free(UTIL_CONTAINER_OF(pair, struct cost_tm, pair));
}

bool cost_send(struct cost_pair *pair, int end, const void *buf, size_t len, int slot)
{
	struct cost_tm_end *e = cost_tm_end(pair, end);
	struct cost_tm_send *send = &e->sends[slot];
	int ret;

	must("mem_reg", m5_dev_ops.mem_reg(e->dev, buf, len, DEV_MEM_REMOTE_READ, &send->mem));
	ret = m5_tm_send(e->peer, &send->tm, COST_TAG, false, 0, (uintptr_t)buf,
			 (uint32_t)send->mem->remote_key, (uint32_t)len);
	if (!ret)
		return true;
	m5_dev_ops.mem_dereg(e->dev, send->mem);
	if (ret != -FI_EAGAIN)
		must("sending", ret);
	return false;
}

/* A window's receives reach the device with one doorbell. */
void cost_recv(struct cost_pair *pair, int end, void *buf, size_t len, int slot)
{
	struct cost_tm_end *e = cost_tm_end(pair, end);
	struct cost_tm_recv *recv = &e->recvs[slot];
	bool more = (slot + 1) % UTIL_CONTAINER_OF(pair, struct cost_tm, pair)->window;

	must("mem_reg", m5_dev_ops.mem_reg(e->dev, buf, len, DEV_MEM_LOCAL, &recv->mem));
	must("appending", m5_tm_append(e->tm, &recv->tm, COST_TAG, UINT64_MAX, buf, (uint32_t)len,
				       ib_user_lkey(recv->mem), more));
}

static void cost_tm_handle(struct cost_pair *pair, int end, const struct m5_tm_event *ev)
{
	struct cost_tm_end *e = cost_tm_end(pair, end);

	switch (ev->kind) {
	case M5_TM_MATCHED: break;
	case M5_TM_RECEIVED:
		must("receiving", ev->status);
		m5_dev_ops.mem_dereg(e->dev,
				     UTIL_CONTAINER_OF(ev->recv, struct cost_tm_recv, tm)->mem);
		pair->end[end].received++;
		break;
	case M5_TM_SENT:
		m5_dev_ops.mem_dereg(e->dev,
				     UTIL_CONTAINER_OF(ev->send, struct cost_tm_send, tm)->mem);
		pair->end[end].sent++;
		break;
	default: cost_die("waiting for messages", "tag matching by the device missed one");
	}
}

void cost_progress(struct cost_pair *pair, int end)
{
	struct cost_tm_end *e = cost_tm_end(pair, end);
	struct m5_tm_event ev;

	while (m5_tm_poll(e->tm, &ev))
		cost_tm_handle(pair, end, &ev);
}
