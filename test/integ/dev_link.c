/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Does a NIC's link keep its promises between two processes?
 *
 * usage: dev_link mlx5|verbs [messages [small|zip]]     both directions at once, then the end of one process
 *
 * small: queues of the smallest depths, so that each of them is full, empty and wrapped all the time.
 * zip: CQEs may come compressed, and messages are alike, so that they do.
 * DEV_LINK_DEVICE0, DEV_LINK_DEVICE1: the devices' names (default: the best one, twice).
 *
 * Two processes, a device each, links with rings from 1 KiB to 1 MiB between them. Messages of
 * random length go both ways over all of them; every byte and every immediate is checked; room is
 * learnt by reading the peer's consumer word. Meanwhile each end gets from, and puts into, memory
 * that the other registered. Whoever has nothing to do sleeps. Half of the links are attached late,
 * when there is something to be heard already. Then one end is killed, and the other must be told.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dev/mlx5/m5.h"
#include "dev/verbs/vb.h"
#include "util/clock.h"
#include "util/param.h"

#define LINKS        6u
#define BUF_LEN      (256u << 10) /* registered for the peer: a half to get, a half to put into */
#define BULK_OPS     40u
#define LIMIT_NS     (100 * UTIL_NS_PER_S)
#define PEER_MS      1500
#define DOWN_NS      (20 * UTIL_NS_PER_S)
#define CHURN_ROUNDS 60u
#define IDLE_ROUNDS  2000u /* empty polls until it sleeps */

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "side %d: %s:%d: %s\n", side, __FILE__, __LINE__, #x);     \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct end {
	struct dev_link *link;
	uint64_t tx_pos, released, rx_pos;
	uint32_t sent, got, eagain;
	uint32_t asked, acked; /* writes whose end is told, and those that were */
	bool reading;
};

/** What the ends tell each other besides descriptions. */
struct bulk_info {
	uint64_t addr, key;
};

static int side, sock;
static const struct dev_ops *ops;
static struct dev *dev;
static struct end ends[LINKS];
static uint32_t msgs = 20000;
static bool small, zip;
static uint64_t rnd;
static uint32_t sleeps, reads, get_cnt, put_cnt, downs;
static uint64_t start_ns;

static uint8_t *buf, *local;
static struct dev_mem *buf_mem, *local_mem;
static struct bulk_info peer_buf;
static struct dev_get bulk;
static struct iovec bulk_iov[2];
static bool bulk_open, bulk_is_put;
static size_t bulk_off;

static uint64_t next_rand(void)
{
	rnd ^= rnd >> 12;
	rnd ^= rnd << 25;
	rnd ^= rnd >> 27;
	return rnd * 0x2545f4914f6cdd1dull;
}

static uint8_t pattern(uint32_t seq, uint64_t i)
{
	return (uint8_t)(seq * 31 + i * 7 + (i >> 8) + 1);
}

static void tell(const void *bytes, size_t len)
{
	CHECK(write(sock, bytes, len) == (ssize_t)len);
}

static void hear(void *bytes, size_t len)
{
	CHECK(recv(sock, bytes, len, MSG_WAITALL) == (ssize_t)len);
}

static void meet(void)
{
	char c = 'x';

	tell(&c, 1);
	hear(&c, 1);
}

/* ---- set-up ---- */

static void make_links(void)
{
	struct dev_desc own, peer;
	unsigned i;

	for (i = 0; i < LINKS; i++) {
		memset(&own, 0, sizeof(own));
		CHECK(!ops->link_create(dev, 1024ull << 2 * i, &ends[i].link));
		CHECK(!ends[i].link->ops->describe(ends[i].link, &own));
		tell(&own, sizeof(own));
		hear(&peer, sizeof(peer));
		CHECK(!ends[i].link->ops->connect(ends[i].link, &peer));
		ends[i].link->user = &ends[i];
		CHECK(ends[i].link->tx_base && ends[i].link->tx_len == 1024ull << 2 * i);
	}
	meet();
}

/*
 * Links that come and go, with arrivals that nobody has read yet, so that numbers of queue pairs
 * are used again while there are completions of their last users. Each round has immediates of its
 * own. In every third one side 1 closes without having attached.
 */
static void churn(void)
{
	uint32_t round, i, got = 0, heard = 0;
	uint64_t begin = util_clock_ns();
	struct dev_desc own, peer;
	struct dev_link *link;
	struct dev_event ev;

	for (round = 1; round <= CHURN_ROUNDS; round++) {
		bool skip = side && round % 3 == 0;

		memset(&own, 0, sizeof(own));
		CHECK(!ops->link_create(dev, 1024, &link));
		CHECK(!link->ops->describe(link, &own));
		tell(&own, sizeof(own));
		hear(&peer, sizeof(peer));
		CHECK(!link->ops->connect(link, &peer));
		meet();
		CHECK(skip || !link->ops->attach(link));
		for (i = 0; i < 2 && !skip; i++)
			CHECK(!link->ops->write_imm(link, 0, 32, round));
		meet();
		while (round % 2 && round % 3 && got < heard + 2) {
			CHECK(util_clock_ns() - begin < LIMIT_NS);
			if (!ops->poll(dev, &ev))
				continue;
			CHECK(ev.link == link && ev.kind == DEV_EV_IMM && ev.imm == round);
			got++;
		}
		heard = got;
		meet();
		if (!skip)
			link->ops->detach(link);
		link->ops->close(link);
		/* Nothing of a link that was closed unheard. */
		CHECK(round % 2 || !ops->poll(dev, &ev));
	}
}

/* ---- another thread makes links ---- */

/*
 * As the handshake's does: two links of this process with each other, again and again. Every second
 * pair is closed as it is; the others go through the hands of who polls, who lets the second one
 * wait for its attach until there is something for it.
 */
static struct {
	struct dev_link *a, *b;
	enum { PAIR_NONE, PAIR_MADE, PAIR_SENT, PAIR_USED } state;
	uint32_t round, heard;
	bool stop;
	pthread_t thread;
} pairs;

static void pair_connect(struct dev_link *to, struct dev_link *from)
{
	struct dev_desc desc;

	memset(&desc, 0, sizeof(desc));
	CHECK(!from->ops->describe(from, &desc));
	CHECK(!to->ops->connect(to, &desc));
}

static void *pair_maker(void *arg)
{
	uint32_t n;

	(void)arg;
	for (n = 0; n % 2 || !__atomic_load_n(&pairs.stop, __ATOMIC_ACQUIRE); n++) {
		struct dev_link *a, *b;

		CHECK(!ops->link_create(dev, 1024, &a) && !ops->link_create(dev, 1024, &b));
		pair_connect(a, b);
		pair_connect(b, a);
		if (n % 2) {
			pairs.a = a;
			pairs.b = b;
			__atomic_store_n(&pairs.state, PAIR_MADE, __ATOMIC_RELEASE);
			while (__atomic_load_n(&pairs.state, __ATOMIC_ACQUIRE) != PAIR_USED)
				usleep(200);
		}
		a->ops->close(a);
		b->ops->close(b);
		usleep(500);
	}
	__atomic_store_n(&pairs.stop, false, __ATOMIC_RELEASE);
	return NULL;
}

static void pair_use(void)
{
	switch (__atomic_load_n(&pairs.state, __ATOMIC_ACQUIRE)) {
	case PAIR_MADE:
		CHECK(!pairs.a->ops->attach(pairs.a));
		CHECK(!pairs.a->ops->write_imm(pairs.a, 0, 32, ++pairs.round));
		__atomic_store_n(&pairs.state, PAIR_SENT, __ATOMIC_RELEASE);
		break;
	case PAIR_SENT:
		if (next_rand() & 31)
			return;
		if (pairs.heard == pairs.round) {
			pairs.a->ops->detach(pairs.a);
			pairs.b->ops->detach(pairs.b);
			__atomic_store_n(&pairs.state, PAIR_USED, __ATOMIC_RELEASE);
		} else if (!pairs.b->user) {
			pairs.b->user = &pairs;
			CHECK(!pairs.b->ops->attach(pairs.b));
		}
		break;
	default: break;
	}
}

static void make_buffers(void)
{
	struct bulk_info own;
	size_t i;

	buf = malloc(BUF_LEN);
	local = calloc(1, BUF_LEN);
	for (i = 0; i < BUF_LEN; i++)
		buf[i] = pattern(99, i);
	CHECK(!ops->mem_reg(dev, buf, BUF_LEN, DEV_MEM_REMOTE_READ | DEV_MEM_REMOTE_WRITE,
			    &buf_mem));
	CHECK(!ops->mem_reg(dev, local, BUF_LEN, DEV_MEM_LOCAL, &local_mem));
	own = (struct bulk_info){ (uintptr_t)buf, buf_mem->remote_key };
	tell(&own, sizeof(own));
	hear(&peer_buf, sizeof(peer_buf));
}

/* ---- traffic ---- */

/* The same at both ends: from the number of the message and the ring. */
static uint32_t units_of(const struct end *end, uint32_t seq, uint64_t ring_len)
{
	uint64_t max = ring_len / DEV_IMM_UNIT / 4;

	(void)end;
	if (zip)
		return 2;
	if (seq % 3 && max > 8)
		max = 8; /* mostly small */
	return 1 + (uint32_t)((seq * 2654435761ull >> 7) % (max < 1024 ? max : 1024));
}

/* A message stops at the ring's end. */
static uint32_t clip(uint32_t units, uint64_t pos, uint64_t ring_len)
{
	uint64_t left = (ring_len - (pos & (ring_len - 1))) / DEV_IMM_UNIT;

	return units < left ? units : (uint32_t)left;
}

static bool has_room(struct end *end, uint64_t len)
{
	uint64_t value;
	int ret;

	if (end->tx_pos + len - end->released <= end->link->tx_len)
		return true;
	if (end->reading)
		return false;
	ret = end->link->ops->read_consumer(end->link, &value);
	CHECK(ret == 0 || ret == -FI_EAGAIN);
	end->reading = !ret;
	reads += !ret;
	return false;
}

static bool try_send(struct end *end)
{
	uint64_t off = end->tx_pos & (end->link->tx_len - 1), len, i;
	uint32_t units =
		clip(units_of(end, end->sent, end->link->tx_len), end->tx_pos, end->link->tx_len);
	bool asks;
	int ret;

	len = (uint64_t)units * DEV_IMM_UNIT;
	if (end->sent == msgs || !has_room(end, len))
		return false;
	for (i = 0; i < len; i++)
		end->link->tx_base[off + i] = pattern(end->sent, i);
	asks = end->sent % 5 == 0;
	ret = (asks ? end->link->ops->write_imm_ack
		    : end->link->ops->write_imm)(end->link, off, (uint32_t)len, units);
	if (ret) {
		CHECK(ret == -FI_EAGAIN);
		end->eagain++;
		return false;
	}
	end->asked += asks;
	end->tx_pos += len;
	end->sent++;
	return true;
}

static void take_imm(struct end *end, uint32_t imm)
{
	const uint8_t *p = end->link->rx_base + (end->rx_pos & (end->link->rx_len - 1));
	uint64_t i, len = (uint64_t)imm * DEV_IMM_UNIT;

	CHECK(imm ==
	      clip(units_of(end, end->got, end->link->rx_len), end->rx_pos, end->link->rx_len));
	for (i = 0; i < len; i++)
		CHECK(p[i] == pattern(end->got, i));
	end->rx_pos += len;
	end->got++;
	__atomic_store_n(end->link->consumer_word, end->rx_pos, __ATOMIC_RELEASE);
}

/* ---- get and put ---- */

static void bulk_done(void)
{
	size_t i;

	CHECK(bulk_open && !bulk.status);
	bulk_open = false;
	if (bulk_is_put) {
		put_cnt++;
		return;
	}
	for (i = 0; i < bulk.len; i++)
		CHECK(local[i] == pattern(99, bulk_off + i));
	get_cnt++;
}

static void bulk_start(void)
{
	struct dev_link *link = ends[next_rand() % LINKS].link;
	size_t half = BUF_LEN / 2, len = 1 + next_rand() % half, cut = next_rand() % len, i;
	int ret;

	bulk_is_put = get_cnt > put_cnt;
	bulk_off = next_rand() % (half - len + 1) + (bulk_is_put ? half : 0);
	for (i = 0; i < len; i++)
		local[i] = bulk_is_put ? pattern(77, bulk_off + i) : 0;
	bulk_iov[0] = (struct iovec){ local, cut };
	bulk_iov[1] = (struct iovec){ local + cut, len - cut };
	bulk = (struct dev_get){
		.remote_addr = peer_buf.addr + bulk_off,
		.remote_key = peer_buf.key,
		.iov = bulk_iov,
		.iov_cnt = 2,
		.len = len,
		.mem = { local_mem, local_mem },
	};
	ret = bulk_is_put ? link->ops->put(link, &bulk) : link->ops->get(link, &bulk);
	CHECK(ret == 0 || ret == 1 || ret == -FI_EAGAIN);
	bulk_open = ret >= 0;
	if (ret == 1)
		bulk_done();
}

/* What the peer has put is its pattern, what it has not is ours. */
static void check_puts(void)
{
	size_t i, theirs = 0;

	for (i = 0; i < BUF_LEN; i++) {
		bool put = buf[i] == pattern(77, i);

		CHECK(put || buf[i] == pattern(99, i));
		CHECK(!put || i >= BUF_LEN / 2);
		theirs += put;
	}
	CHECK(theirs > BUF_LEN / 8);
}

/* ---- the loop ---- */

static bool poll_one(void)
{
	struct dev_event ev;
	struct end *end;

	if (!ops->poll(dev, &ev))
		return false;
	end = ev.link->user;
	if ((void *)end == &pairs) {
		CHECK(ev.kind == DEV_EV_IMM && ev.imm == pairs.round);
		pairs.heard = ev.imm;
		return true;
	}
	switch (ev.kind) {
	case DEV_EV_IMM: take_imm(end, ev.imm); break;
	case DEV_EV_READ:
		CHECK(ev.value >= end->released && ev.value <= end->tx_pos);
		end->reading = false;
		end->released = ev.value;
		break;
	case DEV_EV_ACK: CHECK(++end->acked <= end->asked); break;
	case DEV_EV_GET: bulk_done(); break;
	case DEV_EV_DOWN:
		CHECK(ev.status < 0);
		fprintf(stderr, "side %d: link down: %s\n", side, fi_strerror(-ev.status));
		downs++;
		break;
	}
	return true;
}

static bool is_done(void)
{
	unsigned i;

	for (i = 0; i < LINKS; i++)
		if (ends[i].sent != msgs || ends[i].got != msgs || ends[i].acked != ends[i].asked)
			return false;
	return !bulk_open && get_cnt + put_cnt >= BULK_OPS;
}

static void sleep_once(void)
{
	struct pollfd pfd = { .fd = ops->wait_fd(dev), .events = POLLIN };
	static unsigned rung_for_nothing;

	if (ops->arm(dev))
		return;
	/* Room for our own writes wakes nobody: so not for long. What comes rings, though. */
	if (poll(&pfd, 1, 20)) {
		rung_for_nothing = poll_one() ? 0 : rung_for_nothing + 1;
		CHECK(rung_for_nothing < 100);
	} else if (poll_one()) {
		CHECK(poll(&pfd, 1, 5000) == 1);
	}
	/* Side 1 stays armed: its next arm must silence what has rung. */
	if (!side)
		ops->disarm(dev);
	sleeps++;
}

static void play(void)
{
	unsigned idle = 0, i;

	while (!is_done()) {
		bool busy = false;

		for (i = 0; i < LINKS; i++)
			busy |= try_send(&ends[next_rand() % LINKS]);
		for (i = 0; i < 32 && poll_one(); i++)
			busy = true;
		if (!bulk_open && get_cnt + put_cnt < BULK_OPS && !(next_rand() & 7))
			bulk_start();
		pair_use();
		CHECK(!downs);
		idle = busy ? 0 : idle + 1;
		if (idle >= IDLE_ROUNDS) {
			/* Again and again until there is something, as an application does. */
			sleep_once();
		}
		CHECK(util_clock_ns() - start_ns < LIMIT_NS);
	}
}

static void attach_all(void)
{
	struct dev_event ev;
	unsigned i;

	for (i = 0; i < LINKS; i += 2)
		CHECK(!ends[i].link->ops->attach(ends[i].link));
	/* The other end speaks before we attach the rest. */
	if (side) {
		usleep(20000);
		for (i = 0; i < 100; i++)
			if (ops->poll(dev, &ev))
				take_imm(ev.link->user, ev.imm);
	}
	for (i = 1; i < LINKS; i += 2)
		CHECK(!ends[i].link->ops->attach(ends[i].link));
	CHECK(!ends[1].sent);
	if (!side)
		for (i = 0; i < LINKS; i++)
			CHECK(try_send(&ends[i]));
}

static void report(void)
{
	uint64_t eagain = 0, bytes = 0;
	unsigned i;

	for (i = 0; i < LINKS; i++) {
		eagain += ends[i].eagain;
		bytes += ends[i].tx_pos;
	}
	printf("side %d: %u messages, %llu bytes sent on %u links in %.2f s; %u consumer reads, %u gets, "
	       "%u puts, %llu times no room in the send queue, %u sleeps, %u other links\n",
	       side, msgs * LINKS, (unsigned long long)bytes, LINKS,
	       (double)(util_clock_ns() - start_ns) / 1e9, reads, get_cnt, put_cnt,
	       (unsigned long long)eagain, sleeps, pairs.round);
	fflush(stdout);
}

/* The other one is gone: all links that are used must say so, and nothing more comes of them. */
static void be_left(void)
{
	uint64_t begin = util_clock_ns(), value;
	unsigned i;

	while (downs < LINKS) {
		/* A link that is used notices. */
		for (i = 0; i < LINKS; i++) {
			int ret;

			if (ends[i].reading)
				continue;
			ret = ends[i].link->ops->read_consumer(ends[i].link, &value);
			CHECK(ret == 0 || ret == -FI_EAGAIN);
			ends[i].reading = !ret;
		}
		for (i = 0; i < 1000; i++)
			poll_one();
		CHECK(util_clock_ns() - begin < DOWN_NS);
	}
	printf("side %d: %u links down %.2f s after the peer was killed\n", side, downs,
	       (double)(util_clock_ns() - begin) / 1e9);
	for (i = 0; i < 1000; i++)
		CHECK(!poll_one());
	for (i = 0; i < LINKS; i++) {
		CHECK(ends[i].link->ops->write_imm(ends[i].link, 0, 32, 1) < 0);
		ends[i].link->ops->detach(ends[i].link);
		ends[i].link->ops->close(ends[i].link);
	}
	ops->mem_dereg(dev, buf_mem);
	ops->mem_dereg(dev, local_mem);
	ops->close(dev);
	free(buf);
	free(local);
}

static void run_side(void)
{
	struct dev_link *never;

	util_params.peer_timeout_ms = PEER_MS;
	util_params.device = getenv(side ? "DEV_LINK_DEVICE1" : "DEV_LINK_DEVICE0");
	if (small)
		m5_tune = (struct m5_tune){ .srq = 3, .cq = 8, .sq_blocks = 8 };
	rnd = 0x9e3779b97f4a7c15ull + (unsigned)side;
	m5_tune.zip = zip;
	CHECK(!ops->open(&dev));
	CHECK(!ops->link_create(dev, 1024, &never));
	churn();
	make_links();
	make_buffers();
	start_ns = util_clock_ns();
	attach_all();
	CHECK(!pthread_create(&pairs.thread, NULL, pair_maker, NULL));
	play();
	/* The thread ends behind a pair that was used. */
	__atomic_store_n(&pairs.stop, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&pairs.stop, __ATOMIC_ACQUIRE)) {
		poll_one();
		pair_use();
	}
	pthread_join(pairs.thread, NULL);
	CHECK(pairs.heard);
	report();
	meet();
	while (poll_one())
		;
	check_puts();
	never->ops->close(never);
	meet();
	if (side)
		raise(SIGKILL);
	usleep(50000);
	be_left();
}

/* ---- two processes ---- */

static pid_t spawn(char **argv, int number, int fd, int other)
{
	char text[32];
	pid_t pid = fork();

	if (pid)
		return pid;
	close(other);
	snprintf(text, sizeof(text), "%d:%d", number, fd);
	setenv("DEV_LINK_SIDE", text, 1);
	snprintf(text, sizeof(text), "%d", number);
	setenv("COPYRPC_HCA_NODE", text, 1);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static int run_both(char **argv)
{
	int fds[2], status[2], i;
	pid_t pid[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 1;
	for (i = 0; i < 2; i++)
		pid[i] = spawn(argv, i, fds[i], fds[!i]);
	close(fds[0]);
	close(fds[1]);
	for (i = 0; i < 2; i++)
		waitpid(pid[i], &status[i], 0);
	if (status[0] || !WIFSIGNALED(status[1]) || WTERMSIG(status[1]) != SIGKILL) {
		fprintf(stderr, "ended with %#x and %#x\n", (unsigned)status[0],
			(unsigned)status[1]);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *text = getenv("DEV_LINK_SIDE");

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "mlx5"))
		ops = &m5_dev_ops;
	if (!strcmp(argv[1], "verbs"))
		ops = &vb_dev_ops;
	if (!ops)
		return 2;
	if (argc > 2)
		msgs = (uint32_t)strtoul(argv[2], NULL, 0);
	small = argc > 3 && !strcmp(argv[3], "small");
	zip = argc > 3 && !strcmp(argv[3], "zip");
	if (!text)
		return run_both(argv);
	if (sscanf(text, "%d:%d", &side, &sock) != 2)
		return 2;
	run_side();
	return 0;
}
