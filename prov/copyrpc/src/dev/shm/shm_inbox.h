/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does a reader hear of a link that it is not looking at?
 *
 * One page per device, shared with all its peers: a bit per link, and a summary bit per 64 links. A
 * writer that is asked to (shm_link.h, notify) sets both; the reader looks at the summary, one
 * load, and takes all bits at once.
 *
 * Why bits and not a queue of ids: setting a bit twice is setting it once, so nothing can overflow
 * and nobody waits for a slot that a stopped or killed writer has claimed but not filled. A writer
 * that dies between the two bits hides its own post only.
 *
 * Order: a post is sequentially consistent, after the publish it tells of; the reader clears the
 * summary before the leaf. So a writer that finds the summary bit set may leave it: the reader has
 * yet to clear it and then sees the leaf. `sleeping` and the bits are a Dekker pair: each side
 * writes its own and then reads the other's, sequentially consistent both.
 *
 * What a peer writes here is a hint and never an index: bits of links that do not exist are
 * dropped. Summary and the first 7 leaves share a line: up to 448 links a post moves one line.
 *
 * Shown by test/unit/dev/shm/test_shm_inbox.c, test/stress/stress_shm_link.c.
 */
#ifndef SHM_INBOX_H
#define SHM_INBOX_H

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_LINKS_MAX 4096u /* links of one device */
#define SHM_INBOX_LEN 4096u

struct shm_inbox {
	uint64_t summary; /* bit g: leaf[g] is worth a look */
	uint64_t leaf[SHM_LINKS_MAX / 64];
	alignas(128) uint32_t sleeping; /* 1: the reader waits for the doorbell */
};

static_assert(sizeof(struct shm_inbox) <= SHM_INBOX_LEN, "one page");
static_assert(SHM_LINKS_MAX / 64 == 64, "one summary word");

/** Writer: link `id` has something. */
static inline void shm_inbox_post(struct shm_inbox *inbox, uint32_t id)
{
	uint64_t group = 1ull << (id / 64);

	__atomic_fetch_or(&inbox->leaf[id / 64], 1ull << (id % 64), __ATOMIC_SEQ_CST);
	if (!(__atomic_load_n(&inbox->summary, __ATOMIC_SEQ_CST) & group))
		__atomic_fetch_or(&inbox->summary, group, __ATOMIC_SEQ_CST);
}

/** Reader: is there a post? One load of a line that stays ours while nobody posts. */
static inline int shm_inbox_is_set(const struct shm_inbox *inbox)
{
	return __atomic_load_n(&inbox->summary, __ATOMIC_RELAXED) != 0;
}

/** Reader: takes the groups that have posts, then, for each, the bits of a group. */
static inline uint64_t shm_inbox_take_groups(struct shm_inbox *inbox)
{
	return __atomic_exchange_n(&inbox->summary, 0, __ATOMIC_SEQ_CST);
}

static inline uint64_t shm_inbox_take(struct shm_inbox *inbox, uint32_t group)
{
	return __atomic_exchange_n(&inbox->leaf[group], 0, __ATOMIC_SEQ_CST);
}

/** Writer, after a post: rings if the reader sleeps. One of many writers makes the system call. */
void shm_inbox_ring(struct shm_inbox *inbox, int bell_fd);

/** Reader: says that it will sleep / that it is awake, and takes the bell's count. */
void shm_inbox_sleep(struct shm_inbox *inbox);
void shm_inbox_wake(struct shm_inbox *inbox, int bell_fd);

/** Makes the bell (an eventfd): descriptor or -FI_E*. */
int shm_bell_create(void);

/**
 * Can a write to this descriptor of a peer's neither block nor do anything but ring? 0 or
 * -FI_EINVAL.
 */
int shm_bell_check(int fd);

#endif
