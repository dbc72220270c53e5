/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints over the fake engine: see core_pair.h. */
#include "support/core_pair.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core_av.h"
#include "core/rpc/core_rpc_post.h"

struct core_limits node_limits;

static void node_open(struct node *n)
{
	int ret;

	memset(n, 0, sizeof(*n));
	ret = core_dom_init(&n->dom, &fake_progress_ops, &fake_engine_ops, &node_limits, false);
	assert(!ret);
	ret = core_cq_init(&n->cq, 0);
	assert(!ret);
	n->ep.av = core_av_open(0);
	n->ep.tx = (struct core_comp){ .cq = &n->cq, .cntr = &n->tx_cntr };
	n->ep.rx = (struct core_comp){ .cq = &n->cq, .cntr = &n->rx_cntr };
	n->ep.directed = true;
	n->ep.source = true;
	n->ep.min_multi_recv = 64;
	ret = core_ep_open(&n->ep, &n->dom, NULL);
	assert(!ret);
}

void nodes_open(struct node *nodes, unsigned cnt)
{
	struct sockaddr_storage addr;
	uint64_t idx;
	unsigned i, j;
	int ret;

	for (i = 0; i < cnt; i++)
		node_open(&nodes[i]);
	for (i = 0; i < cnt; i++) {
		for (j = 0; j < cnt; j++) {
			core_ep_addr(&nodes[j].ep, &addr);
			ret = core_av_insert(nodes[i].ep.av, (struct sockaddr *)&addr, &idx);
			assert(!ret && idx == j);
			core_ep_av_inserted(&nodes[i].ep, idx);
		}
	}
}

void nodes_open_plain(struct node *nodes, unsigned cnt)
{
	fake_engine_reset();
	node_limits = (struct core_limits){ .eager_max = 1000,
					    .single_copy_min = 10000,
					    .unexpected_mem = 1 << 20 };
	nodes_open(nodes, cnt);
}

void nodes_close(struct node *nodes, unsigned cnt)
{
	unsigned i;

	for (i = 0; i < cnt; i++)
		core_ep_close(&nodes[i].ep);
	for (i = 0; i < cnt; i++) {
		core_av_close(nodes[i].ep.av);
		core_cq_fini(&nodes[i].cq);
		core_dom_fini(&nodes[i].dom);
	}
}

void nodes_settle(struct node *nodes, unsigned cnt)
{
	unsigned round, i;

	for (round = 0; round < 200; round++)
		for (i = 0; i < cnt; i++)
			core_dom_progress(&nodes[i].dom);
}

int node_send(struct node *n, unsigned to, const void *buf, size_t len, bool tagged, uint64_t tag,
	      uint64_t flags, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct core_send s = {
		.dest = to,
		.iov = &iov,
		.iov_cnt = 1,
		.len = len,
		.tag = tag,
		.data = tag * 3,
		.context = context,
		.flags = flags,
		.tagged = tagged,
	};

	return (int)core_tx_send(&n->ep, &s);
}

int node_recv(struct node *n, fi_addr_t from, void *buf, size_t len, bool tagged, uint64_t tag,
	      uint64_t ignore, uint64_t flags, void *context)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct core_recv r = {
		.src = from,
		.iov = &iov,
		.iov_cnt = 1,
		.tag = tagged ? tag : 0,
		.ignore = ignore,
		.context = context,
		.flags = flags,
		.tagged = tagged,
	};

	return (int)core_rx_post(&n->ep, &r);
}

int node_poll(struct node *n, struct core_cqe *e, struct fi_cq_err_entry *err)
{
	struct core_cqe *front = core_cq_front(&n->cq);

	if (!front)
		return 0;
	if (front->err) {
		core_cq_read_err(&n->cq, err);
		return -FI_EAVAIL;
	}
	*e = *front;
	n->cq.head++;
	return 1;
}

struct core_rpc_handle *node_take(struct node *n)
{
	struct util_list *first = util_list_first(&n->ep.rpc.intake);

	if (!first)
		return NULL;
	core_rpc_pop_intake(&n->ep, first->next, 1);
	return UTIL_CONTAINER_OF(first, struct core_rpc_handle, link);
}

void node_fill(uint8_t *buf, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = (uint8_t)(seed * 131 + i * 7 + (i >> 8));
}

bool node_check(const uint8_t *buf, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != (uint8_t)(seed * 131 + i * 7 + (i >> 8)))
			return false;
	return true;
}
