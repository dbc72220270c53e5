/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process of kill_survivors: see survivor.h. */
#include "survivor.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "integ/fab.h"
#include "support/proc.h"
#include "support/rng.h"

#define WINDOW  4 /* sends and receives that a process has open per peer */
#define LEN_MAX (512u << 10)

struct head {
	uint64_t seq;
	uint32_t life; /* life of the sender */
	uint32_t len;
	uint64_t check;
};

/** An open operation: its completion's context. */
struct op {
	struct op *next; /* unused ones */
	uint32_t peer;
	bool is_send;
	uint64_t post_no; /* number of the next receive from that peer */
	uint8_t *buf;
};

struct peer {
	uint32_t sends, recvs; /* open */
	uint64_t tx_seq, rx_posts;
	uint32_t met_life; /* life of the peer that this process has sent to */
	uint32_t rx_life;  /* life whose messages are compared with each other; 0: none yet */
	uint64_t rx_shift; /* number of a message less the number of its receive */
	struct op *free_sends, *free_recvs;
};

static uint32_t self;
static struct fab fab;
static struct peer peers[PROCS_MAX];
static struct rng rng;

static void fill(uint8_t *buf, uint32_t len, uint64_t seed)
{
	for (uint32_t i = sizeof(struct head); i + 8 <= len; i += 8, seed += 0x9e3779b97f4a7c15ull)
		memcpy(buf + i, &seed, 8);
}

static bool is_filled(const uint8_t *buf, uint32_t len, uint64_t seed)
{
	for (uint32_t i = sizeof(struct head); i + 8 <= len; i += 8, seed += 0x9e3779b97f4a7c15ull)
		if (memcmp(buf + i, &seed, 8))
			return false;
	return true;
}

static uint32_t pick_len(void)
{
	static const uint32_t max[] = { 64, 64, 1000, 8000, 30000, 100000, LEN_MAX };
	uint32_t len = (uint32_t)(rng_next(&rng) >> 20) % max[(rng_next(&rng) >> 40) % 7];

	return len < sizeof(struct head) ? sizeof(struct head) : len;
}

static void op_put(struct op *op)
{
	struct op **list = op->is_send ? &peers[op->peer].free_sends : &peers[op->peer].free_recvs;

	op->next = *list;
	*list = op;
}

static void ops_init(void)
{
	for (uint32_t i = 0; i < procs * 2 * WINDOW; i++) {
		struct op *op = calloc(1, sizeof(*op));

		FAB_TRUE(op && (op->buf = malloc(LEN_MAX)));
		op->peer = i / (2 * WINDOW);
		op->is_send = i % 2;
		op_put(op);
	}
}

static void post_recvs(uint32_t to)
{
	struct peer *peer = &peers[to];
	struct op *op;

	while ((op = peer->free_recvs)) {
		peer->free_recvs = op->next;
		op->post_no = peer->rx_posts++;
		FAB_CHECK(fi_trecv(fab.ep, op->buf, LEN_MAX, NULL, to, 7, 0, op));
		peer->recvs++;
	}
}

static bool post_send(uint32_t to)
{
	struct peer *peer = &peers[to];
	struct op *op = peer->free_sends;
	struct head head = { .seq = peer->tx_seq, .life = shared->slots[self].life };
	ssize_t ret;

	if (!op)
		return false;
	head.len = pick_len();
	head.check = rng_next(&rng);
	memcpy(op->buf, &head, sizeof(head));
	fill(op->buf, head.len, head.check);
	ret = fi_tsend(fab.ep, op->buf, head.len, NULL, to, 7, op);
	if (ret == -FI_EAGAIN)
		return false;
	FAB_CHECK(ret);
	peer->free_sends = op->next;
	peer->sends++;
	peer->tx_seq++;
	return true;
}

/*
 * Checks that a message is whole, and matched in order, with none missing: one message, one
 * receive. (They may end in another order.) Skipped for a dead sender, whose announced messages
 * cannot be transferred.
 */
static void take_message(struct peer *peer, const struct op *op, size_t len)
{
	const struct slot *other = &shared->slots[op->peer];
	struct head head;

	memcpy(&head, op->buf, sizeof(head));
	FAB_TRUE(len == head.len && is_filled(op->buf, head.len, head.check));
	if (LOAD(other->alive) && head.life == LOAD(other->life)) {
		if (peer->rx_life == head.life)
			FAB_TRUE(head.seq - op->post_no == peer->rx_shift);
		peer->rx_life = head.life;
		peer->rx_shift = head.seq - op->post_no;
	}
	shared->slots[self].received[op->peer]++;
}

static void take_completion(const struct fi_cq_tagged_entry *entry, int err)
{
	struct op *op = entry->op_context;
	struct peer *peer = &peers[op->peer];
	struct slot *slot = &shared->slots[self];

	if (op->is_send)
		peer->sends--;
	else
		peer->recvs--;
	if (err) {
		slot->errors++;
		slot->errs[err & 255]++;
		/*
		 * An error concerns a dead peer only, since the parent records a death before it
		 * kills. Without a stream, a peer with no open operation may be detected through
		 * its successor.
		 */
		if (LOAD(shared->slots[op->peer].alive) && err != FI_ECONNABORTED) {
			fprintf(stderr, "process %u: %s towards %u, which lives: %s\n", self,
				op->is_send ? "send" : "receive", op->peer, fi_strerror(err));
			exit(1);
		}
	} else if (!op->is_send) {
		take_message(peer, op, entry->len);
	}
	op_put(op);
}

static bool poll_once(void)
{
	struct fi_cq_tagged_entry entry;
	int err;

	if (!fab_poll(&fab, &entry, &err))
		return false;
	take_completion(&entry, err);
	return true;
}

/** Counts mappings of memfds, and descriptors but for a UDP socket of a living peer. */
static void count_holdings(struct slot *slot)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	uint32_t cnt = 0;

	FAB_TRUE(maps);
	while (fgets(line, sizeof(line), maps))
		cnt += strstr(line, "memfd:") != NULL;
	fclose(maps);
	STORE(slot->fds, proc_fd_cnt(getpid()) - proc_has_udp_peer(getpid()));
	STORE(slot->maps, cnt);
}

/** Sends and receives with one peer as its state requires. Returns true if it did anything. */
static bool serve_peer(uint32_t i)
{
	struct slot *other = &shared->slots[i];
	struct slot *own = &shared->slots[self];
	struct peer *peer = &peers[i];
	uint32_t life = LOAD(other->life);

	own->sends[i] = peer->sends;
	own->recvs[i] = peer->recvs;
	if (!LOAD(other->alive)) {
		if (!peer->sends && !peer->recvs && own->ended[i] != life)
			STORE(own->ended[i], life);
		return false;
	}
	if (LOAD(other->open_life) != life)
		return false;
	/*
	 * A receive alone does not connect: it would not detect the death of an unconnected peer.
	 */
	if (peer->met_life != life) {
		if (post_send(i))
			peer->met_life = life;
		return true;
	}
	post_recvs(i);
	return LOAD(shared->phase) == PHASE_TALK && rng_next(&rng) % 4 && post_send(i);
}

static bool sends_open(void)
{
	for (uint32_t i = 0; i < procs; i++)
		if (peers[i].sends)
			return true;
	return false;
}

static void park(struct slot *slot)
{
	uint32_t round = LOAD(shared->round);

	if (sends_open())
		return;
	count_holdings(slot);
	STORE(slot->parked, round);
	usleep(2000);
}

static void insert_all(void)
{
	for (uint32_t i = 0; i < procs; i++)
		FAB_TRUE(fab_insert(&fab, &shared->slots[i].addr) == i);
}

static void open_self(void)
{
	struct slot *slot = &shared->slots[self];
	struct sockaddr_in src = slot->addr.sin_port ? slot->addr : fab_addr("127.0.0.1", 0);

	fab_open(&fab, &src, FI_THREAD_SAFE, FI_PROGRESS_MANUAL);
	slot->addr = fab.addr;
	STORE(slot->open_life, slot->life);
}

static void wait_for_first_lives(void)
{
	for (uint32_t i = 0; i < procs; i++)
		while (!LOAD(shared->slots[i].open_life))
			usleep(1000);
}

void survivor_run(uint32_t self_, uint64_t seed)
{
	struct slot *slot = &shared->slots[self_];
	enum phase phase;
	bool busy;

	self = self_;
	rng.state = seed;
	open_self();
	wait_for_first_lives();
	insert_all();
	ops_init();
	while ((phase = LOAD(shared->phase)) != PHASE_STOP) {
		busy = false;
		for (uint32_t i = 0; i < procs; i++)
			if (i != self)
				busy |= serve_peer(i);
		for (int n = 0; n < 8 && poll_once(); n++)
			busy = true;
		if (phase == PHASE_PARK)
			park(slot);
		else if (LOAD(shared->napping))
			usleep(500);
		else if (!busy)
			sched_yield();
	}
	fab_close(&fab);
}
