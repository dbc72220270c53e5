/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Effect of a hostile peer in shared memory on honest ones.
 *
 * Two honest endpoints of this process, which one thread polls in turn, exchange messages. Foes
 * (shm_foe.h) connect to one of them and scribble over what they share with it: their pages of
 * links, rings and inboxes. Windows of equally many honest messages alternate between two kinds: in
 * one the foes' words arrive, in the other they go to private memory. The processor time
 * of this thread for a window, which does not contain what other processes take, says how much the
 * honest messages suffer.
 *
 * Fails if an honest message is wrong, late by a minute, or costs more than 10/9 of its time: the
 * median of the pairs of windows, in three tries of the whole. A try in which the windows without
 * foes differ much, since other processes take turns on the processors, does not count. Exits with
 * 77 if no try counts.
 *
 * usage: shm_attacked [-t SECONDS] [-s SEED] [-a ATTACK] [-c]
 * 	-t	time for one try; 20
 * 	-c	check only that messages arrive: under a sanitizer times mean nothing
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ/fab.h"
#include "shm_foe.h"

#define WINDOW_MIN_S 0.3  /* a window lasts as long, and */
#define WINDOW_LIVES 2    /* sees so many foes at least */
#define PATIENCE_S   60.0 /* for an honest message */
#define FLYING       16   /* honest messages */
#define LONG_EVERY   64   /* a long one is every so many messages */
#define LONG_LEN     49152u
#define PAIRS_LEAST  9 /* on a busy machine a try takes longer */
#define PAIRS_MAX    512
#define TRIES        3 /* with steady windows */
#define TRIES_MOST   8
#define LEAST        0.9
#define STEADY       1.5 /* 90 and 10 percent of the windows without foes differ by less */
#define NOT_MEASURED 77  /* exit status */

static struct fab hub, friend;
static fi_addr_t to_hub, to_friend, to_foe = FI_ADDR_NOTAVAIL;
static struct foe_desk *desk;
static uint32_t life;
static uint64_t sent_cnt, got_cnt;
static uint8_t pattern[LONG_LEN + 251], in[FLYING][LONG_LEN], from_foe[FOE_LEN],
	to_foe_buf[FOE_LEN];
static int foe_mark;

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- honest messages ---- */

static size_t len_of(uint64_t number)
{
	return number % LONG_EVERY ? 8 : LONG_LEN;
}

static void post_receive(uint64_t number)
{
	uint8_t *buf = in[number % FLYING];

	FAB_CHECK(fi_trecv(hub.ep, buf, LONG_LEN, NULL, to_friend, number, 0, buf));
}

static void send_next(void)
{
	ssize_t ret;

	if (sent_cnt - got_cnt >= FLYING)
		return;
	ret = fi_tsend(friend.ep, pattern + sent_cnt % 251, len_of(sent_cnt), NULL, to_hub,
		       sent_cnt, &friend);
	if (ret == -FI_EAGAIN)
		return;
	FAB_CHECK(ret);
	sent_cnt++;
}

/** Checks a message. A long one ends later than some that were sent after it. */
static void take(const struct fi_cq_tagged_entry *entry)
{
	FAB_TRUE(entry->op_context == in[entry->tag % FLYING] && entry->len == len_of(entry->tag));
	FAB_TRUE(!memcmp(entry->op_context, pattern + entry->tag % 251, entry->len));
	post_receive(entry->tag + FLYING);
	got_cnt++;
}

/* ---- the foe's ---- */

/** One receive from any source ends with each connection that breaks. */
static void post_foe(void)
{
	FAB_CHECK(fi_trecv(hub.ep, from_foe, FOE_LEN, NULL, FI_ADDR_UNSPEC, FOE_TAG, ~0ull >> 8,
			   &foe_mark));
}

/** Sends to a new foe what it may try to get more of than it was sent. */
static void meet_foe(void)
{
	uint32_t now = __atomic_load_n(&desk->life, __ATOMIC_ACQUIRE);

	if (now == life)
		return;
	life = now;
	if (to_foe != FI_ADDR_NOTAVAIL)
		FAB_CHECK(fi_av_remove(hub.av, &to_foe, 1, 0));
	to_foe = fab_insert(&hub, &desk->foe);
	for (unsigned i = 0; i < FOE_MESSAGES; i++)
		fi_tsend(hub.ep, to_foe_buf, FOE_LEN, NULL, to_foe, FOE_TAG | life, &to_foe);
}

/* ---- both ---- */

static void poll_hub(void)
{
	struct fi_cq_tagged_entry entry;
	int err;

	if (!fab_poll(&hub, &entry, &err))
		return;
	if (entry.op_context == &foe_mark)
		post_foe();
	else if (entry.op_context != &to_foe) {
		FAB_TRUE(!err);
		take(&entry);
	}
}

static void poll_friend(void)
{
	struct fi_cq_tagged_entry entry;
	int err;

	if (fab_poll(&friend, &entry, &err))
		FAB_TRUE(!err);
}

/** Moves `cnt` honest messages. */
static void move(uint64_t cnt)
{
	uint64_t end = got_cnt + cnt, last = got_cnt;
	double limit = fab_seconds() + PATIENCE_S;

	for (unsigned turn = 0; got_cnt < end; turn++) {
		send_next();
		poll_friend();
		poll_hub();
		if (turn % 256)
			continue;
		meet_foe();
		__atomic_store_n(&desk->honest_cnt, got_cnt, __ATOMIC_RELAXED);
		if (got_cnt != last)
			limit = fab_seconds() + PATIENCE_S;
		last = got_cnt;
		FAB_TRUE(fab_seconds() < limit);
	}
}

/** Returns the processor time of an honest message while foes scribble, `armed` or not. */
static double run_window(unsigned armed)
{
	uint32_t lives = desk->lives[armed];
	double start = fab_seconds(), cpu = cpu_seconds();
	uint64_t cnt = got_cnt;

	desk->armed = armed;
	do
		move(1000);
	while (fab_seconds() - start < WINDOW_MIN_S ||
	       (desk->lives[armed] - lives < WINDOW_LIVES && fab_seconds() - start < PATIENCE_S));
	return (cpu_seconds() - cpu) / (double)(got_cnt - cnt);
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1
						       : *(const double *)a > *(const double *)b;
}

struct outcome {
	double rate;   /* median of the rates with foes, as parts of the rates without */
	double spread; /* of the windows without foes: 90 percent to 10 percent */
};

static struct outcome run_try(double seconds)
{
	static double ratios[PAIRS_MAX], calm[PAIRS_MAX];
	double end = fab_seconds() + seconds, attacked, sum[2] = { 0 };
	struct outcome out;
	size_t cnt = 0;

	while (cnt < PAIRS_MAX && (cnt < PAIRS_LEAST || fab_seconds() < end)) {
		calm[cnt] = run_window(0);
		attacked = run_window(1);
		sum[0] += calm[cnt];
		sum[1] += attacked;
		ratios[cnt] = calm[cnt] / attacked;
		cnt++;
	}
	qsort(ratios, cnt, sizeof(ratios[0]), compare);
	qsort(calm, cnt, sizeof(calm[0]), compare);
	out.rate = ratios[cnt / 2];
	out.spread = calm[cnt - 1 - cnt / 10] / calm[cnt / 10];
	printf("%zu pairs of windows, %u and %u foes: %.0f and %.0f ns of processor time a "
	       "message, %.3f of the rate (%.3f to %.3f); those without foes differ by %.2f\n",
	       cnt, desk->lives[0], desk->lives[1], sum[0] / (double)cnt * 1e9,
	       sum[1] / (double)cnt * 1e9, out.rate, ratios[cnt / 10], ratios[cnt - 1 - cnt / 10],
	       out.spread);
	fflush(stdout);
	return out;
}

static void open_all(void)
{
	struct sockaddr_in any_port = fab_addr("127.0.0.1", 0);

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + 1);
	fab_open(&hub, &any_port, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	fab_open(&friend, &any_port, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	to_hub = fab_insert(&friend, &hub.addr);
	to_friend = fab_insert(&hub, &friend.addr);
	desk->victim = hub.addr;
	for (uint64_t i = 0; i < FLYING; i++)
		post_receive(i);
	for (int i = 0; i < 4; i++)
		post_foe();
}

static int usage(void)
{
	fprintf(stderr, "usage: shm_attacked [-t SECONDS] [-s SEED] [-a ATTACK] [-c]; attacks:");
	foe_list();
	fputc('\n', stderr);
	return 2;
}

/** Starts the process of the foes, before this one has threads. */
static pid_t start_foes(uint64_t seed, const char *attack)
{
	pid_t pid = fork();

	FAB_TRUE(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!__atomic_load_n(&desk->victim.sin_port, __ATOMIC_ACQUIRE))
		usleep(1000);
	foe_run(desk, seed, attack);
	_exit(1);
}

/** Returns the exit status. */
static int run_tries(double seconds, bool check_only)
{
	unsigned counted = 0;

	for (unsigned i = 0; i < TRIES_MOST && counted < TRIES; i++) {
		struct outcome out = run_try(seconds);

		if (out.rate >= LEAST || check_only)
			return 0;
		counted += out.spread < STEADY;
	}
	return counted ? 1 : NOT_MEASURED;
}

static void tell(int status, const char *attack, uint64_t seed)
{
	if (status == 1)
		fprintf(stderr, "attack %s, seed %llu: less than %.2f of the rate\n", attack,
			(unsigned long long)seed, LEAST);
	else if (status == NOT_MEASURED)
		fprintf(stderr, "attack %s: not measured, other processes need the processors\n",
			attack);
}

int main(int argc, char **argv)
{
	const char *attack = "mix";
	uint64_t seed = 1;
	double seconds = 20;
	bool check_only = false;
	pid_t foes;
	int opt, status;

	while ((opt = getopt(argc, argv, "t:s:a:c")) != -1)
		switch (opt) {
		case 't': seconds = atof(optarg); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'a': attack = optarg; break;
		case 'c': check_only = true; break;
		default: return usage();
		}
	if (optind != argc || !foe_knows(attack))
		return usage();
	desk = mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FAB_TRUE(desk != MAP_FAILED);
	foes = start_foes(seed, attack);
	open_all();
	move(1000);
	status = run_tries(seconds, check_only);
	tell(status, attack, seed);
	kill(foes, SIGKILL);
	FAB_TRUE(waitpid(foes, NULL, 0) == foes);
	return status;
}
