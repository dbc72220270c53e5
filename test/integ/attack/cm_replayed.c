/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Honest processes connect to a server without a job key, while an attacker on the path between
 * them reads all their packets. It sends copies again at any time, alters one bit of copies or of
 * the packets themselves, and delays packets. No established connection may end, and every client
 * has to connect.
 *
 * All ends are CM endpoints of this process whose engine only counts. The attacker takes the place
 * of sendto, so its packets have the senders' addresses. With `forge` it computes the digest of
 * what it alters, once all are connected: without a job key such an attacker does end connections,
 * which shows that the test would notice.
 *
 * usage: cm_replayed [clients [seconds [none|attack|forge]]]
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include "cm/base/cm.h"
#include "cm/base/cm_mac.h"
#include "integ/fab.h"
#include "wire/wire_cm.h"

#define CLIENTS_MAX 400
#define RECORDS     2048u
#define HELD_MAX    64u
#define TIMEOUT_MS  8000 /* a PING each second */
#define LIMIT       60.0 /* seconds for all to connect */

struct end {
	struct cm_ep *cep;
	struct sockaddr_storage addr;
	struct cm_conn *conn; /* a client's */
	double asked, up;     /* seconds */
	unsigned up_cnt, ended_cnt, failed_cnt;
};

struct record {
	uint8_t buf[WIRE_CM_MAX];
	size_t len;
	int fd;
	struct sockaddr_in to;
};

enum mode { NONE, ATTACK, FORGE };

static volatile enum mode mode;
static struct end server, clients[CLIENTS_MAX];
static int client_cnt = 300;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the attacker's state */
static struct record records[RECORDS], held[HELD_MAX];
static uint32_t record_cnt, held_cnt;
static uint64_t replayed_cnt, altered_cnt, delayed_cnt, rng = 88172645463325252ull;
static bool stop;

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* ---- the attacker ---- */

static void inject(const struct record *r)
{
	(void)!sendto(r->fd, r->buf, r->len, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&r->to, sizeof(r->to));
}

static void inject_altered(const struct record *r)
{
	struct record bad = *r;
	size_t bit = next_random() % (8 * r->len);
	struct cm_mac_key none = { .is_set = false };

	bad.buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	if (mode == FORGE)
		cm_mac_seal(&none, NULL, NULL, bad.buf, bad.len);
	altered_cnt++;
	inject(&bad);
}

static void replay_one(void)
{
	const struct record *r;

	if (!record_cnt)
		return;
	r = &records[next_random() % (record_cnt < RECORDS ? record_cnt : RECORDS)];
	if (next_random() % 2) {
		inject_altered(r);
	} else {
		replayed_cnt++;
		inject(r);
	}
}

static void release_one(void)
{
	uint32_t i;

	if (!held_cnt)
		return;
	i = (uint32_t)(next_random() % held_cnt);
	inject(&held[i]);
	held[i] = held[--held_cnt];
}

/** Replaces sendto: passes a packet on, alters it, or holds it back, and adds others. */
static ssize_t on_path(void *ctx, int fd, const void *buf, size_t len, const struct sockaddr *to,
		       socklen_t to_len)
{
	struct record *r;

	(void)ctx;
	if (mode == NONE)
		return sendto(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL, to, to_len);
	pthread_mutex_lock(&lock);
	r = &records[record_cnt++ % RECORDS];
	memcpy(r->buf, buf, len);
	r->len = len;
	r->fd = fd;
	memcpy(&r->to, to, sizeof(r->to));
	if (next_random() % 16 == 0) {
		inject_altered(r);
	} else if (next_random() % 8 == 0 && held_cnt < HELD_MAX) {
		held[held_cnt++] = *r;
		delayed_cnt++;
	} else {
		if (next_random() % 2)
			inject_altered(r);
		inject(r);
		inject_altered(r);
	}
	if (next_random() % 4 == 0)
		release_one();
	replay_one();
	pthread_mutex_unlock(&lock);
	return (ssize_t)len;
}

/** Sends copies at any time. */
static void *attack(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&lock);
		for (int i = 0; i < 20; i++)
			replay_one();
		release_one();
		pthread_mutex_unlock(&lock);
		usleep(1000);
	}
	return NULL;
}

/* ---- the honest ends: an engine that counts ---- */

static int on_prepare(void *ctx, struct cm_conn *conn, struct cm_params *params, void **user)
{
	params->engine_len = 6;
	memcpy(params->engine, "honest", 6);
	*user = ctx;
	((struct end *)ctx)->conn = conn;
	return 0;
}

static int on_establish(void *ctx, struct cm_conn *conn, void *user, const struct cm_params *peer)
{
	(void)ctx, (void)conn, (void)user;
	FAB_TRUE(mode == FORGE || (peer->engine_len == 6 && !memcmp(peer->engine, "honest", 6)));
	return 0;
}

static void on_up(void *ctx, struct cm_conn *conn, void *user, bool requested)
{
	struct end *end = ctx;

	(void)user, (void)requested;
	end->conn = conn;
	end->up = fab_seconds();
	__atomic_add_fetch(&end->up_cnt, 1, __ATOMIC_RELEASE);
}

static void on_down(void *ctx, struct cm_conn *conn, void *user, int err)
{
	struct end *end = ctx;

	(void)conn, (void)user;
	/* A client is up until here or its attempt failed, which cm retries. */
	if (end != &server && end->up_cnt)
		__atomic_add_fetch(&end->ended_cnt, 1, __ATOMIC_RELEASE);
	if (err == -FI_ESHUTDOWN || err == -FI_ECONNABORTED || err == -FI_EIO)
		__atomic_add_fetch(&server.ended_cnt, end == &server, __ATOMIC_RELEASE);
}

static void on_failed(void *ctx, const struct sockaddr *addr, int err, const char *why)
{
	struct end *end = ctx;

	(void)addr, (void)err;
	fprintf(stderr, "cm_replayed: %s\n", why);
	__atomic_add_fetch(&end->failed_cnt, 1, __ATOMIC_RELEASE);
}

static const struct cm_ep_ops ops = { .prepare = on_prepare,
				      .establish = on_establish,
				      .up = on_up,
				      .down = on_down,
				      .failed = on_failed };

static bool is_elsewhere(const struct sockaddr *addr)
{
	(void)addr;
	return false;
}

static struct cm_node *node_open(void)
{
	struct cm_cfg cfg = { .peer_timeout_ms = TIMEOUT_MS,
			      .udp_send = on_path,
			      .is_local = is_elsewhere };
	struct cm_node *node = NULL;

	FAB_CHECK(cm_node_open_cfg(&cfg, &node));
	return node;
}

static void end_open(struct end *end, struct cm_node *node)
{
	struct sockaddr_in any = fab_addr("127.0.0.1", 0);
	struct cm_paths paths = { WIRE_CM_PATH_UDP, { WIRE_CM_PATH_UDP } };

	FAB_CHECK(cm_ep_open(node, (struct sockaddr *)&any, paths, &ops, end, &end->cep));
	cm_ep_addr(end->cep, &end->addr);
}

static int up_now(void)
{
	int cnt = 0;

	for (int i = 0; i < client_cnt; i++)
		cnt += __atomic_load_n(&clients[i].up_cnt, __ATOMIC_ACQUIRE) > 0;
	return cnt;
}

static void connect_all(void)
{
	double begin = fab_seconds();
	int i;

	for (i = 0; i < client_cnt; i++) {
		clients[i].asked = fab_seconds();
		FAB_CHECK(cm_connect(clients[i].cep, (struct sockaddr *)&server.addr, false));
	}
	while (up_now() < client_cnt) {
		FAB_TRUE(fab_seconds() - begin < LIMIT);
		usleep(1000);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(double seconds)
{
	double took[CLIENTS_MAX];
	unsigned ended = 0, failed = 0;
	int i;

	for (i = 0; i < client_cnt; i++) {
		took[i] = 1e3 * (clients[i].up - clients[i].asked);
		ended += clients[i].ended_cnt;
		failed += clients[i].failed_cnt;
	}
	qsort(took, (size_t)client_cnt, sizeof(took[0]), by_value);
	printf("cm_replayed: %d connections for %.0f s, %llu packets replayed, %llu altered, %llu "
	       "delayed: %u ended, %u failed; time to connect: median %.1f ms, longest %.1f ms\n",
	       client_cnt, seconds, (unsigned long long)replayed_cnt,
	       (unsigned long long)altered_cnt, (unsigned long long)delayed_cnt, ended, failed,
	       took[client_cnt / 2], took[client_cnt - 1]);
	FAB_TRUE(mode == FORGE || (!ended && !failed));
	FAB_TRUE(mode != FORGE || ended);
}

int main(int argc, char **argv)
{
	struct cm_node *here, *there;
	double seconds = argc > 2 ? atof(argv[2]) : 4.0;
	enum mode wanted = ATTACK;
	pthread_t thread;
	int i;

	client_cnt = argc > 1 ? atoi(argv[1]) : client_cnt;
	if (argc > 3)
		wanted = !strcmp(argv[3], "none")    ? NONE
			 : !strcmp(argv[3], "forge") ? FORGE
						     : ATTACK;
	mode = wanted == NONE ? NONE : ATTACK;
	FAB_TRUE(client_cnt > 0 && client_cnt <= CLIENTS_MAX);
	FAB_CHECK(cm_mac_init());
	here = node_open();
	there = node_open();
	end_open(&server, here);
	for (i = 0; i < client_cnt; i++)
		end_open(&clients[i], there);
	if (mode != NONE)
		FAB_TRUE(!pthread_create(&thread, NULL, attack, NULL));
	connect_all();
	mode = wanted;
	usleep((useconds_t)(1e6 * seconds));
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	if (mode != NONE)
		pthread_join(thread, NULL);
	report(seconds);
	/* The process ends with the endpoints open: what they say then is no part of the test. */
	fflush(stdout);
	_exit(0);
}
