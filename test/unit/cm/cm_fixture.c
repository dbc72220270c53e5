/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An engine that counts, and a peer that lies: see cm_fixture.h. */
#include "unit/cm/cm_fixture.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/base/cm_addr.h"
#include "cm/node/cm_node.h"

void cm_test_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	abort();
}

int cm_test_memfd(const char *text)
{
	int fd = memfd_create("cm-test", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	CM_CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	return fd;
}

static int cm_end_prepare(void *ctx, struct cm_conn *conn, struct cm_half *half, void **user)
{
	struct cm_end *end = ctx;
	struct cm_end_conn *c = calloc(1, sizeof(*c));
	int ret;

	if (end->on_prepare)
		end->on_prepare(end);
	pthread_mutex_lock(&end->lock);
	ret = end->no_path & half->path ? -FI_ENOMEM : end->prepare_ret;
	end->prepared++;
	for (uint32_t i = 0; i < end->fd_cnt && half->path == WIRE_CM_PATH_SHM; i++) {
		half->dev.fds[i] = cm_test_memfd(end->text);
		if (half->dev.fds[i] < 0)
			ret = half->dev.fds[i];
		else
			half->dev.fd_cnt++;
	}
	half->engine_len = 3;
	memcpy(half->engine, "eng", 3);
	half->dev.len = 5;
	memcpy(half->dev.bytes, "bytes", 5);
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

static int cm_end_establish(void *ctx, struct cm_conn *conn, void *user, const struct cm_half *peer)
{
	struct cm_end *end = ctx;
	struct cm_end_conn *c = user;
	int ret;

	(void)conn;
	pthread_mutex_lock(&end->lock);
	ret = end->establish_ret;
	end->established++;
	if (peer->dev.fd_cnt)
		CM_CHECK(pread(peer->dev.fds[0], c->text, sizeof(c->text) - 1, 0) > 0);
	if (peer->engine_len)
		CM_CHECK(peer->engine_len == 3 && !memcmp(peer->engine, "eng", 3));
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
	return ret;
}

static void cm_end_on_up(void *ctx, struct cm_conn *conn, void *user, bool asked)
{
	struct cm_end *end = ctx;
	struct cm_end_conn *c = user;

	(void)conn;
	pthread_mutex_lock(&end->lock);
	c->is_up = true;
	end->up++;
	end->asked += asked;
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
}

static void cm_end_on_down(void *ctx, struct cm_conn *conn, void *user, int err)
{
	struct cm_end *end = ctx;
	struct cm_end_conn *c = user;

	(void)conn;
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

	(void)addr;
	pthread_mutex_lock(&end->lock);
	end->failed++;
	end->failed_err = err;
	snprintf(end->why, sizeof(end->why), "%s", why);
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
}

static void cm_end_heard(struct cm_end *end, unsigned *counter, const void *data, size_t len)
{
	if (len)
		memcpy(end->said, data, len);
	end->said[len] = '\0';
	(*counter)++;
	pthread_cond_broadcast(&end->changed);
}

static void cm_end_on_accepted(void *ctx, const struct sockaddr *addr, const void *data, size_t len)
{
	struct cm_end *end = ctx;

	(void)addr;
	pthread_mutex_lock(&end->lock);
	cm_end_heard(end, &end->accepted, data, len);
	pthread_mutex_unlock(&end->lock);
}

static void cm_end_on_refused(void *ctx, int err, const void *data, size_t len)
{
	struct cm_end *end = ctx;

	pthread_mutex_lock(&end->lock);
	end->refused_err = err;
	cm_end_heard(end, &end->refused, data, len);
	pthread_mutex_unlock(&end->lock);
}

static uint64_t cm_end_on_heard(void *ctx, struct cm_conn *cm, void *user)
{
	struct cm_end *end = ctx;
	uint64_t heard_ns;

	(void)cm;
	(void)user;
	pthread_mutex_lock(&end->lock);
	end->heard_asked++;
	heard_ns = end->heard_ns;
	pthread_cond_broadcast(&end->changed);
	pthread_mutex_unlock(&end->lock);
	return heard_ns;
}

static const struct cm_agent_ops cm_end_ops = {
	.prepare = cm_end_prepare,
	.establish = cm_end_establish,
	.up = cm_end_on_up,
	.down = cm_end_on_down,
	.heard = cm_end_on_heard,
	.failed = cm_end_on_failed,
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
	/* Before the agent is open: it may be called from then on. */
	snprintf(end->text, sizeof(end->text), "end %p", (void *)end);
	ret = cm_agent_open(node, &addr->sa, cm_test_paths, &cm_end_ops, end, &end->agent);
	CM_CHECK(!ret);
	cm_agent_addr(end->agent, &end->addr);
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

	cm_agent_close(end->agent);
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
	return cm_connect(end->agent, (const struct sockaddr *)&to->addr);
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

void cm_end_meet(struct cm_end *from, struct cm_end *to, unsigned cnt)
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

/* The first conn that is down (or live), taken out of the engine's hands. */
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

struct cm_stats cm_end_stats(struct cm_end *end)
{
	struct cm_stats stats;

	cm_agent_stats(end->agent, &stats);
	return stats;
}

struct cm_node *cm_test_node(const char *key, int timeout_ms)
{
	struct cm_cfg cfg = { .job_key = key, .peer_timeout_ms = timeout_ms };
	struct cm_node *node;

	CM_CHECK(!cm_node_open_cfg(&cfg, &node));
	return node;
}

void cm_test_need_ipv6(void)
{
	FILE *file = fopen("/proc/net/if_inet6", "re");
	bool found = file && fgetc(file) != EOF;

	if (file)
		fclose(file);
	if (!found)
		cr_skip_test("no IPv6 here");
}

void cm_test_addr(const char *ip, uint16_t port, union cm_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (strchr(ip, ':')) {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = htons(port);
		CM_CHECK(inet_pton(AF_INET6, ip, &addr->in6.sin6_addr) == 1);
	} else {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = htons(port);
		CM_CHECK(inet_pton(AF_INET, ip, &addr->in.sin_addr) == 1);
	}
}

union cm_addr cm_test_addr_of(const struct cm_end *end)
{
	union cm_addr addr;

	CM_CHECK(!cm_addr_import((const struct sockaddr *)&end->addr, &addr));
	return addr;
}

uint16_t cm_test_port(const struct cm_end *end)
{
	union cm_addr addr = cm_test_addr_of(end);

	return cm_addr_port(&addr);
}

void cm_test_sleep_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

uint64_t cm_test_passes(struct cm_node *node)
{
	uint64_t cnt;

	cm_node_lock(node);
	cnt = node->pass_cnt;
	cm_node_unlock(node);
	return cnt;
}

double cm_test_cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

unsigned cm_test_fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	CM_CHECK(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

unsigned cm_test_fd_count_at_rest(struct cm_node *node)
{
	unsigned cnt;

	cm_node_lock(node);
	cnt = cm_test_fd_count();
	cm_node_unlock(node);
	return cnt;
}

void cm_stranger_open(struct cm_stranger *s, const char *ip, const char *key)
{
	union cm_addr raw;
	socklen_t len = sizeof(raw);

	CM_CHECK(!cm_mac_init());
	memset(&raw, 0, sizeof(raw));
	s->stream = -1;
	cm_test_addr(ip, 0, &s->addr);
	s->udp = socket(s->addr.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CM_CHECK(s->udp >= 0 && !bind(s->udp, &s->addr.sa, cm_addr_len(&s->addr)));
	CM_CHECK(!getsockname(s->udp, &raw.sa, &len));
	cm_addr_import(&raw.sa, &s->addr);
	s->inc = cm_mac_random();
	s->nonce = cm_mac_random();
	cm_mac_key_set(&s->key, key);
}

void cm_stranger_close(struct cm_stranger *s)
{
	close(s->udp);
	if (s->stream >= 0)
		close(s->stream);
}

static size_t cm_stranger_seal(struct cm_stranger *s, const union cm_addr *to,
			       struct wire_cm_pkt *pkt, uint8_t *buf)
{
	size_t len;

	if (!pkt->src_inc)
		pkt->src_inc = s->inc;
	if (!pkt->nonce)
		pkt->nonce = s->nonce;
	len = wire_cm_encode(pkt, buf);
	cm_mac_seal(&s->key, &s->addr, to, buf, len);
	return len;
}

void cm_stranger_send(struct cm_stranger *s, const union cm_addr *to, struct wire_cm_pkt *pkt)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = cm_stranger_seal(s, to, pkt, buf);

	CM_CHECK(sendto(s->udp, buf, len, 0, &to->sa, cm_addr_len(to)) == (ssize_t)len);
}

static bool cm_stranger_poll(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

bool cm_stranger_recv(struct cm_stranger *s, struct wire_cm_pkt *pkt, int ms)
{
	uint8_t buf[WIRE_CM_MAX];
	ssize_t n;

	if (!cm_stranger_poll(s->udp, ms))
		return false;
	n = recv(s->udp, buf, sizeof(buf), 0);
	CM_CHECK(n > 0);
	CM_CHECK(!wire_cm_decode(buf, (size_t)n, pkt));
	return true;
}

struct wire_cm_pkt cm_stranger_await(struct cm_stranger *s, enum wire_cm_type type)
{
	struct wire_cm_pkt pkt;

	do
		cr_assert(cm_stranger_recv(s, &pkt, CM_TEST_WAIT_MS), "no %s",
			  wire_cm_type_name(type));
	while (pkt.type != type);
	return pkt;
}

bool cm_stranger_ask(struct cm_stranger *s, const union cm_addr *to, struct wire_cm_pkt *ack)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ };

	req.req.paths = WIRE_CM_PATH_SHM | WIRE_CM_PATH_NIC;
	cm_stranger_send(s, to, &req);
	return cm_stranger_recv(s, ack, CM_TEST_WAIT_MS) && ack->type == WIRE_CM_ACK;
}

bool cm_stranger_connect(struct cm_stranger *s, const struct wire_cm_pkt *ack)
{
	if (s->stream >= 0)
		close(s->stream);
	s->stream = cm_fd_socket();
	CM_CHECK(s->stream >= 0);
	return !cm_fd_connect(s->stream, ack->ack.name);
}

void cm_stranger_hello(struct cm_stranger *s, const struct wire_cm_pkt *ack,
		       struct wire_cm_pkt *hello)
{
	*hello = (struct wire_cm_pkt){ .type = WIRE_CM_HELLO, .dst_inc = ack->src_inc };
	memcpy(hello->hello.cookie, ack->ack.cookie, WIRE_CM_COOKIE_LEN);
	cm_addr_to_wire(&s->addr, &hello->hello.addr);
	hello->hello.half.path = s->stream < 0 ? WIRE_CM_PATH_NIC : WIRE_CM_PATH_SHM;
}

void cm_stranger_say(struct cm_stranger *s, const union cm_addr *to, struct wire_cm_pkt *pkt,
		     const int *fds, uint32_t fd_cnt)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = cm_stranger_seal(s, to, pkt, buf);

	CM_CHECK(!cm_fd_send(s->stream, buf, len, fds, fd_cnt));
}

int cm_stranger_hear(struct cm_stranger *s, struct wire_cm_pkt *pkt, int ms)
{
	struct cm_fd_msg msg;
	int ret;

	if (!cm_stranger_poll(s->stream, ms))
		return -1;
	ret = cm_fd_recv(s->stream, &msg);
	if (ret != 1)
		return 0;
	cm_fd_drop(&msg);
	CM_CHECK(!wire_cm_decode(msg.buf, msg.len, pkt));
	return 1;
}
