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
 * needs an order of the compiler only.
 *
 * A process without membarrier(2) sets the bit CRL_SLEEP_FENCE in its word, and both sides execute
 * a fence. A sleeper whose membarrier(2) fails later, for example under a new seccomp filter, sets
 * the bit and waits once for CRL_SLEEP_SETTLE_US: after that every store which the other side made
 * without a fence is visible. Model: test/spin/sleep.pml.
 */
#ifndef LOCAL_CRL_SLEEP_H
#define LOCAL_CRL_SLEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/bits.h"

#define CRL_SLEEP_ARMED     1u /* the sleeper may sleep */
#define CRL_SLEEP_FENCE     2u /* the other side must execute a fence before it looks */
#define CRL_SLEEP_STEP      4u /* the word grows by it with each sleep */
#define CRL_SLEEP_SETTLE_US 1000

/** Sleeper's side. */
struct crl_sleep {
	_Atomic uint32_t *word; /* only the sleeper writes it */
	uint32_t value;         /* of the word */
};

/** Other side. */
struct crl_waker {
	const _Atomic uint32_t *word;
	uint32_t last; /* value for which the sleeper was woken last */
	bool fence;    /* the sleeper's barrier does not reach this side */
};

/** Registers the process for membarrier(2). Returns false if it has none. */
bool crl_sleep_register(void);

/** Prepares to sleep with `word`, which the other side can see. */
void crl_sleep_init(struct crl_sleep *sleep, _Atomic uint32_t *word);

/** Executes a full barrier here and on the processors of the other side. */
void crl_sleep_barrier(struct crl_sleep *sleep);

static inline bool crl_sleep_is_armed(const struct crl_sleep *sleep)
{
	return sleep->value & CRL_SLEEP_ARMED;
}

static inline void crl_sleep_publish(struct crl_sleep *sleep, uint32_t value)
{
	sleep->value = value;
	atomic_store_explicit(sleep->word, value, memory_order_relaxed);
}

/** Publishes that the sleeper may sleep. The caller looks for work afterwards. */
static inline void crl_sleep_arm(struct crl_sleep *sleep)
{
	if (crl_sleep_is_armed(sleep))
		return;
	crl_sleep_publish(sleep, (sleep->value + CRL_SLEEP_STEP) | CRL_SLEEP_ARMED);
	crl_sleep_barrier(sleep);
}

/** Publishes that the sleeper is awake. */
static inline void crl_sleep_disarm(struct crl_sleep *sleep)
{
	if (crl_sleep_is_armed(sleep))
		crl_sleep_publish(sleep, sleep->value & ~CRL_SLEEP_ARMED);
}

/** Returns how often the sleeper was armed since the call with the same `seen` before. */
static inline uint32_t crl_sleep_count(const struct crl_sleep *sleep, uint32_t *seen)
{
	uint32_t now = sleep->value & ~(CRL_SLEEP_STEP - 1), cnt = (now - *seen) / CRL_SLEEP_STEP;

	*seen = now;
	return cnt;
}

/** Looks at the sleeper's word after what was published before this call. */
static inline uint32_t crl_sleep_look(const struct crl_waker *waker)
{
	if (waker->fence)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(waker->word, memory_order_relaxed);
}

/**
 * Returns false if crl_sleep_due must be called. For a waker that was set up without `fence`; it
 * sees by itself when the sleeper asks for fences later.
 */
static inline bool crl_sleep_quiet(const struct crl_waker *waker)
{
	atomic_signal_fence(memory_order_seq_cst);
	return UTIL_LIKELY(!(atomic_load_explicit(waker->word, memory_order_relaxed) &
			     (CRL_SLEEP_ARMED | CRL_SLEEP_FENCE)));
}

/** Returns true if the sleeper must be woken for what was published before this call. */
static inline bool crl_sleep_due(struct crl_waker *waker)
{
	uint32_t word = crl_sleep_look(waker);

	if (UTIL_LIKELY(!(word & (CRL_SLEEP_ARMED | CRL_SLEEP_FENCE))))
		return false;
	if ((word & CRL_SLEEP_FENCE) && !waker->fence) {
		waker->fence = true;
		word = crl_sleep_look(waker);
	}
	if (!(word & CRL_SLEEP_ARMED) || word == waker->last)
		return false;
	waker->last = word;
	return true;
}

#endif
