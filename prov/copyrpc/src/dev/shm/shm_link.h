/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared-memory link. Called by the engine through dev_link_ops.
 *
 * The writer has the reader's ring mapped and writes into it. The link word, eight bytes at offset
 * 24 of each write's head, marks a complete write; the reader polls for a nonzero word. To publish
 * the write at `off` with the next head imm units further, at n, the writer
 *
 *   1. clears the word at n if it is beyond the cleared range (relaxed),
 *   2. stores imm in the word at off (release),
 *   3. loads the reader's notify and posts if it changed since the last post (shm_inbox.h),
 *   4. clears the words of [n, n + ahead] that are not clear yet (relaxed).
 *
 * A small message is one cache line from writer to reader. Step 4 fetches each line that it clears
 * from the reader, which read it a lap ago. Before step 2 that would delay the word (112 ns one way
 * instead of 67); after it, it prefetches the lines of the next message.
 *
 * Order: the release in 2 makes data and cleared words visible first (x86: plain stores; Arm: stlr,
 * ldar). 2 before 3 is a StoreLoad. The reader pays for it, with membarrier(2) before it sleeps
 * (shm_watch.h). tx_fence makes the writer pay where either process has no membarrier.
 *
 * A link belongs to the polling thread from attach to detach, to the control thread before and
 * after. Tests: test/unit/dev/shm/test_shm_link.c; figures: fabtests/benchmarks/shm_link_bench.c.
 */
#ifndef DEV_SHM_SHM_LINK_H
#define DEV_SHM_SHM_LINK_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dev/dev.h"
#include "dev/shm/shm_inbox.h"
#include "dev/shm/shm_seg.h"
#include "dev/shm/shm_share.h"
#include "util/bits.h"
#include "util/list.h"

#define SHM_IDX_NONE  UINT32_MAX
#define SHM_IMM_SHIFT 5 /* DEV_IMM_UNIT */

/*
 * Units cleared ahead after a write of up to SHM_SMALL units, and after a larger one. Measured by
 * shm_link_bench --only ahead. Clearing further speeds up larger messages, until the reader's
 * prefetcher takes the lines back, and slows a stream of them.
 */
#define SHM_SMALL       5u
#define SHM_AHEAD_SMALL 8u
#define SHM_AHEAD_LARGE 16u

struct shm_dev;

/** Proof of a process' identity: 16 random bytes at an address in it. */
struct shm_probe {
	uint64_t nonce[2];
	uint64_t addr;
	pid_t pid; /* by the kernel's word; 0: unknown */
};

/** Parts that this end has written of the peer's last round. */
struct shm_helped {
	uint32_t gen;
	uint32_t done; /* low half of shm_offer.done */
};

struct shm_link {
	struct dev_link base;

	/* Used by writes, and by the posts of those to a parked link. */
	const uint32_t *peer_notify;
	const uint64_t *peer_consumer;
	struct shm_inbox *peer_inbox;
	uint32_t peer_id; /* this link's bit in the peer's inbox */
	int peer_bell_fd;
	uint32_t posted;      /* value of *peer_notify at the last post */
	uint32_t cleared;     /* the words of the next head and this many units behind it are 0 */
	uint16_t ahead_small; /* target for `cleared` after a small write, in units */
	uint16_t ahead_large; /* target after a larger write */
	bool tx_fence; /* execute a fence in each write, as the reader cannot do it by membarrier */
	/* Used by poll: a line of its own, as few of thousands of links do both at a time. */
	_Alignas(UTIL_CACHE_LINE) uint64_t rx_off; /* offset of the next head */
	uint32_t act_idx;                          /* index in shm_dev.act; SHM_IDX_NONE: parked */
	uint32_t seen;                             /* shm_dev.tick_cnt at the last event */
	uint32_t epoch;                            /* value of ctrl->notify */
	uint32_t id;                               /* this link's bit in the local inbox */
	uint32_t armed_at;                         /* rx_off in units when epoch was changed */
	bool armed;   /* epoch was changed; no post has come since, and no word without one */
	bool owed;    /* epoch was changed, and no post has come since */
	bool settled; /* the word was 0 after a membarrier that followed the change */
	bool dead;    /* DEV_EV_DOWN was given */
	/* in shm_dev.unsettled or .distrusted: parked, and a notification may be lost */
	struct util_list unsettled;
	struct shm_dev *dev;
	struct shm_ctrl *ctrl;

	/* Rarely used. */
	uint32_t theft;    /* sum of shm_theft.h for the ring */
	uint32_t distrust; /* looks of the patrol for which the link is distrusted; 0: it is not */
	uint32_t caught;   /* number of times that it became distrusted */
	int seg_fd;        /* until attach */
	bool attached;
	void *tx_map;
	struct shm_probe peer;
	struct shm_offer *peer_offer;
	struct shm_share share;        /* local gets */
	struct util_list exposures;    /* shm_exposure.exposed_link */
	struct util_list exposed_link; /* in shm_dev.exposed, while there are exposures */
	struct shm_helped helped;
	uint64_t proven_ns; /* time of the last proof of the peer's identity */
};

static_assert(offsetof(struct shm_link, base) == 0, "devices embed dev_link first");
static_assert(offsetof(struct shm_link, rx_off) == 2 * UTIL_CACHE_LINE, "writes: two lines");
static_assert(offsetof(struct shm_link, theft) <= 3 * UTIL_CACHE_LINE, "poll: the third one");

static inline uint64_t *shm_link_word(uint8_t *ring, uint64_t off)
{
	return (uint64_t *)(void *)(ring + off + DEV_LINK_WORD_OFF);
}

/** Posts to the reader and rings if it sleeps. Once per epoch. */
void shm_link_post(struct shm_link *link, uint32_t epoch);

/** Returns `units`, limited to a 32nd of a ring of `len` bytes. */
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

	(void)len; /* the bytes are in place */
	if (imm > cleared)
		shm_link_clear(base, next);
	cleared = imm > cleared ? 0 : cleared - imm;
	__atomic_store_n(shm_link_word(base->tx_base, off), imm, __ATOMIC_RELEASE);
	if (UTIL_UNLIKELY(link->tx_fence))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the compiler keeps step 2 before step 3 */
	epoch = __atomic_load_n(link->peer_notify, __ATOMIC_RELAXED);
	if (UTIL_UNLIKELY(epoch != link->posted))
		shm_link_post(link, epoch);
	if (cleared < ahead) {
		uint8_t *ring = base->tx_base; /* hoisted: the stores below may alias base */
		uint64_t mask = base->tx_len - 1;
		uint64_t end = next + ((uint64_t)ahead << SHM_IMM_SHIFT);

		next += (uint64_t)cleared << SHM_IMM_SHIFT;
		do {
			next += DEV_IMM_UNIT;
			shm_link_clear_at(ring, next & mask);
		} while (next != end);
		cleared = ahead;
	}
	link->cleared = cleared;
	return 0;
}

/** Reads the peer's consumer word. The acquire orders later stores behind the peer's loads. */
static inline int shm_link_read_consumer(struct dev_link *base, uint64_t *value)
{
	*value = __atomic_load_n(((struct shm_link *)base)->peer_consumer, __ATOMIC_ACQUIRE);
	return 1;
}

/* Other operations of dev_link_ops. */
int shm_link_get(struct dev_link *base, struct dev_get *get);
int shm_link_put(struct dev_link *base, struct dev_get *get);
bool shm_link_withdraw(struct dev_link *base);
int shm_link_describe(struct dev_link *base, struct dev_desc *desc);
int shm_link_connect(struct dev_link *base, const struct dev_desc *peer);
int shm_link_attach(struct dev_link *base);
void shm_link_detach(struct dev_link *base);
void shm_link_close(struct dev_link *base);

int shm_link_create(struct dev *dev, uint64_t rx_len, struct dev_link **link);

/** Copies bytes [from, to) of a get in this process alone. Sets get->status. */
void shm_bulk_get_part(struct shm_link *link, struct dev_get *get, uint64_t from, uint64_t to);
/** Move several ranges in one call. Return true if all their bytes were moved. */
bool shm_bulk_get_vec(struct shm_link *link, const struct shm_vec *vec);
/**
 * Writes `len` bytes from `cnt` local ranges. `remote` may be shared memory: the call reads it
 * once, at its beginning.
 */
bool shm_bulk_put_vec(struct shm_link *link, const struct iovec *local, size_t cnt,
		      const struct iovec *remote, size_t remote_cnt, size_t len);

enum shm_probe_result {
	/* process_vm_readv reaches the process, and it is the one that was connected */
	SHM_PROBE_SAME,
	SHM_PROBE_GONE,   /* no such process, or another one with its pid */
	SHM_PROBE_HIDDEN, /* unknown: reading is no longer permitted */
};

enum shm_probe_result shm_probe(const struct shm_probe *probe);

/** Returns true if shm_probe gives SHM_PROBE_SAME. */
bool shm_probe_check(const struct shm_probe *probe);

#endif
