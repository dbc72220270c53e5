/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sleep of one side of a channel, and its wakeup by the other. Used by every channel.
 *
 * The sleeper publishes an odd number in a word (crl_sleep_arm), looks once more whether there is
 * work, and sleeps on a descriptor. The other side publishes its work, looks at the word
 * (crl_sleep_due), and writes to the descriptor if the number is odd and another than the one it
 * wrote for last. One of the two sees the other if a full barrier stands between publishing and
 * looking on both sides. The sleeper runs membarrier(2), which executes that barrier on every
 * processor that runs a process of a channel; the other side, which publishes all the time, then
 * needs an order of the compiler only. Without membarrier(2) both execute a fence.
 */
#ifndef LOCAL_CRL_SLEEP_H
#define LOCAL_CRL_SLEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Sleeper's side. */
struct crl_sleep {
	_Atomic uint32_t *word; /* odd while the sleeper may sleep; only it writes */
	uint32_t count;         /* value of the word */
};

/** Other side. */
struct crl_waker {
	const _Atomic uint32_t *word;
	uint32_t last; /* value for which the sleeper was woken last */
	bool fence;    /* the sleeper's barrier does not reach this side */
};

/** Registers the process for membarrier(2). Returns false if it has none. */
bool crl_sleep_register(void);

/** Executes a full barrier on every processor that runs a registered process. */
void crl_sleep_barrier(void);

static inline bool crl_sleep_is_armed(const struct crl_sleep *sleep)
{
	return sleep->count & 1;
}

/** Publishes that the sleeper may sleep. The caller looks for work afterwards. */
static inline void crl_sleep_arm(struct crl_sleep *sleep)
{
	if (crl_sleep_is_armed(sleep))
		return;
	atomic_store_explicit(sleep->word, ++sleep->count, memory_order_relaxed);
	crl_sleep_barrier();
}

/** Publishes that the sleeper is awake. */
static inline void crl_sleep_disarm(struct crl_sleep *sleep)
{
	if (crl_sleep_is_armed(sleep))
		atomic_store_explicit(sleep->word, ++sleep->count, memory_order_relaxed);
}

/** Returns true if the sleeper must be woken for what was published before this call. */
static inline bool crl_sleep_due(struct crl_waker *waker)
{
	uint32_t word;

	if (waker->fence)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	word = atomic_load_explicit(waker->word, memory_order_relaxed);
	if (!(word & 1) || word == waker->last)
		return false;
	waker->last = word;
	return true;
}

#endif
