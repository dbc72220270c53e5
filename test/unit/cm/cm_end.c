/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CM endpoint with an engine that records its up-calls: see cm_fixture.h. */
#include "unit/cm/cm_fixture.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cm/base/cm_addr.h"
#include "cm/node/cm_node.h"

static int cm_end_prepare(void *ctx, struct cm_conn *conn, struct cm_params *params, void **user)
{
	struct cm_end *end = ctx;
	struct cm_end_conn *c = calloc(1, sizeof(*c));
	int ret;

	if (end->on_prepare)
		end->on_prepare(end);
	pthread_mutex_lock(&end->lock);
	ret = end->no_path & params->path ? -FI_ENOMEM : end->prepare_ret;
	end->prepared++;
	end->features = params->features;
	for (uint32_t i = 0; i < end->fd_cnt && params->path == WIRE_CM_PATH_SHM; i++) {
		params->dev.fds[i] = cm_test_memfd(end->text);
		if (params->dev.fds[i] < 0)
			ret = params->dev.fds[i];
		else
			params->dev.fd_cnt++;
	}
	params->engine_len = 3;
	memcpy(params->engine, "eng", 3);
	params->dev.len = 5;
	memcpy(params->dev.bytes, "bytes", 5);
	if (ret) {
		free(c);
	} else {
		c->end = end;
		c->cm = conn;
		util_list_push_back(&end->conns, &c->link);
		*user = c;
	}
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
	return ret;
}

static int cm_end_establish(void *ctx, struct cm_conn *conn, void *user,
			    const struct cm_params *peer)
{
	struct cm_end *end = ctx;
	struct cm_end_conn *c = user;
	int ret;

	pthread_mutex_lock(&end->lock);
	ret = end->establish_ret;
	end->established++;
	c->pid = peer->dev.pid;
	if (peer->dev.fd_cnt)
		CM_CHECK(pread(peer->dev.fds[0], c->text, sizeof(c->text) - 1, 0) > 0);
	if (peer->engine_len)
		CM_CHECK(peer->engine_len == 3 && !memcmp(peer->engine, "eng", 3));
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
	return ret;
}

static void cm_end_on_up(void *ctx, struct cm_conn *conn, void *user, bool requested)
{
	struct cm_end *end = ctx;
	struct cm_end_conn *c = user;

	pthread_mutex_lock(&end->lock);
	c->is_up = true;
	end->up++;
	end->requested += requested;
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
}

static void cm_end_on_down(void *ctx, struct cm_conn *conn, void *user, int err)
{
	struct cm_end *end = ctx;
	struct cm_end_conn *c = user;

	pthread_mutex_lock(&end->lock);
	CM_CHECK(!c->is_down);
	c->is_down = true;
	if (c->is_up) {
		end->down++;
		end->down_err = err;
	}
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
}

static void cm_end_on_failed(void *ctx, const struct sockaddr *addr, int err, const char *why)
{
	struct cm_end *end = ctx;

	pthread_mutex_lock(&end->lock);
	end->failed++;
	end->failed_err = err;
	snprintf(end->why, sizeof(end->why), "%s", why);
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
}

static void cm_end_on_alias(void *ctx, const struct sockaddr *addr, uint64_t incarnation)
{
	struct cm_end *end = ctx;

	pthread_mutex_lock(&end->lock);
	CM_CHECK(!cm_addr_import(addr, &end->alias));
	end->alias_inc = incarnation;
	end->aliased++;
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
}

static void cm_end_note(struct cm_end *end, unsigned *counter, const void *data, size_t len)
{
	if (len)
		memcpy(end->data, data, len);
	end->data[len] = '\0';
	(*counter)++;
	pthread_cond_broadcast(&end->changed);
}

static void cm_end_on_accepted(void *ctx, const struct sockaddr *addr, const void *data, size_t len)
{
	struct cm_end *end = ctx;

	pthread_mutex_lock(&end->lock);
	cm_end_note(end, &end->accepted, data, len);
	pthread_mutex_unlock(&end->lock);
}

static void cm_end_on_refused(void *ctx, int err, const void *data, size_t len)
{
	struct cm_end *end = ctx;

	pthread_mutex_lock(&end->lock);
	end->refused_err = err;
	cm_end_note(end, &end->refused, data, len);
	pthread_mutex_unlock(&end->lock);
}

static uint64_t cm_end_last_rx_ns(void *ctx, struct cm_conn *cm, void *user)
{
	struct cm_end *end = ctx;
	uint64_t last_rx_ns;

	pthread_mutex_lock(&end->lock);
	end->last_rx_cnt++;
	last_rx_ns = end->last_rx_ns;
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
	return last_rx_ns;
}

static const struct cm_ep_ops cm_end_ops = {
	.prepare = cm_end_prepare,
	.establish = cm_end_establish,
	.up = cm_end_on_up,
	.down = cm_end_on_down,
	.last_rx_ns = cm_end_last_rx_ns,
	.failed = cm_end_on_failed,
	.alias = cm_end_on_alias,
	.accepted = cm_end_on_accepted,
	.refused = cm_end_on_refused,
};

struct cm_paths cm_test_paths = { WIRE_CM_PATH_SHM, { WIRE_CM_PATH_SHM } };

static void cm_end_init(struct cm_end *end)
{
	pthread_condattr_t attr;

	memset(end, 0, sizeof(*end));
	pthread_mutex_init(&end->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&end->changed, &attr);
	pthread_condattr_destroy(&attr);
	util_list_init(&end->conns);
	end->fd_cnt = 1;
}

void cm_end_open(struct cm_end *end, struct cm_node *node, const char *ip, uint16_t port)
{
	union cm_addr addr;

	cm_test_addr(ip, port, &addr);
	cm_end_open_at(end, node, &addr);
}

void cm_end_open_at(struct cm_end *end, struct cm_node *node, const union cm_addr *addr)
{
	int ret;

	cm_end_init(end);
	end->node = node;
	/* Before the endpoint is open: up-calls may come from then on. */
	snprintf(end->text, sizeof(end->text), "end %p", (void *)end);
	ret = cm_ep_open(node, &addr->sa, cm_test_paths, &cm_end_ops, end, &end->cep);
	CM_CHECK(!ret);
	cm_ep_addr(end->cep, &end->addr);
}

static void cm_end_put(struct cm_end *end, struct cm_end_conn *c)
{
	cm_conn_put(c->cm);
	pthread_mutex_lock(&end->lock);
	util_list_remove(&c->link);
	pthread_mutex_unlock(&end->lock);
	free(c);
}

void cm_end_close(struct cm_end *end)
{
	struct util_list *first;

	cm_ep_close(end->cep);
	while ((first = util_list_first(&end->conns)))
		cm_end_put(end, UTIL_CONTAINER_OF(first, struct cm_end_conn, link));
	pthread_cond_destroy(&end->changed);
	pthread_mutex_destroy(&end->lock);
}

struct cm_node *cm_ends_open(int timeout_ms, struct cm_end *a, struct cm_end *b)
{
	struct cm_node *node = cm_test_node(NULL, timeout_ms);

	cm_end_open(a, node, "127.0.0.1", 0);
	if (b)
		cm_end_open(b, node, "127.0.0.1", 0);
	return node;
}

void cm_ends_close(struct cm_node *node, struct cm_end *a, struct cm_end *b)
{
	cm_end_close(a);
	if (b)
		cm_end_close(b);
	cm_node_close(node);
}

int cm_end_connect(struct cm_end *end, const struct cm_end *to)
{
	return cm_connect(end->cep, (const struct sockaddr *)&to->addr, false);
}

bool cm_end_wait(struct cm_end *end, const unsigned *counter, unsigned cnt, int ms)
{
	struct timespec until;
	bool ok;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (ms % 1000) * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&end->lock);
	while (*counter < cnt && !pthread_cond_timedwait(&end->changed, &end->lock, &until))
		;
	ok = *counter >= cnt;
	pthread_mutex_unlock(&end->lock);
	return ok;
}

void cm_ends_connect(struct cm_end *from, struct cm_end *to, unsigned cnt)
{
	CM_CHECK(!cm_end_connect(from, to));
	CM_CHECK(cm_end_wait(from, &from->up, cnt, CM_TEST_WAIT_MS));
	CM_CHECK(cm_end_wait(to, &to->up, cnt, CM_TEST_WAIT_MS));
}

unsigned cm_end_get(struct cm_end *end, const unsigned *counter)
{
	unsigned v;

	pthread_mutex_lock(&end->lock);
	v = *counter;
	pthread_mutex_unlock(&end->lock);
	return v;
}

/* Returns the first conn that is down (or live), or NULL. */
static struct cm_end_conn *cm_end_find(struct cm_end *end, bool is_down)
{
	struct cm_end_conn *found = NULL;

	pthread_mutex_lock(&end->lock);
	for (struct util_list *it = end->conns.next; it != &end->conns && !found; it = it->next) {
		struct cm_end_conn *c = UTIL_CONTAINER_OF(it, struct cm_end_conn, link);

		if (is_down ? c->is_down : c->is_up && !c->is_down)
			found = c;
	}
	pthread_mutex_unlock(&end->lock);
	return found;
}

unsigned cm_end_reap(struct cm_end *end)
{
	struct cm_end_conn *c;
	unsigned cnt = 0;

	for (; (c = cm_end_find(end, true)); cnt++)
		cm_end_put(end, c);
	return cnt;
}

unsigned cm_end_live(struct cm_end *end)
{
	unsigned cnt = 0;

	pthread_mutex_lock(&end->lock);
	for (struct util_list *it = end->conns.next; it != &end->conns; it = it->next) {
		struct cm_end_conn *c = UTIL_CONTAINER_OF(it, struct cm_end_conn, link);

		cnt += c->is_up && !c->is_down;
	}
	pthread_mutex_unlock(&end->lock);
	return cnt;
}

bool cm_end_put_live(struct cm_end *end)
{
	struct cm_end_conn *c = cm_end_find(end, false);

	if (c)
		cm_end_put(end, c);
	return c;
}

bool cm_end_break_live(struct cm_end *end, bool came)
{
	struct cm_end_conn *c = cm_end_find(end, false);

	if (c)
		cm_conn_break(c->cm, came);
	return c && cm_end_put_live(end);
}

void cm_end_check_text(struct cm_end *end, const char *text)
{
	struct cm_end_conn *c = cm_end_find(end, false);

	CM_CHECK(c);
	cr_assert_str_eq(c->text, text);
}

struct copyrpc_stats_handshakes cm_end_stats(struct cm_end *end)
{
	struct copyrpc_stats_handshakes stats;

	cm_ep_stats(end->cep, &stats);
	return stats;
}
