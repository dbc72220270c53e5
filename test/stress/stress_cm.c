/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of the handshake: applications use it from many threads at once.
 *
 * Eight endpoints on two nodes, over a network that loses and repeats datagrams. Four threads
 * connect, withdraw, close connections and restart endpoints at random. Every engine checks the
 * order of its up-calls: establish, up and down at most once each, up not before establish, none
 * after the endpoint is closed. At the end every endpoint connects to every other, receives a
 * reply, and nothing is left open.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cm/base/cm.h"
#include "support/check.h"
#include "support/proc.h"
#include "support/rng.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/stats.h"
#include "wire/wire_cm.h"

#define ENDS    4
#define NODES   2
#define THREADS 4
#define SECONDS 8

/** Endpoint. `use` is locked for reading during calls of cm, for writing during a restart. */
struct end {
	pthread_rwlock_t use;
	struct cm_node *node;
	struct cm_ep *cep;
	struct sockaddr_storage addr;
	pthread_mutex_t lock; /* locked last; guards the fields below */
	struct util_list conns;
	bool is_open;
	unsigned asked, failed;
};

struct conn {
	struct util_list link;
	struct cm_conn *cm;
	bool is_established, is_up, is_down;
};

static struct cm_node *nodes[NODES];
static struct end ends[NODES * ENDS];
static unsigned ups, downs, fails, restarts;

static int on_prepare(void *ctx, struct cm_conn *cm, struct cm_params *half, void **user)
{
	struct end *end = ctx;
	struct conn *conn = calloc(1, sizeof(*conn));

	CHECK(conn);
	conn->cm = cm;
	if (half->path == WIRE_CM_PATH_SHM) {
		half->dev.fds[0] = dup(0);
		half->dev.fd_cnt = 1;
	}
	*user = conn;
	pthread_mutex_lock(&end->lock);
	CHECK(end->is_open);
	util_list_push_back(&end->conns, &conn->link);
	pthread_mutex_unlock(&end->lock);
	return 0;
}

static int on_establish(void *ctx, struct cm_conn *cm, void *user, const struct cm_params *peer)
{
	struct end *end = ctx;
	struct conn *conn = user;

	CHECK(peer->dev.fd_cnt <= 1);
	pthread_mutex_lock(&end->lock);
	CHECK(end->is_open && !conn->is_established && !conn->is_up && !conn->is_down);
	conn->is_established = true;
	pthread_mutex_unlock(&end->lock);
	return 0;
}

static void on_up(void *ctx, struct cm_conn *cm, void *user, bool asked)
{
	struct end *end = ctx;
	struct conn *conn = user;

	pthread_mutex_lock(&end->lock);
	CHECK(end->is_open && conn->is_established && !conn->is_down);
	CHECK(asked || !conn->is_up);
	conn->is_up = true;
	end->asked += asked;
	__atomic_fetch_add(&ups, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&end->lock);
}

static void on_down(void *ctx, struct cm_conn *cm, void *user, int err)
{
	struct end *end = ctx;
	struct conn *conn = user;

	CHECK(err < 0);
	pthread_mutex_lock(&end->lock);
	CHECK(end->is_open && !conn->is_down);
	conn->is_down = true;
	__atomic_fetch_add(&downs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&end->lock);
}

static void on_failed(void *ctx, const struct sockaddr *addr, int err, const char *why)
{
	struct end *end = ctx;

	CHECK(err < 0 && why);
	pthread_mutex_lock(&end->lock);
	CHECK(end->is_open);
	end->failed++;
	__atomic_fetch_add(&fails, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&end->lock);
}

static const struct cm_ep_ops ops = {
	.prepare = on_prepare,
	.establish = on_establish,
	.up = on_up,
	.down = on_down,
	.failed = on_failed,
};

/* Sends with loss and repetition. Called under the node's lock. */
static ssize_t lossy_send(void *ctx, int fd, const void *buf, size_t len, const struct sockaddr *to,
			  socklen_t to_len)
{
	struct rng *rng = ctx;

	if (rng_chance(rng, 1, 10))
		return (ssize_t)len;
	if (rng_chance(rng, 1, 10))
		sendto(fd, buf, len, MSG_DONTWAIT, to, to_len);
	return sendto(fd, buf, len, MSG_DONTWAIT, to, to_len);
}

/** Opens an endpoint. Every second one prefers shared memory, the others the NIC. */
static void end_open(struct end *end)
{
	struct cm_paths paths = { WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC,
				  { (end - ends) % 2 ? WIRE_CM_PATH_SHM : WIRE_CM_PATH_NIC } };

	pthread_mutex_lock(&end->lock);
	end->is_open = true;
	pthread_mutex_unlock(&end->lock);
	CHECK(!cm_ep_open(end->node, (struct sockaddr *)&end->addr, paths, &ops, end, &end->cep));
}

/*
 * Removes a connection that is down, or with `any` one that is up. Returns it for the caller to
 * put, or NULL.
 */
static struct conn *end_take(struct end *end, bool any)
{
	struct conn *found = NULL;

	pthread_mutex_lock(&end->lock);
	for (struct util_list *it = end->conns.next; it != &end->conns && !found; it = it->next) {
		struct conn *conn = UTIL_CONTAINER_OF(it, struct conn, link);

		if (conn->is_down || (any && conn->is_up))
			found = conn;
	}
	if (found)
		util_list_remove(&found->link);
	pthread_mutex_unlock(&end->lock);
	return found;
}

static void conn_put(struct conn *conn)
{
	if (!conn)
		return;
	cm_conn_put(conn->cm);
	free(conn);
}

static void end_close(struct end *end)
{
	struct util_list *first;

	cm_ep_close(end->cep);
	pthread_mutex_lock(&end->lock);
	end->is_open = false;
	pthread_mutex_unlock(&end->lock);
	while ((first = util_list_pop(&end->conns)))
		conn_put(UTIL_CONTAINER_OF(first, struct conn, link));
}

static void end_restart(struct end *end)
{
	pthread_rwlock_wrlock(&end->use);
	end_close(end);
	end_open(end);
	pthread_rwlock_unlock(&end->use);
	__atomic_fetch_add(&restarts, 1, __ATOMIC_RELAXED);
}

static void step(struct rng *rng)
{
	struct end *end = &ends[rng_below(rng, NODES * ENDS)];
	struct end *to = &ends[rng_below(rng, NODES * ENDS)];
	uint64_t what = rng_below(rng, 1000);

	if (what == 0) {
		end_restart(end);
		return;
	}
	pthread_rwlock_rdlock(&end->use);
	if (what < 500 && to != end)
		CHECK(!cm_connect(end->cep, (struct sockaddr *)&to->addr, false));
	else if (what < 550)
		cm_connect_cancel(end->cep, (struct sockaddr *)&to->addr);
	else
		conn_put(end_take(end, what < 750));
	pthread_rwlock_unlock(&end->use);
}

static void *worker(void *arg)
{
	struct rng rng = { (uint64_t)(uintptr_t)arg };
	uint64_t end_ns = util_clock_ns() + SECONDS * UTIL_NS_PER_S;

	while (util_clock_ns() < end_ns) {
		step(&rng);
		if (rng_chance(&rng, 1, 20))
			usleep((useconds_t)rng_below(&rng, 300));
	}
	return NULL;
}

/* Connects every endpoint to every other, until all have received a reply. */
static void finish(void)
{
	for (int i = 0; i < NODES * ENDS; i++) {
		struct end *end = &ends[i];

		for (int k = 0; k < NODES * ENDS; k++)
			cm_connect_cancel(end->cep, (struct sockaddr *)&ends[k].addr);
		pthread_mutex_lock(&end->lock);
		end->asked = end->failed = 0;
		pthread_mutex_unlock(&end->lock);
		for (int k = 0; k < NODES * ENDS; k++)
			if (i != k)
				CHECK(!cm_connect(end->cep, (struct sockaddr *)&ends[k].addr,
						  false));
	}
	for (int i = 0; i < NODES * ENDS; i++) {
		unsigned replies = 0;

		for (int ms = 0; ms < 200000 && replies < NODES * ENDS - 1; ms++) {
			usleep(1000);
			conn_put(end_take(&ends[i], false));
			pthread_mutex_lock(&ends[i].lock);
			replies = ends[i].asked;
			CHECK(!ends[i].failed);
			pthread_mutex_unlock(&ends[i].lock);
		}
		CHECK(replies == NODES * ENDS - 1);
	}
}

static void set_up(struct rng *rngs)
{
	for (int i = 0; i < NODES; i++) {
		struct cm_cfg cfg = { .job_key = "stress",
				      .udp_send = lossy_send,
				      .udp_send_ctx = &rngs[i] };

		CHECK(!cm_node_open_cfg(&cfg, &nodes[i]));
	}
	for (int i = 0; i < NODES * ENDS; i++) {
		struct end *end = &ends[i];
		struct sockaddr_in loopback = { .sin_family = AF_INET };

		loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		memcpy(&end->addr, &loopback, sizeof(loopback));
		end->node = nodes[i % NODES];
		pthread_rwlock_init(&end->use, NULL);
		pthread_mutex_init(&end->lock, NULL);
		util_list_init(&end->conns);
		end_open(end);
		cm_ep_addr(end->cep, &end->addr); /* the port stays the same across restarts */
	}
}

int main(void)
{
	struct rng rngs[NODES] = { { 1 }, { 2 } };
	pthread_t threads[THREADS];
	unsigned fds;

	CHECK(util_stats_make_page()); /* holds a descriptor until the end */
	fds = proc_fd_cnt(getpid());
	set_up(rngs);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, worker, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	finish();
	for (int i = 0; i < NODES * ENDS; i++)
		end_close(&ends[i]);
	for (int i = 0; i < NODES; i++)
		cm_node_close(nodes[i]);
	CHECK(proc_fd_cnt(getpid()) == fds);
	printf("%u up, %u down, %u failed, %u restarts\n", ups, downs, fails, restarts);
	return 0;
}
