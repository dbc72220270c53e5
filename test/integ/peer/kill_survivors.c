/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that is killed at a random moment leaves no survivor hanging, and no resource behind.
 *
 * A few processes exchange tagged messages of all sizes, each with each. One is killed with
 * SIGKILL; each survivor's operations towards it must end, well or badly, within LIMIT seconds, and
 * TIMEOUT more if not all had reached it before: a process that was never seen may start late. The
 * survivors continue with each other. Then a new process takes the dead one's address and all
 * talk to it again. Received bytes must be the sent ones, in order; counts published by the dead
 * process are valid. After each death the survivors hold no more descriptors and mappings of shared
 * memory than after others, and no socket of the dead one is left.
 *
 * The parent calls no libfabric: it forks, kills, and announces phases through shared memory.
 *
 * usage: kill_survivors [kills [processes [seed]]]
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"

#define PROCS_MAX 8
#define WINDOW    4 /* sends and receives that a process has open per peer */
#define LEN_MAX   (512u << 10)
#define TIMEOUT   15   /* seconds: FI_COPYRPC_PEER_TIMEOUT */
#define LIMIT     14.0 /* seconds for each operation to end: less than the peer timeout */
#define CHATTER   50   /* messages between survivors after a death */

enum phase {
	PHASE_TALK, /* all living processes exchange messages */
	PHASE_PARK, /* open operations are finished, no new ones begin */
	PHASE_STOP, /* all close and exit */
};

/** State shared by parent and children. One writer for each field. */
struct slot {
	/* written by the parent */
	pid_t pid;
	uint32_t life;
	bool alive;
	/* written by the child */
	struct sockaddr_in addr;
	uint32_t open_life;        /* life (generation) whose endpoint is open */
	uint32_t ended[PROCS_MAX]; /* life of each peer towards which no operation is open */
	uint32_t parked;           /* round in which no operation is open */
	uint32_t fds, maps;        /* of shared memory; true while parked */
	uint32_t sends[PROCS_MAX], recvs[PROCS_MAX]; /* open operations, for debugging */
	uint64_t received[PROCS_MAX], errors;
	int errs[256];
};

struct shared {
	enum phase phase;
	uint32_t round;
	struct slot slots[PROCS_MAX];
};

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

static struct shared *shared;
static uint32_t procs = 4, self;
static struct fab fab;
static struct peer peers[PROCS_MAX];
static uint64_t rng;

#define LOAD(x)     __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

static uint64_t next_random(void)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return rng * 0x2545f4914f6cdd1dull;
}

/* ---- a process ---- */

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
	uint32_t len = (uint32_t)(next_random() >> 20) % max[(next_random() >> 40) % 7];

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
	head.check = next_random();
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

/** Counts entries of /proc/self/fd, and mappings of memfds. */
static void count_holdings(struct slot *slot)
{
	DIR *dir = opendir("/proc/self/fd");
	FILE *maps = fopen("/proc/self/maps", "re");
	uint32_t fds = 0, cnt = 0;
	char line[512];

	FAB_TRUE(dir && maps);
	while (readdir(dir))
		fds++;
	while (fgets(line, sizeof(line), maps))
		cnt += strstr(line, "memfd:") != NULL;
	closedir(dir);
	fclose(maps);
	STORE(slot->fds, fds);
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
	return LOAD(shared->phase) == PHASE_TALK && next_random() % 4 && post_send(i);
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

static void run_process(void)
{
	struct slot *slot = &shared->slots[self];
	enum phase phase;
	bool busy;

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
		else if (!busy)
			sched_yield();
	}
	fab_close(&fab);
}

/* ---- the parent ---- */

static struct {
	unsigned long inode;
} sockets[PROCS_MAX][64];

static void fail(const char *what, uint32_t who)
{
	const struct slot *slot = &shared->slots[who];

	fprintf(stderr, "kill_survivors: round %u: process %u: %s\n", shared->round, who, what);
	for (uint32_t i = 0; i < procs; i++)
		fprintf(stderr, "    towards %u (%s, life %u): %u sends and %u receives open\n", i,
			shared->slots[i].alive ? "alive" : "dead", shared->slots[i].life,
			slot->sends[i], slot->recvs[i]);
	if (getenv("KILL_SURVIVORS_WAIT"))
		sleep(30); /* for a debugger */
	for (uint32_t i = 0; i < procs; i++)
		if (shared->slots[i].pid > 0)
			kill(shared->slots[i].pid, SIGKILL);
	exit(1);
}

static void start(uint32_t i, uint64_t seed)
{
	struct slot *slot = &shared->slots[i];
	pid_t parent = getpid(), pid;

	slot->life++;
	STORE(slot->alive, true);
	pid = fork();
	FAB_TRUE(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		self = i;
		rng = seed | 1;
		run_process();
		exit(0);
	}
	slot->pid = pid;
}

/** Fails if a process ended that was not killed. */
static void check_children(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (pid <= 0)
		return;
	for (uint32_t i = 0; i < procs; i++)
		if (shared->slots[i].pid == pid) {
			shared->slots[i].pid = 0;
			fail(WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it gave up", i);
		}
}

/** Waits until `done(i)` for every living process. Returns the seconds. */
static double wait_all_within(double limit, bool (*done)(uint32_t i), const char *what)
{
	double begin = fab_seconds();

	for (uint32_t i = 0; i < procs; i++) {
		while (shared->slots[i].alive && !done(i)) {
			check_children();
			if (fab_seconds() - begin > limit)
				fail(what, i);
			usleep(500);
		}
	}
	return fab_seconds() - begin;
}

static double wait_all(bool (*done)(uint32_t i), const char *what)
{
	return wait_all_within(LIMIT, done, what);
}

static uint32_t victim;
static bool all_talk; /* each process has received from each other one of this life */
static uint64_t marks[PROCS_MAX][PROCS_MAX];

static bool is_open(uint32_t i)
{
	return LOAD(shared->slots[i].open_life) == shared->slots[i].life;
}

static bool has_ended(uint32_t i)
{
	return LOAD(shared->slots[i].ended[victim]) == shared->slots[victim].life;
}

static bool has_parked(uint32_t i)
{
	return LOAD(shared->slots[i].parked) == shared->round;
}

static void mark_received(void)
{
	for (uint32_t i = 0; i < procs; i++)
		for (uint32_t j = 0; j < procs; j++)
			marks[i][j] = LOAD(shared->slots[i].received[j]);
}

static bool has_received_all(uint32_t i)
{
	for (uint32_t j = 0; j < procs; j++)
		if (j != i && shared->slots[j].alive &&
		    LOAD(shared->slots[i].received[j]) < marks[i][j] + CHATTER)
			return false;
	return true;
}

/** Records the inodes of the sockets of a process. */
static void note_sockets(uint32_t i)
{
	char path[64], link[64];
	uint32_t cnt = 0;
	ssize_t len;

	memset(sockets[i], 0, sizeof(sockets[i]));
	for (int fd = 0; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)shared->slots[i].pid, fd);
		len = readlink(path, link, sizeof(link) - 1);
		if (len <= 0)
			continue;
		link[len] = 0;
		if (sscanf(link, "socket:[%lu]", &sockets[i][cnt].inode) == 1)
			cnt++;
	}
}

static bool socket_is_left(uint32_t i)
{
	FILE *file = fopen("/proc/net/unix", "re");
	unsigned long inode;
	char line[512];
	bool found = false;

	FAB_TRUE(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode) != 1)
			continue;
		for (uint32_t k = 0; k < 64 && sockets[i][k].inode; k++)
			found |= sockets[i][k].inode == inode;
	}
	fclose(file);
	return found;
}

/** Checks that a survivor holds no more after a death than any of them after an earlier one. */
static void check_holdings(void)
{
	static uint32_t fds = UINT32_MAX, maps = UINT32_MAX;

	for (uint32_t i = 0; i < procs; i++) {
		struct slot *slot = &shared->slots[i];
		double begin = fab_seconds();

		if (!slot->alive)
			continue;
		while (LOAD(slot->fds) > fds || LOAD(slot->maps) > maps) {
			check_children();
			if (fab_seconds() - begin > LIMIT) {
				fprintf(stderr, "%u descriptors, %u mappings; before: %u, %u\n",
					slot->fds, slot->maps, fds, maps);
				fail("it holds something of the dead", i);
			}
			usleep(1000);
		}
		fds = LOAD(slot->fds);
		maps = LOAD(slot->maps);
	}
}

static double longest;

static void kill_one(void)
{
	struct slot *slot = &shared->slots[victim];
	double took;

	note_sockets(victim);
	STORE(slot->alive, false);
	kill(slot->pid, SIGKILL);
	waitpid(slot->pid, NULL, 0);
	slot->pid = 0;
	took = wait_all_within(all_talk ? LIMIT : TIMEOUT + LIMIT, has_ended,
			       "operations towards the dead did not end");
	longest = took > longest ? took : longest;
	if (socket_is_left(victim))
		fail("a socket of it is left", victim);
}

static void run_round(void)
{
	shared->round++;
	usleep((useconds_t)(next_random() % (next_random() % 4 ? 30000 : 3000)));
	victim = (uint32_t)(next_random() >> 32) % procs;
	kill_one();
	mark_received();
	wait_all(has_received_all, "survivors do not talk to each other");
	STORE(shared->phase, PHASE_PARK);
	wait_all(has_parked, "sends between survivors did not end");
	check_holdings();
	start(victim, next_random());
	wait_all(is_open, "no endpoint at the address of the dead");
	STORE(shared->phase, PHASE_TALK);
	all_talk = next_random() % 2;
	if (!all_talk)
		return; /* the next victim may be killed while one connects */
	mark_received();
	wait_all(has_received_all, "not all talk to the new process");
}

static void stop_all(void)
{
	int status;

	shared->round++;
	STORE(shared->phase, PHASE_PARK);
	wait_all(has_parked, "sends did not end");
	STORE(shared->phase, PHASE_STOP);
	for (uint32_t i = 0; i < procs; i++) {
		waitpid(shared->slots[i].pid, &status, 0);
		shared->slots[i].pid = 0;
		if (status)
			fail("it did not end well", i);
	}
}

static void report(uint32_t kills)
{
	uint64_t received = 0, errors = 0;
	int errs[256] = { 0 };

	for (uint32_t i = 0; i < procs; i++) {
		for (uint32_t j = 0; j < procs; j++)
			received += shared->slots[i].received[j];
		errors += shared->slots[i].errors;
		for (int e = 0; e < 256; e++)
			errs[e] += shared->slots[i].errs[e];
	}
	printf("kill_survivors: ok: %u kills among %u processes, %llu messages checked, "
	       "%llu operations ended with an error, the last of a death within %.3f s\n",
	       kills, procs, (unsigned long long)received, (unsigned long long)errors, longest);
	for (int e = 0; e < 256; e++)
		if (errs[e])
			printf("    %7d %s\n", errs[e], fi_strerror(e));
}

int main(int argc, char **argv)
{
	uint32_t kills = argc > 1 ? (uint32_t)atoi(argv[1]) : 20;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL);
	char timeout_ms[16];

	procs = argc > 2 ? (uint32_t)atoi(argv[2]) : procs;
	FAB_TRUE(procs >= 3 && procs <= PROCS_MAX);
	snprintf(timeout_ms, sizeof(timeout_ms), "%d", TIMEOUT * 1000);
	setenv("FI_COPYRPC_PEER_TIMEOUT", timeout_ms, 1);
	printf("kill_survivors: seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	rng = seed | 1;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	FAB_TRUE(shared != MAP_FAILED);
	for (uint32_t i = 0; i < procs; i++)
		start(i, next_random());
	wait_all(is_open, "no endpoint");
	for (uint32_t i = 0; i < kills; i++)
		run_round();
	stop_all();
	report(kills);
	return 0;
}
