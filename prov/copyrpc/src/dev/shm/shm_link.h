/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a batch get from one process to another of the same host, and how does the reader know?
 *
 * The writer has the reader's ring mapped and writes into it. Eight bytes at offset 24 of each
 * write's head, the link word, say that it is complete; the reader waits for a word that is not 0.
 * To publish the write at `off`, whose next head is imm units further, at n:
 *   1. if n is beyond the cleared stretch, clear its word                (relaxed)
 *   2. store imm in the word at off                                      (release)
 *   3. load the reader's notify; if it changed since our last post, post (shm_inbox.h)
 *   4. clear the words of [n, n + ahead] that are not clear yet          (relaxed)
 * A small message is one cache line from writer to reader. 4 comes after 2 because each line that
 * is cleared must first be fetched from the reader, who read it a lap ago: before 2, the word would
 * wait for that (112 ns one way instead of 67). It also fetches the lines of the next message
 * before there is one.
 *
 * Order: 2 is a release, so data and clear words are seen before it (x86: plain stores; Arm: stlr,
 * ldar). 2 before 3 is a StoreLoad, which no machine gives for nothing, and the writer does not pay
 * for it: the reader does, with membarrier(2), before it sleeps (shm_watch.h). Where either process
 * has no membarrier, tx_fence makes this writer pay.
 *
 * Owner: who holds the domain, from attach to detach; before and after, the control thread.
 * Shown by test/unit/dev/shm/test_shm_link.c; figures by fabtests/benchmarks/shm_link_bench.c.
 */
#ifndef SHM_LINK_H
#define SHM_LINK_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dev/dev.h"
#include "dev/shm/shm_inbox.h"
#include "dev/shm/shm_seg.h"
#include "util/bits.h"
#include "util/list.h"

#define SHM_IDX_NONE  UINT32_MAX
#define SHM_IMM_SHIFT 5 /* DEV_IMM_UNIT */

/*
 * Units cleared ahead after a write of up to SHM_SMALL units, and after a larger one:
 * shm_link_bench --only ahead. Further is quicker for larger messages, until the reader's
 * prefetcher takes the lines back, and costs a stream of them.
 */
#define SHM_SMALL       5u
#define SHM_AHEAD_SMALL 8u
#define SHM_AHEAD_LARGE 16u

struct shm_dev;

/** Proof that a process is the one that was connected to: 16 random bytes at an address of it. */
struct shm_probe {
	uint64_t nonce[2];
	uint64_t addr;
	pid_t pid;
};

struct shm_link {
	struct dev_link base;

	/* Writing. */
	const uint32_t *peer_notify;
	const uint64_t *peer_consumer;
	uint32_t posted;      /* value of *peer_notify that we last posted for */
	uint32_t cleared;     /* the words of the next head and so many units behind it are 0 */
	uint16_t ahead_small; /* what `cleared` is brought to after a small write, in units */
	uint16_t ahead_large; /* and after a larger one */
	bool tx_fence;        /* the reader cannot make up for our missing fence */
	/* Reading. */
	uint64_t rx_off;  /* where the next head is */
	uint32_t act_idx; /* in shm_dev.act; SHM_IDX_NONE: not looked at by poll */
	uint32_t seen;    /* shm_dev.tick_cnt at the last event */
	uint32_t epoch;   /* value of ctrl->notify */
	bool armed;       /* epoch was changed and no post has come for it yet */
	bool settled;     /* the word was found 0 after a membarrier that followed the change */
	bool attached;
	bool dead; /* DEV_EV_DOWN was given */

	/* Seldom. */
	struct util_list unsettled; /* in shm_dev.unsettled: parked, a notification may be lost */
	struct shm_dev *dev;
	uint32_t id;      /* ours, in our inbox */
	uint32_t peer_id; /* ours, in the peer's inbox */
	struct shm_ctrl *ctrl;
	void *tx_map;
	struct shm_inbox *peer_inbox;
	int seg_fd; /* until attach */
	int peer_bell_fd;
	struct shm_probe peer;
	struct shm_offer *peer_offer;
	struct shm_share share;         /* our fetches */
	struct util_list exposure_link; /* in shm_dev.lent */
	int lent;                       /* announcements of our memory that the peer may fetch */
	uint64_t proven_ns;             /* when peer was last found to be itself */
};

static_assert(offsetof(struct shm_link, base) == 0, "devices embed dev_link first");
static_assert(offsetof(struct shm_link, unsettled) <= 2 * UTIL_CACHE_LINE, "hot part: two lines");

static inline uint64_t *shm_link_word(uint8_t *ring, uint64_t off)
{
	return (uint64_t *)(void *)(ring + off + DEV_LINK_WORD_OFF);
}

/** The reader wants to be told: posts and, if it sleeps, rings. Once per epoch. */
void shm_link_post(struct shm_link *link, uint32_t epoch);

/** `units`, but no more than a 32nd of a ring of `len` bytes. */
static inline uint16_t shm_link_ahead(uint64_t len, uint32_t units)
{
	return (uint16_t)(len / 32 / DEV_IMM_UNIT < units ? len / 32 / DEV_IMM_UNIT : units);
}

static inline void shm_link_clear_at(uint8_t *ring, uint64_t off)
{
	__atomic_store_n(shm_link_word(ring, off), 0, __ATOMIC_RELAXED);
}

static inline void shm_link_clear(struct dev_link *base, uint64_t off)
{
	shm_link_clear_at(base->tx_base, off & (base->tx_len - 1));
}

static inline int shm_link_write_imm(struct dev_link *base, uint64_t off, uint32_t len,
				     uint32_t imm)
{
	struct shm_link *link = (struct shm_link *)base;
	uint64_t next = off + ((uint64_t)imm << SHM_IMM_SHIFT);
	uint32_t ahead = imm > SHM_SMALL ? link->ahead_large : link->ahead_small;
	uint32_t cleared = link->cleared, epoch;

	(void)len; /* the bytes are there already */
	if (imm > cleared)
		shm_link_clear(base, next);
	cleared = imm > cleared ? 0 : cleared - imm;
	__atomic_store_n(shm_link_word(base->tx_base, off), imm, __ATOMIC_RELEASE);
	if (UTIL_UNLIKELY(link->tx_fence))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the compiler keeps 2 before 3 */
	epoch = __atomic_load_n(link->peer_notify, __ATOMIC_RELAXED);
	if (UTIL_UNLIKELY(epoch != link->posted))
		shm_link_post(link, epoch);
	if (cleared < ahead) {
		uint8_t *ring = base->tx_base; /* the stores below do not change it */
		uint64_t mask = base->tx_len - 1;

		do
			shm_link_clear_at(ring, (next + (uint64_t)++cleared * DEV_IMM_UNIT) & mask);
		while (cleared < ahead);
	}
	link->cleared = cleared;
	return 0;
}

/** The acquire keeps our next stores behind the peer's last loads of what it has released. */
static inline int shm_link_read_consumer(struct dev_link *base, uint64_t *value)
{
	*value = __atomic_load_n(((struct shm_link *)base)->peer_consumer, __ATOMIC_ACQUIRE);
	return 1;
}

/* The rest of dev_link_ops. */
int shm_link_get(struct dev_link *base, struct dev_get *get);
int shm_link_put(struct dev_link *base, struct dev_get *get);
void shm_link_expose(struct dev_link *base, int delta);
int shm_link_describe(struct dev_link *base, struct dev_desc *desc);
int shm_link_connect(struct dev_link *base, const struct dev_desc *peer);
int shm_link_attach(struct dev_link *base);
void shm_link_detach(struct dev_link *base);
void shm_link_close(struct dev_link *base);

int shm_link_create(struct dev *dev, uint64_t rx_len, struct dev_link **link);

/** Bytes [from, to) of a fetch, by this process alone; get->status is set. */
void shm_bulk_get_part(struct shm_link *link, struct dev_get *get, uint64_t from, uint64_t to);
/** Several stretches in one call: have all their bytes been moved? */
bool shm_bulk_get_vec(struct shm_link *link, const struct shm_vec *vec);
bool shm_bulk_put_vec(struct shm_link *link, const struct shm_vec *vec);

enum shm_probe_result {
	SHM_PROBE_SAME,   /* process_vm_readv reaches it, and it is still the one that was named */
	SHM_PROBE_GONE,   /* there is no such process, or another program in its place */
	SHM_PROBE_HIDDEN, /* nobody can say: we may not look any more */
};

enum shm_probe_result shm_probe(const struct shm_probe *probe);

/** Is it SHM_PROBE_SAME? */
bool shm_probe_check(const struct shm_probe *probe);

#endif
