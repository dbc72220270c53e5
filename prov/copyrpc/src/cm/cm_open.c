/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens and closes CM endpoints: cm_ep_open and cm_ep_close of cm.h. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cm/base/cm_fd.h"
#include "cm/conn/cm_accept.h"
#include "cm/conn/cm_conn.h"
#include "cm/conn/cm_req.h"
#include "cm/conn/cm_udp.h"
#include "cm/conn/cm_unused.h"
#include "cm/ep/cm_ep.h"
#include "cm/msg/cm_connreq.h"
#include "util/clock.h"
#include "util/job.h"
#include "util/log.h"

static int cm_ep_choose_addr(struct cm_ep *cep, const struct sockaddr *addr)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int ret = cm_addr_import(addr ? addr : (struct sockaddr *)&any, &cep->addr);

	return ret ? ret : cm_addr_resolve(&cep->addr);
}

static void cm_ep_arm_tick(struct cm_ep *cep)
{
	if (cep->node->cfg.tick_ms > 0 && cep->ops->tick)
		cm_node_arm(cep->node, &cep->tick_timer,
			    util_clock_ns() + (uint64_t)cep->node->cfg.tick_ms * UTIL_NS_PER_MS);
}

static void cm_ep_on_tick(struct cm_timer *timer)
{
	struct cm_ep *cep = UTIL_CONTAINER_OF(timer, struct cm_ep, tick_timer);

	cm_ep_arm_tick(cep);
	cep->ops->tick(cep->ctx);
}

static void cm_ep_init(struct cm_ep *cep)
{
	cm_src_init(&cep->udp, cm_udp_on_ready);
	cm_src_init(&cep->listen, cm_accept_on_ready);
	cm_timer_init(&cep->listen_timer, cm_accept_on_pause_over);
	cm_timer_init(&cep->tick_timer, cm_ep_on_tick);
	cm_cookie_init(&cep->jar);
	cm_mac_random_name(cep->name, sizeof(cep->name));
	cep->inc = cm_mac_random();
	cep->uid = geteuid();
	util_job_self(&cep->self);
	cep->unused_max = CM_UNUSED_MAX;
	util_list_init(&cep->conns);
	util_list_init(&cep->incoming);
	util_list_init(&cep->req_queue);
	util_list_init(&cep->pending);
}

static int cm_ep_watch(struct cm_ep *cep, int udp_fd, int listen_fd)
{
	int ret;

	cm_node_lock(cep->node);
	ret = cm_src_open(cep->node, &cep->udp, udp_fd);
	if (!ret) {
		ret = cm_src_open(cep->node, &cep->listen, listen_fd);
		if (ret)
			cm_src_release(cep->node, &cep->udp);
	}
	if (!ret) {
		cep->node->cep_cnt++;
		cm_ep_arm_tick(cep);
	} else {
		cm_node_wait_pass(cep->node);
	}
	cm_node_unlock(cep->node);
	return ret;
}

static int cm_ep_open_fds(struct cm_ep *cep)
{
	int udp_fd, listen_fd, ret;

	udp_fd = cm_udp_bind(&cep->addr);
	if (udp_fd < 0)
		return udp_fd;
	listen_fd = cm_fd_listen(cep->name);
	if (listen_fd < 0) {
		ret = listen_fd;
		goto err_close_udp;
	}
	ret = cm_ep_watch(cep, udp_fd, listen_fd);
	if (!ret)
		return 0;
	close(listen_fd);
err_close_udp:
	close(udp_fd);
	return ret;
}

int cm_ep_open(struct cm_node *node, const struct sockaddr *addr, struct cm_paths paths,
	       const struct cm_ep_ops *ops, void *ctx, struct cm_ep **out)
{
	struct cm_ep *cep = calloc(1, sizeof(*cep));
	char text[CM_ADDR_TEXT_MAX];
	int ret;

	if (!cep)
		return -FI_ENOMEM;
	cep->node = node;
	cep->paths = paths;
	cep->ops = ops;
	cep->ctx = ctx;
	cep->stats = &cep->own_stats;
	cm_ep_init(cep);
	ret = cm_ep_choose_addr(cep, addr);
	if (!ret)
		ret = cm_ep_open_fds(cep);
	if (ret) {
		UTIL_WARN(EP_CTRL, "no endpoint at %s: %s%s\n", cm_addr_print(&cep->addr, text),
			  fi_strerror(-ret), ret == -FI_EMFILE ? "; raise `ulimit -n`" : "");
		free(cep);
		return ret;
	}
	UTIL_INFO(EP_CTRL, "endpoint at %s, incarnation %016llx\n", cm_addr_print(&cep->addr, text),
		  (unsigned long long)cep->inc);
	*out = cep;
	return 0;
}

/* Cancels every request; peers without a conn go with it. */
static void cm_ep_drop_reqs(struct cm_ep *cep)
{
	/* Keeps queued requests from starting when slots become free. */
	cep->req_slot_cnt += CM_REQ_SLOTS;
	for (size_t i = 0; i < cep->peers.bucket_cnt; i++)
		for (struct cm_peer *peer = cep->peers.buckets[i]; peer; peer = peer->hash_next)
			cm_req_cancel(peer);
}

static void cm_ep_orphan_conns(struct cm_ep *cep)
{
	for (struct util_list *it = cep->conns.next; it != &cep->conns; it = it->next)
		cm_conn_orphan(UTIL_CONTAINER_OF(it, struct cm_conn, cep_link));
}

/* Called when the thread handles no event: cm_conn_put of an orphan only frees it from now on. */
static void cm_ep_release_orphans(struct cm_ep *cep)
{
	struct util_list *first;

	while ((first = util_list_pop(&cep->conns)))
		__atomic_store_n(&UTIL_CONTAINER_OF(first, struct cm_conn, cep_link)->node, NULL,
				 __ATOMIC_RELEASE);
}

void cm_ep_close(struct cm_ep *cep)
{
	struct cm_node *node = cep->node;

	cm_node_lock(node);
	if (cep->connreq)
		cm_connreq_end(cep->connreq);
	cm_ep_drop_reqs(cep);
	cm_ep_orphan_conns(cep);
	cm_accept_drop_incoming(cep);
	cm_node_disarm(node, &cep->listen_timer);
	cm_node_disarm(node, &cep->tick_timer);
	cm_src_close(node, &cep->udp);
	cm_src_close(node, &cep->listen);
	cm_node_wait_pass(node);
	cm_ep_release_orphans(cep);
	node->cep_cnt--;
	cm_node_unlock(node);
	cm_peer_table_fini(&cep->peers);
	cm_ended_fini(&cep->ended);
	free(cep);
}
