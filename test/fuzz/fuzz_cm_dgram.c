/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of the handshake: datagrams of strangers must not harm an endpoint of cm, nor the
 * connections of honest endpoints.
 *
 * One endpoint, an honest one that connects with it, and liars at addresses of their own. Sockets
 * on loopback give them these addresses; the packets stay in memory. No thread runs: the input
 * selects when packets are read and deadlines pass.
 * Liars have the state of a peer (cookies, incarnations, nonces of the packets sent to them) and
 * change it.
 *
 * Checks besides the sanitizers: up-calls arrive in their order; each packet received is counted;
 * an endpoint keeps state of a stranger only after the stranger has proved its address; the honest
 * endpoints connect once and stay connected.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cm/ep/cm_ep.h"
#include "cm/conn/cm_connect.h"
#include "cm/conn/cm_conn.h"
#include "cm/conn/cm_dgram.h"
#include "cm/conn/cm_pending.h"
#include "script.h"
#include "util/clock.h"

#define LIARS 3u
#define CONNS 16u
#define QUEUE 1024u /* packets */
#define PATHS (WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP)

struct liar {
	int fd;
	union cm_addr addr;
	struct wire_cm_pkt latest; /* last packet sent to the liar */
	uint8_t cookie[WIRE_CM_COOKIE_LEN];
};

/** State of a connection as its user sees it. */
struct known {
	struct cm_conn *cm; /* NULL: free */
	bool established, up, down;
};

/** Packet on its way to an endpoint. */
struct queued {
	union cm_addr from;
	size_t len;
	uint8_t buf[WIRE_CM_MAX + 8];
};

struct queue {
	struct queued pkts[QUEUE];
	unsigned begin, end;
};

struct user {
	struct cm_ep *cep;
	struct queue queue;
	struct known conns[CONNS];
	unsigned ups, downs;
};

static struct script script;
static struct liar liars[LIARS];
static struct cm_node *node;
static struct user us, friend;
static struct cm_mac_key no_key;

ssize_t __wrap_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
			socklen_t *from_len);

static uint64_t take(unsigned bytes)
{
	return script_take(&script, bytes);
}

/* ---- users ---- */

/** Returns true now and then, for connections with liars: the honest ends are never refused. */
static bool should_refuse(const void *ctx, const struct cm_conn *conn)
{
	return ctx == &us && !cm_addr_is_equal(&conn->via.to, &friend.cep->addr) && take(1) > 0xF0;
}

static int on_prepare(void *ctx, struct cm_conn *conn, struct cm_params *params, void **user)
{
	struct user *u = ctx;
	struct known *k = u->conns;

	CHECK(params->path && !(params->path & (params->path - 1)));
	if (should_refuse(ctx, conn))
		return -FI_ENOMEM;
	while (k->cm)
		CHECK(++k < u->conns + CONNS);
	*k = (struct known){ .cm = conn };
	params->engine_len = 3;
	memcpy(params->engine, "eng", 3);
	*user = k;
	return 0;
}

static int on_establish(void *ctx, struct cm_conn *conn, void *user, const struct cm_params *peer)
{
	struct known *k = user;

	CHECK(k->cm == conn && !k->established && !k->down);
	CHECK(peer->engine_len <= CM_ENGINE_MAX && peer->dev.len <= DEV_DESC_MAX);
	CHECK(!peer->dev.fd_cnt);
	k->established = true;
	return should_refuse(ctx, conn) ? -FI_EIO : 0;
}

static void on_up(void *ctx, struct cm_conn *conn, void *user, bool asked)
{
	struct known *k = user;

	CHECK(k->cm == conn && k->established && !k->down && (!k->up || asked));
	((struct user *)ctx)->ups += !k->up;
	k->up = true;
}

static void on_down(void *ctx, struct cm_conn *conn, void *user, int err)
{
	struct known *k = user;

	CHECK(k->cm == conn && !k->down && err < 0);
	((struct user *)ctx)->downs += k->up;
	k->down = true;
}

static void on_failed(void *ctx, const struct sockaddr *addr, int err, const char *why)
{
	CHECK(ctx == &us && err < 0 && why);
}

static void on_alias(void *ctx, const struct sockaddr *addr, uint64_t incarnation)
{
	CHECK(ctx == &us && addr && incarnation);
}

static const struct cm_ep_ops ops = { .prepare = on_prepare,
				      .establish = on_establish,
				      .up = on_up,
				      .down = on_down,
				      .failed = on_failed,
				      .alias = on_alias };

static void put(struct user *u, struct known *k)
{
	cm_conn_put(k->cm);
	k->cm = NULL;
}

/** Puts the connections that are down. */
static void reap(struct user *u)
{
	unsigned i;

	for (i = 0; i < CONNS; i++)
		if (u->conns[i].cm && u->conns[i].down)
			put(u, &u->conns[i]);
}

/* ---- network ---- */

static struct liar *liar_at(const struct sockaddr *to)
{
	union cm_addr addr;
	unsigned i;

	CHECK(!cm_addr_import(to, &addr));
	for (i = 0; i < LIARS; i++)
		if (cm_addr_is_equal(&addr, &liars[i].addr))
			return &liars[i];
	return NULL;
}

static struct user *user_of(int fd)
{
	struct user *u = us.cep && fd == us.cep->socks[0].src.fd ? &us : &friend;

	CHECK(u->cep && fd == u->cep->socks[0].src.fd);
	return u;
}

static struct user *user_at(const struct sockaddr *to)
{
	union cm_addr addr;

	CHECK(!cm_addr_import(to, &addr));
	if (us.cep && cm_addr_is_equal(&addr, &us.cep->addr))
		return &us;
	return friend.cep && cm_addr_is_equal(&addr, &friend.cep->addr) ? &friend : NULL;
}

/** Queues a packet, or drops it if the queue is full, as a socket does. */
static void queue_put(struct queue *q, const union cm_addr *from, const void *buf, size_t len)
{
	struct queued *pkt = &q->pkts[q->end % QUEUE];

	CHECK(len <= sizeof(pkt->buf));
	if (q->end - q->begin == QUEUE)
		return;
	pkt->from = *from;
	pkt->len = len;
	memcpy(pkt->buf, buf, len);
	q->end++;
}

/** Implements recvfrom for the sockets of the endpoints. */
ssize_t __wrap_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
			socklen_t *from_len)
{
	struct user *u = user_of(fd);
	struct queued *pkt = &u->queue.pkts[u->queue.begin % QUEUE];

	CHECK(flags == MSG_DONTWAIT);
	if (u->queue.begin == u->queue.end) {
		errno = EAGAIN;
		return -1;
	}
	u->queue.begin++;
	len = len < pkt->len ? len : pkt->len;
	memcpy(buf, pkt->buf, len);
	*from_len = cm_addr_len(&pkt->from);
	memcpy(from, &pkt->from, *from_len);
	return (ssize_t)len;
}

/** Implements send of the endpoints: keeps a packet for a liar, queues those for endpoints. */
static ssize_t send_or_hear(void *ctx, int fd, const void *buf, size_t len,
			    const struct sockaddr *to, socklen_t to_len)
{
	const union cm_addr *from = &user_of(fd)->cep->addr;
	struct liar *liar = liar_at(to);
	struct user *receiver = liar ? NULL : user_at(to);

	if (receiver)
		queue_put(&receiver->queue, from, buf, len);
	if (!liar)
		return (ssize_t)len;
	CHECK(!wire_cm_decode(buf, len, &liar->latest));
	if (liar->latest.type == WIRE_CM_ACK)
		memcpy(liar->cookie, liar->latest.ack.cookie, WIRE_CM_COOKIE_LEN);
	return (ssize_t)len;
}

static void look(struct user *u)
{
	cm_node_lock(node);
	u->cep->socks[0].src.ready(&u->cep->socks[0].src, EPOLLIN);
	cm_node_unlock(node);
	reap(u);
}

/**
 * Passes the next deadline, that one alone: the clock does not move, so retries that follow are
 * earlier than a deadline that was far, and would all be made before this returns.
 */
static void next_deadline(void)
{
	struct cm_timer *timer;

	cm_node_lock(node);
	timer = node->timers.root;
	if (timer) {
		cm_timer_cancel(&node->timers, timer);
		timer->fire(timer);
	}
	cm_node_unlock(node);
	reap(&us);
	reap(&friend);
}

/* ---- liars ---- */

static uint64_t bend(uint64_t honest)
{
	uint8_t how = (uint8_t)take(1);

	if (how < 0xD0)
		return honest;
	return how < 0xF0 ? honest + how % 8 - 4 : take(8);
}

static void lie_half(struct wire_cm_params *params)
{
	uint8_t how = (uint8_t)take(1);

	params->path = how & 1 ? WIRE_CM_PATH_UDP : WIRE_CM_PATH_NIC;
	if (how & 0x80)
		params->path = 1u << how % 8;
	params->engine_len = (uint32_t)take(1) % (WIRE_CM_ENGINE_MAX + 1);
	params->dev_len = (uint32_t)take(2) % (WIRE_CM_DEV_MAX + 1);
	params->fd_cnt = how & 0x40 ? how % (WIRE_CM_FDS_MAX + 1) : 0;
}

/** Writes an address that a name may begin with: that of a liar, of the friend, or our own. */
static bool lie_name(struct wire_cm_addr *name)
{
	uint8_t how = (uint8_t)take(1);

	if (how < 0xA0)
		return false;
	if (how % 4 < 2)
		cm_addr_to_wire(&liars[(how >> 2) % LIARS].addr, name);
	else
		cm_addr_to_wire(how % 4 == 2 ? &friend.cep->addr : &us.cep->addr, name);
	return true;
}

static void lie_body(const struct liar *liar, struct wire_cm_pkt *pkt)
{
	switch (pkt->type) {
	case WIRE_CM_REQ:
		pkt->req.paths = (uint32_t)bend(PATHS) & 0xFF;
		pkt->req.has_name = lie_name(&pkt->req.name);
		break;
	case WIRE_CM_ACK:
		memset(pkt->ack.name, 'a', WIRE_CM_NAME_LEN);
		pkt->ack.paths = (uint32_t)bend(PATHS) & 0xFF;
		break;
	case WIRE_CM_NAK: pkt->nak.err = (uint32_t)bend(FI_EAGAIN); break;
	case WIRE_CM_HELLO:
		memcpy(pkt->hello.cookie, liar->cookie, WIRE_CM_COOKIE_LEN);
		cm_addr_to_wire(&liar->addr, &pkt->hello.addr);
		if (lie_name(&pkt->hello.addr))
			pkt->features = WIRE_CM_FEATURE_NAME;
		lie_half(&pkt->hello.params);
		break;
	case WIRE_CM_WELCOME: lie_half(&pkt->welcome.params); break;
	default: break;
	}
}

/** Builds a packet that a peer could send now, with small changes. */
static size_t lie(const struct liar *liar, uint8_t *buf)
{
	uint8_t what = (uint8_t)take(1), how = (uint8_t)take(1);
	struct wire_cm_pkt pkt = {
		.type = (enum wire_cm_type)(1 + what % 11),
		.nonce = bend(how & 1 ? liar->latest.nonce : 1 + (how >> 1 & 3)),
		.src_inc = 1 + (how >> 3 & 1),
	};
	size_t len;

	if (pkt.type != WIRE_CM_REQ)
		pkt.dst_inc = bend(us.cep->inc);
	lie_body(liar, &pkt);
	len = wire_cm_encode(&pkt, buf);
	if (what & 0x80)
		buf[take(2) % len] ^= (uint8_t)take(1);
	cm_mac_seal(&no_key, &us.cep->addr, &us.cep->addr, buf, len);
	if (what & 0x40)
		len = take(2) % (len + 1);
	return len;
}

static void come(const uint8_t *buf, size_t len, const struct liar *liar)
{
	uint64_t before;

	look(&us);
	before = us.cep->stats->rx_pkts;
	queue_put(&us.queue, &liar->addr, buf, len);
	look(&us);
	CHECK(us.cep->stats->rx_pkts > before);
}

static void come_lie(struct liar *liar)
{
	uint8_t buf[WIRE_CM_MAX];

	come(buf, lie(liar, buf), liar);
}

static void come_bytes(struct liar *liar)
{
	uint8_t buf[WIRE_CM_MAX + 8];
	size_t len = take(2) % sizeof(buf);

	script_bytes(&script, buf, len);
	come(buf, len, liar);
}

/* ---- invariants ---- */

static void check(void)
{
	const struct cm_ep *cep = us.cep;

	CHECK(cep->pending_cnt <= CM_PENDING_MAX);
	CHECK(cep->zombie_cnt <= CM_PENDING_MAX + CM_ZOMBIES_MAX);
	CHECK(cep->peers.peer_cnt <= LIARS + 1);
	CHECK(cep->incoming_cnt == 0);
	CHECK(friend.ups <= 1 && !friend.downs);
}

static void connect_to(struct user *from, const union cm_addr *to)
{
	cm_connect(from->cep, &to->sa, false);
}

/** Connects to, or gives up, a name whose addresses are those of two liars. */
static void connect_to_name(const struct liar *first, bool is_cancelled)
{
	union cm_addr list[2] = { first->addr, liars[take(1) % LIARS].addr };
	unsigned cnt = cm_addr_is_equal(&list[0], &list[1]) ? 1 : 2;

	cm_node_lock(node);
	if (is_cancelled)
		cm_connect_cancel_locked(us.cep, list, cnt);
	else
		cm_connect_locked(us.cep, list, cnt, false);
	cm_node_unlock(node);
}

static void step(void)
{
	uint8_t what = (uint8_t)take(1);
	struct liar *liar = &liars[(what >> 4) % LIARS];
	struct known *k = &us.conns[what >> 4];

	switch (what % 16) {
	default: come_lie(liar); break;
	case 8: come_bytes(liar); break;
	case 9: connect_to_name(liar, false); break;
	case 10: connect_to_name(liar, true); break;
	case 11: connect_to(&friend, &us.cep->addr); break;
	case 12: look(&us); break;
	case 13: look(&friend); break;
	case 14: next_deadline(); break;
	case 15:
		if (k->cm && !cm_addr_is_equal(&k->cm->via.to, &friend.cep->addr))
			put(&us, k);
		break;
	}
	check();
}

/** Asserts that the honest endpoints connect, whatever packets arrived before. */
static void settle(void)
{
	unsigned rounds;

	if (!friend.ups)
		connect_to(&friend, &us.cep->addr);
	for (rounds = 0; !friend.ups; rounds++) {
		CHECK(rounds < 2000);
		look(&us);
		look(&friend);
		if (!friend.ups && rounds % 8 == 7)
			next_deadline();
	}
	CHECK(friend.ups == 1 && !friend.downs);
}

/* ---- open and close ---- */

static void agent_open(struct user *u)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct cm_paths paths = { PATHS, { WIRE_CM_PATH_NIC, WIRE_CM_PATH_UDP } };

	memset(u->conns, 0, sizeof(u->conns));
	u->cep = NULL;
	u->ups = u->downs = 0;
	u->queue.begin = u->queue.end = 0;
	CHECK(!cm_ep_open(node, (struct sockaddr *)&any, paths, &ops, u, &u->cep));
}

static void agent_close(struct user *u)
{
	unsigned i;

	for (i = 0; i < CONNS; i++)
		if (u->conns[i].cm)
			put(u, &u->conns[i]);
	cm_ep_close(u->cep);
	u->cep = NULL;
}

static void liar_open(struct liar *liar)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);

	liar->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(liar->fd >= 0 && !bind(liar->fd, (struct sockaddr *)&at, len));
	CHECK(!getsockname(liar->fd, (struct sockaddr *)&at, &len));
	CHECK(!cm_addr_import((struct sockaddr *)&at, &liar->addr));
}

/** No liar is on this host: none has to prove its user by a stream. */
static bool is_elsewhere(const struct sockaddr *addr)
{
	(void)addr;
	return false;
}

static void open_all(void)
{
	struct cm_cfg cfg = { .udp_send = send_or_hear, .is_local = is_elsewhere };
	unsigned i;

	for (i = 0; i < LIARS; i++) {
		if (!liars[i].addr.sa.sa_family)
			liar_open(&liars[i]);
		memset(&liars[i].latest, 0, sizeof(liars[i].latest));
	}
	CHECK(!cm_node_open_cfg(&cfg, &node));
	cm_node_halt(node); /* the fuzzer runs the node instead of a thread */
	agent_open(&us);
	agent_open(&friend);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	script = (struct script){ data, data + size };
	open_all();
	while (!script_is_over(&script))
		step();
	settle();
	agent_close(&friend);
	agent_close(&us);
	cm_node_close(node);
	return 0;
}
