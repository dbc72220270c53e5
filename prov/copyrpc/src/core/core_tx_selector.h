/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protocol selector of a peer: pipelined or rendezvous, for messages that the kernel can copy for
 * the peer. Called by core_tx_bulk.c, which reads the clock, and by core_rx_bulk.c.
 *
 * Pipelined bytes are copied twice, by each end once, through the ring. A rendezvous get copies
 * them once, in the kernel, half of them at each end, after a fixed cost. Which is faster depends
 * on the distance of the processors, on the kernel, and on whether both ends send, and it changes
 * when a process moves. So both are timed at the sender, from the start of a message to the peer's
 * reply: each of the first few messages, then one in eight, and now and then one by the slower
 * protocol. Only a single message is timed: no other to the peer is open at its start or its end.
 *
 * A stream of messages that wait for each other gains more from gets, because one call copies
 * several: it is pipelined only where that is clearly faster.
 *
 * The time of a get says nothing if the receive was late, posted after the message had arrived. A
 * pipelined message is then copied once more, out of the memory of unexpected messages: it counts
 * as one that takes twice the time of a get.
 *
 * Long messages are pipelined only towards a peer that sends such messages too: one that receives
 * late must not be filled with them.
 */
#ifndef CORE_CORE_TX_SELECTOR_H
#define CORE_CORE_TX_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Longest message that may be pipelined; the ring is no faster than the kernel above. */
#define CORE_TX_SELECTOR_MAX (512u << 10)
/** Length above which a message is long. */
#define CORE_TX_SELECTOR_LONG (64u << 10)
/** Long messages that may be pipelined since the last long message of the peer. */
#define CORE_TX_SELECTOR_AHEAD 8u
/** Timed messages of each protocol before the first choice. */
#define CORE_TX_SELECTOR_FIRST 4u
/** Messages from one that is timed to the next one by the selected protocol. */
#define CORE_TX_SELECTOR_AGAIN 8u
/** Messages from one to the next by the other protocol, and where it takes twice the time. */
#define CORE_TX_SELECTOR_OTHER 64u
#define CORE_TX_SELECTOR_SLOW  256u
/** Largest time, in nanoseconds per KiB. */
#define CORE_TX_SELECTOR_MOST (1u << 30)

enum core_tx_protocol {
	CORE_TX_GET,   /* rendezvous */
	CORE_TX_PARTS, /* pipelined */
	CORE_TX_PROTOCOLS,
};

/** Classes of lengths with times of their own: up to 64 KiB, 128 KiB, 256 KiB, and longer. */
#define CORE_TX_CLASSES 4u

/** Time of a protocol for one class. */
struct core_tx_time {
	uint32_t kib_ns; /* nanoseconds per KiB */
	uint16_t since;  /* messages of the class since the last timed one */
	uint16_t cnt;    /* timed messages, up to CORE_TX_SELECTOR_FIRST */
};

/** Selector of one peer. Zeroed: nothing is known. */
struct core_tx_selector {
	struct core_tx_time times[CORE_TX_CLASSES][CORE_TX_PROTOCOLS];
	uint8_t ahead; /* long pipelined messages since the last long message of the peer */
};

/** How to send a message. */
struct core_tx_choice {
	enum core_tx_protocol protocol;
	bool timed; /* core_tx_selector_add is called with its time */
};

static inline unsigned core_tx_selector_class(size_t len)
{
	unsigned cls = 0;

	while (cls < CORE_TX_CLASSES - 1 && len > CORE_TX_SELECTOR_LONG << cls)
		cls++;
	return cls;
}

/** Returns the faster protocol, for a single message or for one of a stream. */
static inline enum core_tx_protocol core_tx_selector_faster(const struct core_tx_time *times,
							    bool single)
{
	uint64_t get = times[CORE_TX_GET].kib_ns, parts = times[CORE_TX_PARTS].kib_ns;

	return (single ? parts < get : 4 * parts < 3 * get) ? CORE_TX_PARTS : CORE_TX_GET;
}

/** Returns true if a single message is to be sent by `other`, to learn its time again. */
static inline bool core_tx_selector_is_due(const struct core_tx_time *other,
					   const struct core_tx_time *selected)
{
	bool slow = other->kib_ns / 2 >= selected->kib_ns;

	return other->since >= (slow ? CORE_TX_SELECTOR_SLOW : CORE_TX_SELECTOR_OTHER);
}

/**
 * Returns how to send a message of `len` bytes, at most CORE_TX_SELECTOR_MAX. `single`: no other
 * message to the peer is open. Called again when a send is retried.
 */
static inline struct core_tx_choice core_tx_selector_choose(const struct core_tx_selector *sel,
							    size_t len, bool single)
{
	const struct core_tx_time *times = sel->times[core_tx_selector_class(len)];
	const struct core_tx_time *get = &times[CORE_TX_GET], *parts = &times[CORE_TX_PARTS];
	struct core_tx_choice choice = { .protocol = CORE_TX_GET, .timed = single };

	if (len > CORE_TX_SELECTOR_LONG && sel->ahead >= CORE_TX_SELECTOR_AHEAD) {
		choice.timed = false;
	} else if (parts->cnt < CORE_TX_SELECTOR_FIRST || get->cnt < CORE_TX_SELECTOR_FIRST) {
		choice.protocol = single && parts->cnt < get->cnt ? CORE_TX_PARTS : CORE_TX_GET;
	} else {
		choice.protocol = core_tx_selector_faster(times, single);
		if (single &&
		    core_tx_selector_is_due(&times[!choice.protocol], &times[choice.protocol]))
			choice.protocol = !choice.protocol;
		else
			choice.timed =
				single && times[choice.protocol].since >= CORE_TX_SELECTOR_AGAIN;
	}
	return choice;
}

/** Counts a message of `len` bytes after the channel has accepted its first frame. */
static inline void core_tx_selector_started(struct core_tx_selector *sel, size_t len,
					    struct core_tx_choice choice)
{
	struct core_tx_time *times = sel->times[core_tx_selector_class(len)];

	for (unsigned i = 0; i < CORE_TX_PROTOCOLS; i++)
		times[i].since += times[i].since < UINT16_MAX;
	if (choice.timed)
		times[choice.protocol].since = 0;
	if (choice.protocol == CORE_TX_PARTS && len > CORE_TX_SELECTOR_LONG &&
	    sel->ahead < CORE_TX_SELECTOR_AHEAD)
		sel->ahead++;
}

/** Notes a message of `len` bytes from the peer. */
static inline void core_tx_selector_received(struct core_tx_selector *sel, uint64_t len)
{
	if (len > CORE_TX_SELECTOR_LONG)
		sel->ahead = 0;
}

/**
 * Adds the time of a message. Lower times count half at once. Higher ones raise the time by a
 * quarter at most: a process that did not run, or a receive that was late, says little.
 */
static inline void core_tx_selector_add(struct core_tx_selector *sel, size_t len,
					enum core_tx_protocol protocol, uint64_t ns)
{
	struct core_tx_time *time = &sel->times[core_tx_selector_class(len)][protocol];
	uint64_t known = time->kib_ns, kib_ns = ns / (len >> 10);

	if (kib_ns > CORE_TX_SELECTOR_MOST)
		kib_ns = CORE_TX_SELECTOR_MOST;
	if (time->cnt && kib_ns < known)
		kib_ns = (known + kib_ns) / 2;
	else if (time->cnt && kib_ns > known + known / 4 + 1)
		kib_ns = known + known / 4 + 1;
	time->kib_ns = (uint32_t)kib_ns;
	time->cnt += time->cnt < CORE_TX_SELECTOR_FIRST;
}

/** Adds a message whose receive was posted after it had arrived. */
static inline void core_tx_selector_add_late(struct core_tx_selector *sel, size_t len,
					     enum core_tx_protocol protocol)
{
	const struct core_tx_time *get = &sel->times[core_tx_selector_class(len)][CORE_TX_GET];

	if (protocol == CORE_TX_PARTS)
		core_tx_selector_add(sel, len, protocol, 2 * (len >> 10) * get->kib_ns);
}

#endif
