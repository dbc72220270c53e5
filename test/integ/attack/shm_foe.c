/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hostile peer of shm_attacked (shm_foe.h). */
#include "shm_foe.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dev/dev.h"
#include "dev/shm/shm_inbox.h"
#include "dev/shm/shm_seg.h"
#include "integ/fab.h"
#include "support/rng.h"

#define AREAS_MAX   16
#define LIFE_S      0.05 /* for which one foe scribbles */
#define PATIENCE_S  10.0 /* after which a foe that cannot connect, or is stuck, is given up */
#define RING_WINDOW (64u << 10)
#define HAMMER      100 /* writes of one call to one word */

/** Shared mapping: the pages of a link, or an inbox. */
struct area {
	uint8_t *base;
	size_t len;
	bool is_ring;
};

static struct area areas[AREAS_MAX];
static int area_cnt;
static struct rng rng;
static struct fab fab;
static uint8_t sent[FOE_LEN], received[FOE_MESSAGES][FOE_LEN];

static void find_areas(bool armed)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512];

	FAB_TRUE(maps);
	for (area_cnt = 0; fgets(line, sizeof(line), maps) && area_cnt < AREAS_MAX;) {
		bool is_ring = strstr(line, "memfd:copyrpc-ring");

		if ((!is_ring && !strstr(line, "memfd:copyrpc-inbox")) ||
		    sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		areas[area_cnt++] = (struct area){ armed ? (uint8_t *)from : calloc(1, to - from),
						   to - from, is_ring };
	}
	fclose(maps);
	FAB_TRUE(area_cnt >= 2);
}

static const struct area *any_area(bool is_ring)
{
	const struct area *area;

	do
		area = &areas[rng_below(&rng, (uint64_t)area_cnt)];
	while (area->is_ring != is_ring);
	return area;
}

/** Returns a value of some class: small, large, close to what is there, or random. */
static uint64_t value_like(uint64_t old)
{
	switch (rng_below(&rng, 9)) {
	case 0: return 0;
	case 1: return 1;
	case 2: return UINT64_MAX;
	case 3: return old + 1;
	case 4: return old - 1;
	case 5: return old ^ 1ull << rng_below(&rng, 64);
	case 6: return old + (1ull << 32);
	case 7: return rng_below(&rng, 1 << 20);
	default: return rng_next(&rng);
	}
}

static void scribble(uint8_t *at)
{
	uint64_t *word = (uint64_t *)(void *)at;
	uint32_t *half = (uint32_t *)(void *)at;
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (rng_below(&rng, 2))
		__atomic_store_n(word, value_like(old), __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(half, (uint32_t)value_like(old), __ATOMIC_SEQ_CST);
}

/* ---- attacks: each is called again and again ---- */

/** Any word of a control page. */
static void attack_control(void)
{
	scribble(any_area(true)->base + 8 * rng_below(&rng, SHM_PAGE / 8));
}

/** Any word at the beginning of a ring. */
static void attack_ring(void)
{
	const struct area *area = any_area(true);
	size_t len = area->len - SHM_PAGE < RING_WINDOW ? area->len - SHM_PAGE : RING_WINDOW;

	scribble(area->base + SHM_PAGE + 8 * rng_below(&rng, len / 8));
}

static void attack_inbox(void)
{
	scribble(any_area(false)->base + 8 * rng_below(&rng, sizeof(struct shm_inbox) / 8));
}

/** All bits of all links, as quickly as possible. */
static void attack_bits(void)
{
	for (int i = 0; i < area_cnt; i++)
		if (!areas[i].is_ring)
			for (size_t k = 0; k < 65; k++)
				__atomic_store_n((uint64_t *)(void *)areas[i].base + k, UINT64_MAX,
						 __ATOMIC_RELAXED);
}

/** Erases the notifications of others, as quickly as possible. */
static void attack_erase(void)
{
	for (int i = 0; i < area_cnt; i++)
		if (!areas[i].is_ring)
			memset(areas[i].base, 0, sizeof(struct shm_inbox));
}

/** Takes the line of the inbox that polls load away, as quickly as possible. */
static void attack_line(void)
{
	for (int i = 0; i < area_cnt; i++)
		for (int k = 0; !areas[i].is_ring && k < HAMMER; k++)
			__atomic_store_n((uint64_t *)(void *)areas[i].base, 0, __ATOMIC_RELAXED);
}

/** Returns the link word that the reader of a ring polls. */
static uint64_t *polled_word(const struct area *area)
{
	size_t len = area->len - SHM_PAGE, off = 0;
	uint64_t *word;

	for (;;) {
		word = (uint64_t *)(void *)(area->base + SHM_PAGE + off + DEV_LINK_WORD_OFF);
		if (!*word || *word > (len - off) / DEV_IMM_UNIT)
			return word;
		off = (off + *word * DEV_IMM_UNIT) % len;
	}
}

/** Takes the lines of its rings that polls load away, as quickly as possible. */
static void attack_word(void)
{
	for (int i = 0; i < area_cnt; i++) {
		uint64_t *word = areas[i].is_ring ? polled_word(&areas[i]) : NULL;

		for (int k = 0; word && k < HAMMER; k++)
			__atomic_store_n(word, 0, __ATOMIC_RELAXED);
	}
}

/** Claims parts and does not write them, and breaks the ring meanwhile. */
static void attack_hold(void)
{
	for (int i = 0; i < area_cnt; i++) {
		uint64_t *claim =
			(uint64_t *)(void *)(areas[i].base + offsetof(struct shm_ctrl, offer));

		if (!areas[i].is_ring)
			continue;
		if ((uint32_t)*claim < SHM_ROUND_PARTS)
			__atomic_fetch_add(claim, 1, __ATOMIC_SEQ_CST);
		if (!rng_below(&rng, 20000))
			memset(areas[i].base + SHM_PAGE, 0x7f, 1024);
	}
}

/** Offers: keys, ranges and counts of every kind, and each time another generation. */
static void attack_offer(void)
{
	struct shm_ctrl *ctrl = (struct shm_ctrl *)(void *)any_area(true)->base;
	uint8_t *offer = (uint8_t *)&ctrl->offer;

	__atomic_store_n(&ctrl->offer.claim, rng_next(&rng) << 32 | UINT32_MAX, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 4; i++)
		scribble(offer + 8 + 8 * rng_below(&rng, 8));
	if (rng_below(&rng, 2))
		*(uint64_t *)(void *)(offer + 8) = rng_below(&rng, 3) | rng_below(&rng, 5)
										<< 32; /* counts */
	__atomic_store_n(&ctrl->offer.claim, rng_next(&rng) << 32 | rng_below(&rng, 3),
			 __ATOMIC_SEQ_CST);
}

static void attack_mix(void);

static const struct {
	const char *name;
	void (*run)(void);
} attacks[] = {
	{ "control", attack_control }, { "ring", attack_ring },   { "inbox", attack_inbox },
	{ "bits", attack_bits },       { "erase", attack_erase }, { "hold", attack_hold },
	{ "offer", attack_offer },     { "line", attack_line },   { "word", attack_word },
	{ "mix", attack_mix },
};

#define ATTACKS (sizeof(attacks) / sizeof(attacks[0]))

static void attack_mix(void)
{
	attacks[rng_below(&rng, ATTACKS - 1)].run();
}

static void (*attack_of(const char *name))(void)
{
	for (size_t i = 0; i < ATTACKS; i++)
		if (!strcmp(attacks[i].name, name))
			return attacks[i].run;
	return NULL;
}

bool foe_knows(const char *name)
{
	return attack_of(name) != NULL;
}

void foe_list(void)
{
	for (size_t i = 0; i < ATTACKS; i++)
		fprintf(stderr, " %s", attacks[i].name);
}

/* ---- the life of a foe ---- */

static void make_progress(uint64_t polls)
{
	struct fi_cq_tagged_entry entry;
	int err;

	while (polls--)
		fab_poll(&fab, &entry, &err);
}

/** Connects, with a message that arrives. */
static void say_hello(fi_addr_t victim, uint64_t life)
{
	struct fi_cq_tagged_entry entry;
	double end = fab_seconds() + PATIENCE_S;
	int err;

	FAB_CHECK(fi_tsend(fab.ep, sent, 8, NULL, victim, FOE_TAG | life, &fab));
	do
		FAB_TRUE(fab_seconds() < end);
	while (!fab_poll(&fab, &entry, &err) || entry.op_context != &fab);
	FAB_TRUE(!err);
}

static void exchange_messages(fi_addr_t victim, uint64_t life)
{
	for (unsigned i = 0; i < FOE_MESSAGES; i++) {
		fi_trecv(fab.ep, received[i], FOE_LEN, NULL, victim, FOE_TAG | life, 0, NULL);
		fi_tsend(fab.ep, sent, FOE_LEN, NULL, victim, FOE_TAG | life, NULL);
	}
	make_progress(rng_below(&rng, 4) ? rng_below(&rng, 3000) : 0);
}

static void live(struct foe_desk *desk, const char *attack)
{
	void (*run)(void) = attack_of(attack);
	uint64_t life = desk->life + 1;
	bool polls = rng_below(&rng, 2);
	fi_addr_t victim;
	double end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fab_open_found(&fab);
	victim = fab_insert(&fab, &desk->victim);
	say_hello(victim, life);
	desk->foe = fab.addr;
	__atomic_store_n(&desk->life, life, __ATOMIC_RELEASE);
	exchange_messages(victim, life);
	find_areas(desk->armed);
	desk->lives[desk->armed]++;
	for (end = fab_seconds() + LIFE_S; fab_seconds() < end;) {
		/* The peer copies from this process while that writes over the offer. */
		if (!rng_below(&rng, 4))
			fi_tsend(fab.ep, sent, FOE_LEN, NULL, victim, FOE_TAG | life, NULL);
		for (int i = 0; i < 500; i++)
			run();
		if (polls)
			make_progress(20);
	}
	_exit(0);
}

/** Waits for the end of a foe, however it ends. */
static void reap(pid_t pid)
{
	double end = fab_seconds() + PATIENCE_S;

	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (fab_seconds() > end)
			kill(pid, SIGKILL);
		usleep(1000);
	}
}

/**
 * Waits until the honest peers have moved so many messages that a new connection is a small part of
 * their work, whatever part of the processors other processes leave them.
 */
static void keep_pace(const struct foe_desk *desk)
{
	static uint64_t next;

	while (__atomic_load_n(&desk->honest_cnt, __ATOMIC_RELAXED) < next)
		usleep(100);
	next = __atomic_load_n(&desk->honest_cnt, __ATOMIC_RELAXED) + FOE_PACE;
}

void foe_run(struct foe_desk *desk, uint64_t seed, const char *attack)
{
	struct sockaddr_in any_port = fab_addr("127.0.0.1", 0);
	pid_t pid;

	fab_find(&fab, &any_port, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
	for (;;) {
		rng.state = ++seed * 0x9e3779b97f4a7c15ull;
		keep_pace(desk);
		pid = fork();
		FAB_TRUE(pid >= 0);
		if (!pid)
			live(desk, attack);
		reap(pid);
	}
}
