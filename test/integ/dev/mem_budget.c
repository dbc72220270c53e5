/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of rings is bounded for any number of peers.
 *
 * usage: mem_budget PEERS FIT LEAST MOST
 *
 * One endpoint talks to PEERS others, over the RDMA device that FI_COPYRPC_PATHS names, first to
 * each as it becomes a peer, then to all of them again. The registrations for rings (reg_seen.h)
 * show:
 *
 *   - neither end ever has more than FI_COPYRPC_MEM
 *   - the first peers have rings of MOST bytes, later ones smaller and never larger ones, the
 *   last LEAST
 *   - peers beyond 256 take at most 64 KiB each
 *   - exactly the first FIT have one; messages to the others end with an error, and all others
 *   continue
 *   - closed peers return their memory
 *
 * The peers share a domain and a queue, so that their end has as many connections and the same
 * budget.
 */
#include <stdint.h>

#include "integ/fab.h"
#include "reg_seen.h"

#define PEERS_MAX 1100
#define FEW       256         /* peers with large rings, */
#define MANY_MEM  (64u << 10) /* and what one more takes at most */
#define PATIENCE  200.0       /* seconds */
#define LEN       512

struct peer {
	struct fid_ep *ep;
	fi_addr_t at; /* in the hub's vector */
};

static struct fab hub, crowd; /* crowd.ep is the last, after the others are closed */
static fi_addr_t hub_at;
static struct peer peers[PEERS_MAX];
static unsigned peer_cnt, fit;
static size_t least, most, budget;

/* ---- what is registered ---- */

/** One of the two domains' rings. */
struct end {
	struct ibv_pd *pd;
	size_t now;   /* bytes */
	size_t first; /* the oldest receive ring */
	size_t last;  /* the youngest */
};

/* Receive rings are what peers may write; a send ring has a page in front of it. */
static size_t ring_len(const struct reg_seen *reg)
{
	if (reg->access & IBV_ACCESS_REMOTE_WRITE)
		return reg->len;
	return reg->len > 4096 ? reg->len - 4096 : 0;
}

static void add(struct end *end, const struct reg_seen *reg)
{
	if (reg->mr)
		end->now += ring_len(reg);
	if (!(reg->access & IBV_ACCESS_REMOTE_WRITE))
		return;
	if (!end->first)
		end->first = reg->len;
	end->last = reg->len;
	FAB_TRUE(reg->len >= least && reg->len <= most);
}

static void look(struct end ends[2])
{
	memset(ends, 0, 2 * sizeof(*ends));
	for (size_t i = 0; i < reg_seen_cnt(); i++) {
		struct reg_seen reg = reg_seen_at(i);
		int which = ends[0].pd && ends[0].pd != reg.pd;

		ends[which].pd = reg.pd;
		add(&ends[which], &reg);
	}
	FAB_TRUE(ends[0].now <= budget && ends[1].now <= budget);
}

/** Checks that no ring is larger than an older one. Returns the youngest. */
static size_t check_rings(void)
{
	static size_t before[2];
	struct end ends[2];

	look(ends);
	for (int i = 0; i < 2; i++) {
		FAB_TRUE(ends[i].first == most);
		FAB_TRUE(!before[i] || ends[i].last <= before[i]);
		before[i] = ends[i].last;
	}
	return ends[0].last > ends[1].last ? ends[0].last : ends[1].last;
}

/* ---- messages ---- */

struct op {
	bool ended;
	int err;
};

static void take(struct fab *fab)
{
	struct fi_cq_tagged_entry entry;
	struct op *op;
	int err;

	while (fab_poll(fab, &entry, &err)) {
		op = entry.op_context;
		op->ended = true;
		op->err = err;
	}
}

static void both_take(void)
{
	take(&hub);
	take(&crowd);
}

static void await(const struct op *op)
{
	double start = fab_seconds();

	while (!op->ended) {
		both_take();
		FAB_TRUE(fab_seconds() - start < PATIENCE);
	}
}

static void post_recv(struct fid_ep *ep, fi_addr_t from, char *buf, struct op *op)
{
	ssize_t ret;

	*op = (struct op){ .ended = false };
	while ((ret = fi_trecv(ep, buf, LEN, NULL, from, 1, 0, op)) == -FI_EAGAIN)
		both_take();
	FAB_CHECK(ret);
}

static void post_send(struct fid_ep *ep, fi_addr_t to, const char *buf, struct op *op)
{
	ssize_t ret;

	*op = (struct op){ .ended = false };
	while ((ret = fi_tsend(ep, buf, LEN, NULL, to, 1, op)) == -FI_EAGAIN)
		both_take();
	FAB_CHECK(ret);
}

/** Passes one message. Returns 0, or the error of the send. */
static int pass(struct fid_ep *from, fi_addr_t to, struct fid_ep *at, fi_addr_t source)
{
	static unsigned char fill;
	char out[LEN], in[LEN];
	struct op sent, got;

	memset(out, ++fill, LEN);
	post_recv(at, source, in, &got);
	post_send(from, to, out, &sent);
	await(&sent);
	if (sent.err) {
		FAB_CHECK(fi_cancel(&at->fid, &got));
		await(&got);
		FAB_TRUE(got.err == FI_ECANCELED);
		return sent.err;
	}
	await(&got);
	FAB_TRUE(!got.err && !memcmp(in, out, LEN));
	return 0;
}

/** There and back. */
static int ask(struct peer *peer)
{
	int err = pass(hub.ep, peer->at, peer->ep, hub_at);

	return err ? err : pass(peer->ep, hub_at, hub.ep, peer->at);
}

/* ---- peers ---- */

static struct fid_ep *open_peer(struct sockaddr_in *addr)
{
	size_t len = sizeof(*addr);
	struct fid_ep *ep;

	FAB_CHECK(fi_endpoint(crowd.domain, crowd.info, &ep, NULL));
	FAB_CHECK(fi_ep_bind(ep, &crowd.av->fid, 0));
	FAB_CHECK(fi_ep_bind(ep, &crowd.cq->fid, FI_TRANSMIT | FI_RECV));
	FAB_CHECK(fi_enable(ep));
	FAB_CHECK(fi_getname(&ep->fid, addr, &len));
	return ep;
}

/** Checks what the peers beyond FEW take at each end. */
static void check_many(unsigned cnt, const size_t few[2])
{
	struct end ends[2];

	look(ends);
	for (int i = 0; i < 2; i++)
		FAB_TRUE(ends[i].now - few[i] <= (size_t)(cnt - FEW) * MANY_MEM);
}

static void meet_all(void)
{
	size_t last = 0, few[2] = { 0 };
	struct end ends[2];

	for (unsigned i = 0; i < peer_cnt; i++) {
		struct sockaddr_in addr;
		int err;

		peers[i].ep = open_peer(&addr);
		peers[i].at = fab_insert(&hub, &addr);
		err = ask(&peers[i]);
		if (err != (i < fit ? 0 : FI_ENOMEM)) {
			fprintf(stderr, "peer %u of %u: %s\n", i, peer_cnt, fi_strerror(err));
			exit(1);
		}
		last = check_rings();
		if (i + 1 == FEW) {
			look(ends);
			few[0] = ends[0].now;
			few[1] = ends[1].now;
		} else if (i >= FEW) {
			check_many(i + 1, few);
		}
	}
	FAB_TRUE(last == least);
}

/** Closes all peers. Their memory is free: the next peer gets as much as the first did. */
static void start_again(void)
{
	double start = fab_seconds();
	struct peer late = { .ep = crowd.ep, .at = fab_insert(&hub, &crowd.addr) };
	struct end ends[2];

	for (unsigned i = 0; i < peer_cnt; i++)
		FAB_CHECK(fi_close(&peers[i].ep->fid));
	do {
		both_take();
		look(ends);
		FAB_TRUE(fab_seconds() - start < PATIENCE);
	} while (ends[0].now || ends[1].now);
	FAB_TRUE(!ask(&late));
	look(ends);
	FAB_TRUE(ends[0].last == most && ends[1].last == most);
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = fab_addr("127.0.0.1", 0);

	if (argc != 5 || !getenv("FI_COPYRPC_MEM"))
		return 2;
	peer_cnt = (unsigned)strtoul(argv[1], NULL, 0);
	fit = (unsigned)strtoul(argv[2], NULL, 0);
	least = strtoul(argv[3], NULL, 0);
	most = strtoul(argv[4], NULL, 0);
	budget = strtoul(getenv("FI_COPYRPC_MEM"), NULL, 0);
	FAB_TRUE(peer_cnt && peer_cnt <= PEERS_MAX && budget);
	fab_open(&hub, &any, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	fab_open(&crowd, &any, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	hub_at = fab_insert(&crowd, &hub.addr);
	meet_all();
	for (unsigned i = 0; i < fit && i < peer_cnt; i++)
		FAB_TRUE(!ask(&peers[i]));
	start_again();
	fab_close(&hub);
	fab_close(&crowd);
	printf("%u peers, %u of them with rings: from %zu to %zu bytes, within %zu\n", peer_cnt,
	       fit < peer_cnt ? fit : peer_cnt, most, least, budget);
	return 0;
}
