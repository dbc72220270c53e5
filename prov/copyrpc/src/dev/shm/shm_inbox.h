/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inbox: notifications for links that poll does not look at. Called by shm_link and shm_watch.
 *
 * One page per device, shared with all its peers: a bit per link, and a summary bit per leaf of 64
 * links. A writer sets both when the reader asks for it (notify in shm_link.h). The reader loads
 * the summary and takes all bits at once.
 *
 * Bits cannot overflow: setting one twice is setting it once. No process waits for a slot that a
 * stopped or killed writer claimed. A writer that dies between the two bits hides its own post
 * only.
 *
 * Order: a post is sequentially consistent, after its publish. The reader clears the summary before
 * the leaf. So a writer that finds the summary bit set may leave it: the reader has yet to clear it
 * and then sees the leaf. `sleeping` and the bits are a Dekker pair: each side writes its own and
 * then reads the other's, both sequentially consistent.
 *
 * A writer rings first and clears `sleeping` then, so that later ones need not ring. One that is
 * stopped in between, or before, keeps no other from ringing. What it does when it goes on is for
 * the number of the sleep that it saw: a later sleep has another one and stays announced.
 *
 * A peer's bits are hints, never indexes: bits of unknown links are dropped. Summary and the first
 * 7 leaves share a line: with up to 448 links a post moves one line.
 *
 * Tests: test/unit/dev/shm/test_shm_inbox.c, test/stress/stress_shm_link.c.
 */
#ifndef DEV_SHM_SHM_INBOX_H
#define DEV_SHM_SHM_INBOX_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#define SHM_LINKS_MAX 4096u /* links of one device */
#define SHM_INBOX_LEN 4096u

struct shm_inbox {
	uint64_t summary; /* bit i: leaf[i] has bits */
	uint64_t leaf[SHM_LINKS_MAX / 64];
	/* odd: number of the sleep in which the reader waits for the doorbell; 0: it does not */
	alignas(128) uint32_t sleeping;
};

static_assert(sizeof(struct shm_inbox) <= SHM_INBOX_LEN, "one page");
static_assert(SHM_LINKS_MAX / 64 == 64, "one summary word");

/** Writer: posts for link `id`. */
static inline void shm_inbox_post(struct shm_inbox *inbox, uint32_t id)
{
	uint64_t leaf_bit = 1ull << (id / 64);

	__atomic_fetch_or(&inbox->leaf[id / 64], 1ull << (id % 64), __ATOMIC_SEQ_CST);
	if (!(__atomic_load_n(&inbox->summary, __ATOMIC_SEQ_CST) & leaf_bit))
		__atomic_fetch_or(&inbox->summary, leaf_bit, __ATOMIC_SEQ_CST);
}

/**
 * Reader: returns nonzero if there is a post. One load of a line that stays cached without posts.
 */
static inline int shm_inbox_is_set(const struct shm_inbox *inbox)
{
	return __atomic_load_n(&inbox->summary, __ATOMIC_RELAXED) != 0;
}

/** Reader: takes the summary, and with shm_inbox_take the bits of each leaf. */
static inline uint64_t shm_inbox_take_summary(struct shm_inbox *inbox)
{
	return __atomic_exchange_n(&inbox->summary, 0, __ATOMIC_SEQ_CST);
}

static inline uint64_t shm_inbox_take(struct shm_inbox *inbox, uint32_t leaf)
{
	return __atomic_exchange_n(&inbox->leaf[leaf], 0, __ATOMIC_SEQ_CST);
}

/** Writer, after a post: rings if the reader sleeps and none has rung for this sleep. */
void shm_inbox_ring(struct shm_inbox *inbox, int bell_fd);

/**
 * Reader: announces a sleep, with the number that follows *number. Zero is a number to begin with.
 */
void shm_inbox_sleep(struct shm_inbox *inbox, uint32_t *number);
/**
 * Reader: ends the sleep and takes the messages of the bell, up to a limit: the rest ends the next
 * sleep at once. Returns true if the bell has rung.
 */
bool shm_inbox_wake(struct shm_inbox *inbox, int bell_fd);

/**
 * Bell: a pair of connected local sockets. The owner never passes the end that it reads; the other
 * one is shared with all peers. Each call says by itself that it does not wait (MSG_DONTWAIT), so
 * no flag that a peer sets on the shared end makes it wait, and the kernel copies the byte of a
 * message before it takes a lock.
 */
struct shm_bell {
	int read_fd;  /* readable: the bell rang */
	int write_fd; /* for descriptions; kept, so that the other end stays connected */
};

/** Makes a bell. Returns 0, -FI_EMFILE or -FI_ENOMEM; logs errors. */
int shm_bell_create(struct shm_bell *bell);
void shm_bell_close(const struct shm_bell *bell);

/** Checks that a peer's descriptor is such a socket. Returns 0 or -FI_EINVAL. */
int shm_bell_check(int fd);

#endif
