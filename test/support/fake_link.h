/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake devices that implement dev.h to the letter, in the least helpful way.
 *
 * Two devices in memory, deterministic by seed, for tests of the code above dev.h:
 *   direct  tx_base is the peer's ring; in-band arrival: the link word is stored at the head of
 *           each write, after those of all heads in the `ahead` bytes behind it were cleared.
 *           Never out of space.
 *   staged  tx_base is a send ring; the bytes move at delivery, later. A send queue of `sq_len`
 *           slots, -FI_EAGAIN when they are used up. read_consumer completes by event, with a value
 *           that may be stale by then.
 *
 * Order is kept per link, as dev.h promises; everything else is delayed at random, unless `eager`.
 * fake_fail reports violations of dev.h by the user and does not return: writes out of order or
 * across the end, bytes written or cleared that the peer has not released, bytes changed between
 * the write and its delivery, link words written by the user.
 *
 * Owner: one thread. Used by test/unit/ring and test/fuzz.
 */
#ifndef SUPPORT_FAKE_LINK_H
#define SUPPORT_FAKE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"
#include "support/fake_fail.h"
#include "support/rng.h"
#include "util/list.h"

#define FAKE_LINKS_MAX  8
#define FAKE_INLINE_MAX 64u

/** Write in flight, oldest first in struct fake_link.wire. */
struct fake_write {
	uint64_t off;
	uint32_t len;
	uint32_t imm;
	bool ack;     /* Delivery is reported to the writer */
	bool is_word; /* Position of a rail: its bytes have no meaning */
};

struct fake_dev {
	bool direct;
	bool late;       /* Staged, for links connected from now on: write_imm_ack */
	bool free_acks;  /* Late: result of acks_are_free */
	bool eager;      /* Everything is delivered at the first poll */
	bool no_read;    /* read_consumer always returns -FI_EAGAIN */
	bool get_later;  /* get completes by event */
	bool sink;       /* Nothing arrives, only bounds are checked: a peer under test control */
	bool lose_reads; /* No read_consumer comes back */
	bool frail;      /* A read of a closed link, or of memory not registered, ends the link */
	uint32_t ahead;  /* Direct: inband_len less 32; for links connected from now on */
	uint32_t sq_len; /* Staged: writes that may be queued for delivery; 0: none */
	int fail_create; /* Results of the next link_create, connect, attach */
	int fail_connect;
	int fail_attach;
	int fail_reg;
	bool registers;     /* A get needs registered memory at both ends */
	unsigned mem_cnt;   /* Registered regions */
	int health;         /* Result of dev_ops.health */
	struct dev *beside; /* Device that it was opened beside; NULL: it was opened alone */
	struct rng rng;
	struct fake_link *links[FAKE_LINKS_MAX];
	unsigned link_cnt;
	uint64_t write_cnt; /* Accepted writes */
	int fd;             /* wait_fd: never readable; set in devices made by open */
	bool armed;
};

struct fake_mem {
	struct dev_mem base; /* First member */
	struct fake_dev *dev;
	uint32_t magic;
	const uint8_t *addr;
	size_t len;
	unsigned access;
};

struct fake_link {
	struct dev_link base;       /* First member */
	struct util_list open_link; /* In the list of all open links */
	struct fake_dev *dev;
	struct fake_link *peer;
	uint64_t tx_pos; /* Start of the next write */
	uint64_t rx_pos; /* Direct: start of the next arrival */
	uint8_t *image;  /* Bytes of all writes that have not arrived, as they were written */
	struct fake_write *wire; /* Ring of wire_mask + 1 writes */
	uint64_t wire_mask;
	uint64_t wire_head; /* Oldest write that has not arrived */
	uint64_t wire_sent; /* Staged: oldest write not delivered (direct: equals tail) */
	uint64_t wire_tail;
	uint32_t acks; /* Delivered, not reported */
	bool read_busy;
	bool read_taken; /* read_value was loaded at the peer */
	uint64_t read_value;
	uint64_t read_behind; /* Late: writes that a READ in progress follows */
	struct dev_get *get;  /* Get or put in progress */
	bool put;             /* Put whose bytes have been moved */
	bool shown;           /* The device sees it */
	int down;             /* Not 0: the next event is DEV_EV_DOWN */
	bool attached;
	bool dead;               /* Takes nothing any more */
	struct fake_link *first; /* Link whose memory it uses (link_beside), or NULL */
	bool is_rail;            /* Writes are positions, outside the order; until adopt */
	bool is_fresh;           /* The memory was adopted: the next write may begin anywhere */
};

extern const struct dev_link_ops fake_link_direct_ops;
extern const struct dev_link_ops fake_link_staged_ops;
extern const struct dev_link_ops fake_link_late_ops;
extern const struct dev_ops fake_dev_ops;

/**
 * Staged device as a NIC: registers memory, completes gets later. Absent while fake_nic_absent is
 * set; without a second one while fake_nic_alone is. fake_nic_blind: no wait_fd of a device opened
 * meanwhile is valid.
 */
extern const struct dev_ops fake_nic_ops;
extern bool fake_nic_absent, fake_nic_alone, fake_nic_blind;
extern unsigned fake_nic_open_cnt; /* Devices that are open */
extern unsigned fake_nic_tries;    /* Attempts to open a second one */

/** Initializes a device that behaves as its fields say: set them after the call. */
void fake_dev_init(struct fake_dev *fake, bool direct, uint64_t seed);

static inline struct dev *fake_dev_of(struct fake_dev *fake)
{
	return (struct dev *)fake;
}

static inline struct fake_link *fake_link_of(struct dev_link *link)
{
	return (struct fake_link *)link;
}

/** Makes both ends of a connected, attached pair with these ring lengths (each of its reader). */
void fake_link_pair(struct fake_dev *a, uint64_t a_rx_len, struct fake_dev *b, uint64_t b_rx_len,
		    struct dev_link *out[2]);

/** Like fake_link_pair, over the rings of the pair `first`. */
void fake_link_pair_beside(struct fake_dev *a, struct fake_dev *b, struct dev_link *const first[2],
			   struct dev_link *out[2]);

/** Ends a link with `status`: it takes nothing any more, and what was not delivered is lost. */
void fake_link_kill(struct dev_link *link, int status);

/** Starts both rings at positions other than 0. Called before the first write. */
void fake_link_start(struct dev_link *link, uint64_t tx_pos, uint64_t rx_pos);

/** Staged: moves the oldest write into the peer's ring. Returns false if there was none. */
bool fake_link_deliver(struct dev_link *link);

/** Returns the number of writes of `link` that the peer has not polled. */
uint32_t fake_link_in_transit(const struct dev_link *link);

/** Returns the bytes of the n-th of them, oldest first, as they were written. */
const uint8_t *fake_link_peek(const struct dev_link *link, uint32_t n, struct fake_write *w);

/* Shared between the three files of the device. */
int fake_direct_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
int fake_staged_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
int fake_late_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
/** Completes the oldest delivered write: fills in an event, or returns false. */
bool fake_poll_imm(struct fake_link *f, struct dev_event *ev);
int fake_link_create(struct dev *dev, uint64_t rx_len, struct dev_link **out);
int fake_link_beside(struct dev *dev, struct dev_link *first, struct dev_link **out);
bool fake_poll_link(struct dev_link *link, struct dev_event *ev);
/** Returns the memory that is registered with this key, or NULL. */
const struct fake_mem *fake_key_find(uint64_t key);
/** Checks that [addr, addr + len) is registered with the device for `access`. */
void fake_check_mem(const struct fake_dev *fake, const struct fake_mem *mem, const void *addr,
		    size_t len, unsigned access);

/** Fills in an event of that link. Returns true. */
static inline bool fake_ev(struct fake_link *f, struct dev_event *ev, struct dev_event value)
{
	value.link = &f->base;
	*ev = value;
	return true;
}

#endif
