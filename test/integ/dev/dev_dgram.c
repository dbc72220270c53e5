/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams of a NIC between two processes.
 *
 * usage: dev_dgram mlx5
 * verbs [requests [small
 * lossy]]
 *
 * Each process sends requests to the other, and replies. Requests are of random length up to the
 * MTU, in one piece or two, inline or gathered; gathered pieces come from a few buffers that are
 * written again as soon as the device reports them as sent. Requests are retained for a while and
 * released in any order; replies leave in bursts. Every byte is under a checksum and every
 * datagram's sender is checked. An idle process sleeps.
 *
 * small: queues of the smallest depths. lossy: datagrams may be lost, doubled, late or changed (the
 * device model's faults, netem); requests without a reply are sent again. Otherwise none may be
 * lost.
 */
#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "dev/dgram.h"
#include "dev/mlx5/m5.h"
#include "dev/mlx5/m5_ud.h"
#include "dev/verbs/vb.h"
#include "dev/verbs/vb_ud.h"
#include "dev_pair.h"
#include "reg_seen.h"
#include "util/clock.h"

#define SESSIONS    20000u
#define BUFS        24u
#define HELD_MAX    256u /* all receive buffers: poll always finds space here */
#define WINDOW_MAX  64u
#define BURST       16u
#define LIMIT_NS    (60 * UTIL_NS_PER_S)
#define RESEND_NS   (300 * UTIL_NS_PER_MS)
#define IDLE_ROUNDS 2000u

struct head {
	uint32_t sum; /* of all that follows */
	uint32_t seq;
	uint16_t session;
	uint8_t is_response;
	uint8_t pad;
	uint32_t len; /* behind the head */
};

struct open_req {
	uint32_t seq; /* 0: none */
	uint64_t sent_ns;
};

struct tx_buf {
	uint8_t *bytes;
	uint32_t number; /* of the last datagram sent from here */
	bool used;
};

static const struct dev_ops *ops;
static const struct dev_dgram_ops *dops;
static struct dev *dev;
static struct dev_dgram *dg;
static struct dev_dgram_ah *peer, *self;
static struct dev_mem *mem;
static uint32_t msgs = 20000, window, held_max;
static bool small, lossy;

static struct open_req reqs[WINDOW_MAX];
static uint32_t next_seq = 1, completed, served, open_cnt;
static struct tx_buf bufs[BUFS];
static struct dev_dgram_in held[HELD_MAX];
static uint32_t held_cnt;
static struct head responses[BURST];
static struct dev_dgram_out outs[BURST];
static uint32_t resends, refused, sleeps, eagain, buf_waits;
static uint64_t start_ns;

static uint32_t checksum(const struct head *h, const uint8_t *data)
{
	const uint8_t *p = (const uint8_t *)h;
	uint32_t sum = 2166136261u;
	size_t i;

	for (i = sizeof(h->sum); i < sizeof(*h); i++)
		sum = (sum ^ p[i]) * 16777619u;
	for (i = 0; i < h->len; i++)
		sum = (sum ^ data[i]) * 16777619u;
	return sum;
}

static void make_endpoint(void)
{
	struct dev_dgram_attr attr = { .rx_cnt = small ? 16 : 256, .tx_cnt = small ? 8 : 64 };
	struct dev_desc own = { 0 }, other;
	uint8_t *bytes;

	CHECK(!ops->open(&dev));
	CHECK(!dops->open(dev, &attr, &dg));
	CHECK(!dops->describe(dg, &own));
	pair_tell(&own, sizeof(own));
	pair_hear(&other, sizeof(other));
	CHECK(!dops->resolve(dg, &other, &peer) && !dops->resolve(dg, &own, &self));
	other.bytes[8] = other.bytes[9] = other.bytes[10] = 0; /* no queue pair */
	CHECK(dops->resolve(dg, &other, &self) == -FI_EINVAL);
	CHECK(dg->mtu >= 256 && peer->mtu <= dg->mtu);
	bytes = malloc((size_t)BUFS * dg->mtu);
	CHECK(!ops->mem_reg(dev, bytes, (size_t)BUFS * dg->mtu, DEV_MEM_LOCAL, &mem));
	for (unsigned i = 0; i < BUFS; i++)
		bufs[i].bytes = bytes + (size_t)i * dg->mtu;
	window = small ? 4 : WINDOW_MAX;
	held_max = small ? 4 : WINDOW_MAX;
}

/* Returns a request's buffer that the device has sent. NULL: wait for a completion. */
static struct tx_buf *take_buf(void)
{
	struct tx_buf *buf = &bufs[pair_rand() % BUFS];

	if (!buf->used || dev_dgram_is_done(dg, buf->number))
		return buf;
	buf_waits++;
	return NULL;
}

/* Length of a request, computed from its number, so that a retry is the same. */
static uint32_t len_of(uint32_t seq)
{
	uint32_t max = peer->mtu - (uint32_t)sizeof(struct head), r = seq * 2654435761u;

	return seq % 4 ? (r >> 9) % 44 : (r >> 7) % (max + 1); /* mostly inline */
}

static bool send_request(uint32_t seq, bool report)
{
	struct tx_buf *buf = take_buf();
	struct dev_dgram_out out = { .to = peer, .flags = report ? DEV_DGRAM_REPORT : 0 };
	struct head *h;
	int ret;

	if (!buf)
		return false;
	h = (void *)buf->bytes;
	*h = (struct head){ .seq = seq, .session = (uint16_t)(seq % SESSIONS), .len = len_of(seq) };
	for (uint32_t i = 0; i < h->len; i++)
		buf->bytes[sizeof(*h) + i] = pair_pattern(seq, i);
	h->sum = checksum(h, buf->bytes + sizeof(*h));
	out.base[0] = h;
	out.mem[0] = out.mem[1] = mem;
	out.len[0] = (uint32_t)sizeof(*h) + (seq % 2 ? h->len : 0);
	out.base[1] = h + 1;
	out.len[1] = seq % 2 ? 0 : h->len;
	ret = dops->send(dg, &out, 1);
	CHECK(ret == 1 || ret == -FI_EAGAIN);
	eagain += ret != 1;
	if (ret == 1) {
		buf->used = dev_dgram_out_len(&out) > dg->inline_max;
		buf->number = dg->tx_posted - 1;
	}
	return ret == 1;
}

static bool ask(void)
{
	struct open_req *req = NULL;
	uint64_t now = util_clock_ns();
	unsigned i;

	for (i = 0; i < window; i++) {
		if (!reqs[i].seq)
			req = &reqs[i];
		else if (now - reqs[i].sent_ns > RESEND_NS && lossy &&
			 send_request(reqs[i].seq, true)) {
			reqs[i].sent_ns = now;
			resends++;
		}
	}
	if (!req || next_seq > msgs || !send_request(next_seq, !(pair_rand() % 7)))
		return false;
	*req = (struct open_req){ next_seq++, now };
	open_cnt++;
	return true;
}

static void take_response(const struct head *h)
{
	unsigned i;

	for (i = 0; i < window && reqs[i].seq != h->seq; i++)
		;
	if (i == window) { /* received a second request or reply */
		CHECK(lossy);
		return;
	}
	CHECK(h->session == h->seq % SESSIONS && h->len == h->seq % 40);
	reqs[i].seq = 0;
	open_cnt--;
	completed++;
}

static void take(const struct dev_dgram_in *in)
{
	const struct head *h = (const void *)in->data;
	uint32_t i;

	CHECK(dev_dgram_is_from(peer, in) && !dev_dgram_is_from(self, in));
	CHECK(!((uintptr_t)in->data % 64));
	CHECK(reg_seen_access(in->data) == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING));
	if (in->len < sizeof(*h) || h->len != in->len - sizeof(*h) ||
	    h->sum != checksum(h, in->data + sizeof(*h))) {
		CHECK(lossy);
		refused++;
		dops->release(dg, in->slot);
		return;
	}
	for (i = 0; i < h->len; i++)
		CHECK(in->data[sizeof(*h) + i] == pair_pattern(h->seq, i));
	if (h->is_response) {
		take_response(h);
		dops->release(dg, in->slot);
		return;
	}
	CHECK(h->len == len_of(h->seq));
	CHECK(held_cnt < dg->rx_cnt);
	held[held_cnt++] = *in;
}

/* Replies to some of the retained requests, in any order: their bytes are unchanged. */
static void respond(void)
{
	static uint8_t data[BURST][64];
	uint32_t cnt = (uint32_t)(pair_rand() % BURST), n, i, pick;
	int ret;

	if (held_cnt < held_max / 2 && pair_rand() % 4)
		return;
	for (n = 0; n < cnt && n < held_cnt; n++) {
		const struct head *h = (const void *)held[held_cnt - 1 - n].data;

		CHECK(h->sum == checksum(h, (const uint8_t *)(h + 1)));
		responses[n] = (struct head){
			.seq = h->seq, .session = h->session, .is_response = 1, .len = h->seq % 40
		};
		for (i = 0; i < responses[n].len; i++)
			data[n][i] = pair_pattern(h->seq, i);
		responses[n].sum = checksum(&responses[n], data[n]);
		outs[n] = (struct dev_dgram_out){ .to = peer,
						  .base = { &responses[n], data[n] },
						  .len = { sizeof(*h), responses[n].len } };
	}
	ret = dops->send(dg, outs, n);
	CHECK(ret == -FI_EAGAIN || (ret >= 0 && (uint32_t)ret <= n));
	eagain += ret < (int)n;
	for (i = 0; (int)i < ret; i++) {
		dops->release(dg, held[held_cnt - 1].slot);
		held_cnt--;
		served++;
	}
	if (held_cnt > 1) { /* other requests are next */
		struct dev_dgram_in tmp = held[held_cnt - 1];

		pick = (uint32_t)(pair_rand() % held_cnt);
		held[held_cnt - 1] = held[pick];
		held[pick] = tmp;
	}
}

static bool hear_some(void)
{
	struct dev_dgram_in in[BURST];
	int cnt = dops->poll(dg, in, BURST);

	CHECK(cnt >= 0);
	for (int i = 0; i < cnt; i++)
		take(&in[i]);
	return cnt;
}

static void sleep_once(void)
{
	struct pollfd pfd = { .fd = dops->wait_fd(dg), .events = POLLIN };

	if (dops->arm(dg))
		return;
	poll(&pfd, 1, 20);
	dops->disarm(dg);
	sleeps++;
}

static bool is_done(void)
{
	return completed == msgs && !held_cnt && (lossy || served == msgs);
}

static void give_up(void)
{
	fprintf(stderr,
		"side %d: stuck: %u asked, %u open, %u completed, %u served, %u held by us, %u by "
		"the device's count, %u sent, %u done\n",
		side, next_seq - 1, open_cnt, completed, served, held_cnt, dg->rx_retained,
		dg->tx_posted, dg->tx_done);
	abort();
}

static void play(void)
{
	unsigned idle = 0;

	while (!is_done()) {
		bool busy = false;

		for (unsigned i = 0; i < 4; i++)
			busy |= ask();
		busy |= hear_some();
		busy |= held_cnt > 0;
		respond();
		idle = busy ? 0 : idle + 1;
		if (idle >= IDLE_ROUNDS)
			sleep_once();
		if (util_clock_ns() - start_ns > LIMIT_NS)
			give_up();
	}
}

/*
 * Serves the other end, which may repeat requests whose replies are lost, until it reports that it
 * is done.
 */
static void linger(void)
{
	char done = 'x';

	pair_tell(&done, 1);
	while (!pair_has_arrival()) {
		hear_some();
		respond();
	}
	pair_hear(&done, 1);
	pair_meet();
	while (hear_some())
		;
	while (held_cnt)
		dops->release(dg, held[--held_cnt].slot);
	CHECK(!dg->rx_retained);
}

static void run_side(void)
{
	make_endpoint();
	pair_meet();
	start_ns = util_clock_ns();
	play();
	printf("side %d: %u requests completed, %u served in %.2f s; %u asked again, %u refused, "
	       "%u times no room, %u times no buffer, %u sleeps\n",
	       side, completed, served, (double)(util_clock_ns() - start_ns) / 1e9, resends,
	       refused, eagain, buf_waits, sleeps);
	fflush(stdout);
	linger();
	dops->forget(dg, peer);
	dops->forget(dg, self);
	dops->close(dg);
	ops->mem_dereg(dev, mem);
	ops->close(dev);
	free(bufs[0].bytes);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "mlx5")) {
		ops = &m5_dev_ops;
		dops = &m5_dgram_ops;
	} else if (!strcmp(argv[1], "verbs")) {
		ops = &vb_dev_ops;
		dops = &vb_dgram_ops;
	} else {
		return 2;
	}
	if (argc > 2)
		msgs = (uint32_t)strtoul(argv[2], NULL, 0);
	small = argc > 3 && !strcmp(argv[3], "small");
	lossy = argc > 3 && !strcmp(argv[3], "lossy");
	return pair_run(argv, run_side, false);
}
