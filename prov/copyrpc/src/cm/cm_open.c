/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens and closes CM endpoints: cm_ep_open and cm_ep_close of cm.h. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cm/base/cm_fd.h"
#include "cm/conn/cm_conn.h"
#include "cm/conn/cm_incoming.h"
#include "cm/conn/cm_req.h"
#include "cm/conn/cm_udp.h"
#include "cm/conn/cm_unused.h"
#include "cm/ep/cm_ep.h"
#include "cm/msg/cm_connreq.h"
#include "util/clock.h"
#include "util/iface.h"
#include "util/job.h"
#include "util/log.h"
#include "util/param.h"

#define CM_EP_PORT_TRIES 16u /* ports that are taken at one of the addresses */

/* Writes the addresses to open: those of the name, or for a wildcard the best of this host. */
static int cm_ep_choose_addrs(const struct sockaddr *addr, union cm_addr *list, unsigned *cnt)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct sockaddr_storage best;
	int ret;

	*cnt = cm_addr_import_name(addr ? addr : (struct sockaddr *)&any, list);
	if (!*cnt)
		return -FI_EINVAL;
	if (!cm_addr_is_wildcard(&list[0]))
		return 0;
	ret = cm_addr_resolve(&list[0]);
	if (ret)
		return ret;
	cm_addr_export(&list[0], &best);
	util_iface_add_others((struct sockaddr *)&best, util_params.iface);
	*cnt = cm_addr_import_name((struct sockaddr *)&best, list);
	return 0;
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
	for (uint32_t i = 0; i < UTIL_NAME_ADDRS; i++) {
		cm_src_init(&cep->socks[i].src, cm_udp_on_ready);
		cep->socks[i].cep = cep;
	}
	cm_src_init(&cep->listen, cm_incoming_on_listen);
	cm_timer_init(&cep->listen_timer, cm_incoming_on_pause_over);
	cm_timer_init(&cep->tick_timer, cm_ep_on_tick);
	cm_cookie_init(&cep->jar);
	cm_mac_random_name(cep->name, sizeof(cep->name));
	cep->inc = cm_mac_random();
	cep->uid = geteuid();
	util_job_self(&cep->self);
	cep->unused_max = CM_UNUSED_MAX;
	cep->held_max = CM_HELD_MAX;
	util_list_init(&cep->conns);
	util_list_init(&cep->incoming);
	util_list_init(&cep->req_queue);
	util_list_init(&cep->pending);
}

/* Closes all UDP sockets, whether the node watches them already or not. */
static void cm_ep_unwatch(struct cm_ep *cep, const int *udp_fds)
{
	for (uint32_t i = 0; i < cep->sock_cnt; i++) {
		if (cep->socks[i].src.fd < 0)
			close(udp_fds[i]);
		else
			cm_src_close(cep->node, &cep->socks[i].src);
	}
	cm_node_wait_pass(cep->node);
}

static int cm_ep_watch(struct cm_ep *cep, const int *udp_fds, int listen_fd)
{
	int ret = 0;

	cm_node_lock(cep->node);
	for (uint32_t i = 0; i < cep->sock_cnt && !ret; i++)
		ret = cm_src_open(cep->node, &cep->socks[i].src, udp_fds[i]);
	if (!ret)
		ret = cm_src_open(cep->node, &cep->listen, listen_fd);
	if (!ret) {
		cep->node->cep_cnt++;
		cm_ep_arm_tick(cep);
	} else {
		cm_ep_unwatch(cep, udp_fds);
	}
	cm_node_unlock(cep->node);
	return ret;
}

/* Binds a socket at `addr`, and makes it the next of the endpoint. Returns 0 or -FI_E*. */
static int cm_ep_add_sock(struct cm_ep *cep, const union cm_addr *addr, int *fds)
{
	struct cm_ep_sock *sock = &cep->socks[cep->sock_cnt];
	int fd;

	sock->addr = *addr;
	fd = cm_udp_bind(&sock->addr);
	if (fd < 0)
		return fd;
	sock->prefix_len = util_iface_prefix_of(&sock->addr.sa);
	fds[cep->sock_cnt++] = fd;
	return 0;
}

/*
 * Binds the further addresses to the port of the first. Returns false if it is taken at one of them
 * and `is_strict`; otherwise such an address is left out.
 */
static bool cm_ep_bind_others(struct cm_ep *cep, const union cm_addr *list, unsigned cnt,
			      bool is_strict, int *fds)
{
	char text[CM_ADDR_TEXT_MAX];

	for (unsigned i = 1; i < cnt; i++) {
		union cm_addr addr = list[i];
		int ret;

		cm_addr_set_port(&addr, cm_addr_port(&cep->addr));
		ret = cm_ep_add_sock(cep, &addr, fds);
		if (ret == -FI_EADDRINUSE && is_strict)
			return false;
		if (ret)
			UTIL_INFO(EP_CTRL, "peers cannot use %s: %s\n", cm_addr_print(&addr, text),
				  fi_strerror(-ret));
	}
	return true;
}

/*
 * Binds the UDP sockets, all to one port. Returns 0, -FI_E*, or with `is_strict` -FI_EAGAIN: the
 * port is taken at a further address, and only fds[0] is open.
 */
static int cm_ep_bind_all(struct cm_ep *cep, const union cm_addr *list, unsigned cnt,
			  bool is_strict, int *fds)
{
	int ret;

	cep->sock_cnt = 0;
	ret = cm_ep_add_sock(cep, &list[0], fds);
	if (ret)
		return ret;
	cep->addr = cep->socks[0].addr;
	if (cm_ep_bind_others(cep, list, cnt, is_strict, fds))
		return 0;
	while (cep->sock_cnt > 1)
		close(fds[--cep->sock_cnt]);
	return -FI_EAGAIN;
}

/*
 * Binds the UDP sockets to a port that is free at all addresses, or if none is found, to one that
 * is free at the first. Ports that were found unfit stay bound meanwhile, so that the system does
 * not choose them again.
 */
static int cm_ep_bind(struct cm_ep *cep, const union cm_addr *list, unsigned cnt, int *fds)
{
	int unfit[CM_EP_PORT_TRIES], ret = -FI_EAGAIN;
	unsigned unfit_cnt = 0;

	if (cm_addr_port(&list[0]))
		return cm_ep_bind_all(cep, list, cnt, false, fds);
	while (ret == -FI_EAGAIN && unfit_cnt < CM_EP_PORT_TRIES) {
		ret = cm_ep_bind_all(cep, list, cnt, true, fds);
		if (ret == -FI_EAGAIN)
			unfit[unfit_cnt++] = fds[0];
	}
	while (unfit_cnt)
		close(unfit[--unfit_cnt]);
	return ret ? cm_ep_bind_all(cep, list, cnt, false, fds) : 0;
}

static int cm_ep_open_fds(struct cm_ep *cep, const union cm_addr *list, unsigned cnt)
{
	int udp_fds[UTIL_NAME_ADDRS], listen_fd, ret = cm_ep_bind(cep, list, cnt, udp_fds);

	if (ret)
		return ret;
	listen_fd = cm_fd_listen(cep->name);
	if (listen_fd < 0) {
		ret = listen_fd;
		goto err_close_udp;
	}
	ret = cm_ep_watch(cep, udp_fds, listen_fd);
	if (ret)
		close(listen_fd);
	return ret;

err_close_udp:
	for (uint32_t i = 0; i < cep->sock_cnt; i++)
		close(udp_fds[i]);
	return ret;
}

int cm_ep_open(struct cm_node *node, const struct sockaddr *addr, struct cm_paths paths,
	       const struct cm_ep_ops *ops, void *ctx, struct cm_ep **out)
{
	struct cm_ep *cep = calloc(1, sizeof(*cep));
	union cm_addr list[UTIL_NAME_ADDRS];
	char text[CM_ADDR_TEXT_MAX];
	unsigned cnt;
	int ret;

	if (!cep)
		return -FI_ENOMEM;
	cep->node = node;
	cep->paths = paths;
	cep->ops = ops;
	cep->ctx = ctx;
	cep->stats = &cep->own_stats;
	cm_ep_init(cep);
	ret = cm_ep_choose_addrs(addr, list, &cnt);
	if (!ret)
		ret = cm_ep_open_fds(cep, list, cnt);
	if (ret) {
		UTIL_WARN(EP_CTRL, "no endpoint at %s: %s%s\n", cm_addr_print(&list[0], text),
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
	struct cm_peer_node *node;

	/* Keeps queued requests from starting when slots become free. */
	cep->req_slot_cnt += CM_REQ_SLOTS;
	for (size_t i = 0; i < cep->peers.bucket_cnt; i++)
		for (node = cep->peers.buckets[i]; node; node = node->hash_next)
			cm_req_cancel(node->peer);
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
	cm_incoming_drop_all(cep);
	cm_node_disarm(node, &cep->listen_timer);
	cm_node_disarm(node, &cep->tick_timer);
	for (uint32_t i = 0; i < cep->sock_cnt; i++)
		cm_src_close(node, &cep->socks[i].src);
	cm_incoming_close_listener(cep);
	cm_node_wait_pass(node);
	cm_ep_release_orphans(cep);
	node->cep_cnt--;
	cm_node_unlock(node);
	cm_peer_table_fini(&cep->peers);
	cm_ended_fini(&cep->ended);
	free(cep);
}
