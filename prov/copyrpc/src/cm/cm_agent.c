/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An agent's life, and the calls of cm.h that concern one: see cm_agent.h. */
#include "cm/cm_agent.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/conn/cm_accept.h"
#include "cm/dial/cm_call.h"
#include "cm/conn/cm_conn.h"
#include "cm/base/cm_fd.h"
#include "cm/ask/cm_req.h"
#include "cm/ask/cm_udp.h"
#include "util/log.h"

static int cm_agent_place(struct cm_agent *agent, const struct sockaddr *addr)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int ret = cm_addr_import(addr ? addr : (struct sockaddr *)&any, &agent->addr);

	if (!ret)
		cm_addr_resolve(&agent->addr);
	return ret;
}

static void cm_agent_init(struct cm_agent *agent)
{
	cm_src_init(&agent->udp, cm_udp_on_ready);
	cm_src_init(&agent->listen, cm_accept_on_ready);
	cm_timer_init(&agent->listen_timer, cm_accept_on_pause_over);
	cm_cookie_init(&agent->jar);
	cm_mac_random_name(agent->name, sizeof(agent->name));
	agent->inc = cm_mac_random();
	agent->uid = geteuid();
	util_list_init(&agent->conns);
	util_list_init(&agent->callers);
	util_list_init(&agent->req_queue);
	util_list_init(&agent->guests);
}

static int cm_agent_watch(struct cm_agent *agent, int udp_fd, int listen_fd)
{
	int ret;

	cm_node_lock(agent->node);
	ret = cm_src_open(agent->node, &agent->udp, udp_fd);
	if (!ret) {
		ret = cm_src_open(agent->node, &agent->listen, listen_fd);
		if (ret)
			cm_src_release(agent->node, &agent->udp);
	}
	if (!ret)
		agent->node->agent_cnt++;
	else
		cm_node_wait_pass(agent->node);
	cm_node_unlock(agent->node);
	return ret;
}

static int cm_agent_open_fds(struct cm_agent *agent)
{
	int udp_fd, listen_fd, ret;

	udp_fd = cm_udp_bind(&agent->addr);
	if (udp_fd < 0)
		return udp_fd;
	listen_fd = cm_fd_listen(agent->name);
	if (listen_fd < 0) {
		ret = listen_fd;
		goto err_close_udp;
	}
	ret = cm_agent_watch(agent, udp_fd, listen_fd);
	if (!ret)
		return 0;
	close(listen_fd);
err_close_udp:
	close(udp_fd);
	return ret;
}

int cm_agent_open(struct cm_node *node, const struct sockaddr *addr, struct cm_paths paths,
		  const struct cm_agent_ops *ops, void *ctx, struct cm_agent **out)
{
	struct cm_agent *agent = calloc(1, sizeof(*agent));
	char text[CM_ADDR_TEXT_MAX];
	int ret;

	if (!agent)
		return -FI_ENOMEM;
	agent->node = node;
	agent->paths = paths;
	agent->ops = ops;
	agent->ctx = ctx;
	cm_agent_init(agent);
	ret = cm_agent_place(agent, addr);
	if (!ret)
		ret = cm_agent_open_fds(agent);
	if (ret) {
		UTIL_WARN(EP_CTRL, "no endpoint at %s: %s%s\n", cm_addr_print(&agent->addr, text),
			  fi_strerror(-ret), ret == -FI_EMFILE ? "; raise `ulimit -n`" : "");
		free(agent);
		return ret;
	}
	UTIL_INFO(EP_CTRL, "endpoint at %s, incarnation %016llx\n",
		  cm_addr_print(&agent->addr, text), (unsigned long long)agent->inc);
	*out = agent;
	return 0;
}

void cm_agent_addr(const struct cm_agent *agent, struct sockaddr_storage *addr)
{
	cm_addr_export(&agent->addr, addr);
}

uint64_t cm_agent_incarnation(const struct cm_agent *agent)
{
	return agent->inc;
}

void cm_agent_stats(struct cm_agent *agent, struct cm_stats *stats)
{
	cm_node_lock(agent->node);
	*stats = agent->stats;
	cm_node_unlock(agent->node);
}

/* Withdraws every request; peers without a conn go with it. */
static void cm_agent_drop_reqs(struct cm_agent *agent)
{
	/* No slot comes free for those that wait. */
	agent->req_slot_cnt += CM_REQ_SLOTS;
	for (size_t i = 0; i < agent->peers.bucket_cnt; i++)
		for (struct cm_peer *peer = agent->peers.buckets[i]; peer; peer = peer->hash_next)
			cm_req_cancel(peer);
}

static void cm_agent_orphan_conns(struct cm_agent *agent)
{
	for (struct util_list *it = agent->conns.next; it != &agent->conns; it = it->next)
		cm_conn_orphan(UTIL_CONTAINER_OF(it, struct cm_conn, agent_link));
}

/* The thread has no event in hand any more: whoever puts an orphan from now on just frees it. */
static void cm_agent_release_orphans(struct cm_agent *agent)
{
	struct util_list *first;

	while ((first = util_list_pop(&agent->conns)))
		__atomic_store_n(&UTIL_CONTAINER_OF(first, struct cm_conn, agent_link)->node, NULL,
				 __ATOMIC_RELEASE);
}

void cm_agent_close(struct cm_agent *agent)
{
	struct cm_node *node = agent->node;

	cm_node_lock(node);
	if (agent->call)
		cm_call_end(agent->call);
	cm_agent_drop_reqs(agent);
	cm_agent_orphan_conns(agent);
	cm_accept_drop_callers(agent);
	cm_node_disarm(node, &agent->listen_timer);
	cm_src_close(node, &agent->udp);
	cm_src_close(node, &agent->listen);
	cm_node_wait_pass(node);
	cm_agent_release_orphans(agent);
	node->agent_cnt--;
	cm_node_unlock(node);
	cm_peer_table_fini(&agent->peers);
	free(agent);
}

static int cm_agent_check_peer(const struct cm_agent *agent, const union cm_addr *to)
{
	char text[CM_ADDR_TEXT_MAX];

	if (to->sa.sa_family == agent->addr.sa.sa_family && cm_addr_is_peer(to) &&
	    !cm_addr_is_equal(to, &agent->addr))
		return 0;
	UTIL_WARN(EP_CTRL, "%s is no address that this endpoint could connect to\n",
		  cm_addr_print(to, text));
	return -FI_EINVAL;
}

void cm_agent_make_private(struct cm_agent *agent)
{
	cm_node_lock(agent->node);
	cm_agent_admit(agent, NULL, 0);
	cm_node_unlock(agent->node);
}

void cm_agent_admit(struct cm_agent *agent, const union cm_addr *addr, uint64_t inc)
{
	static const union cm_addr nobody;

	agent->is_private = true;
	agent->only = addr ? *addr : nobody;
	agent->only_inc = inc;
}

bool cm_agent_admits(const struct cm_agent *agent, const union cm_addr *addr, uint64_t inc)
{
	return !agent->is_private ||
	       (inc == agent->only_inc && cm_addr_is_equal(addr, &agent->only));
}

int cm_agent_connect(struct cm_agent *agent, const union cm_addr *to)
{
	int ret = cm_agent_check_peer(agent, to);
	struct cm_peer *peer;

	if (ret)
		return ret;
	peer = cm_peer_get(agent, to);
	if (!peer)
		return -FI_ENOMEM;
	if (!peer->req)
		ret = cm_req_open(peer);
	cm_peer_settle(peer);
	return ret;
}

void cm_agent_forget(struct cm_agent *agent, const union cm_addr *to)
{
	struct cm_peer *peer = cm_peer_find(agent, to);

	if (!peer)
		return;
	cm_req_cancel(peer);
	cm_peer_settle(peer);
}

int cm_connect(struct cm_agent *agent, const struct sockaddr *addr)
{
	union cm_addr to;
	int ret = cm_addr_import(addr, &to);

	if (ret)
		return ret;
	cm_node_lock(agent->node);
	ret = cm_agent_connect(agent, &to);
	cm_node_unlock(agent->node);
	return ret;
}

void cm_connect_cancel(struct cm_agent *agent, const struct sockaddr *addr)
{
	union cm_addr to;

	if (cm_addr_import(addr, &to))
		return;
	cm_node_lock(agent->node);
	cm_agent_forget(agent, &to);
	cm_node_unlock(agent->node);
}
