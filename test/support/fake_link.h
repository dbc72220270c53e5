/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a device do that keeps dev.h to the letter and helps in nothing?
 *
 * Two devices in memory, deterministic by seed, for tests of what stands above dev.h:
 *   direct  tx_base is the peer's ring; in-band arrival: the link word is stored at the head of
 *           each write, after those of all heads in the `ahead` bytes behind it were cleared.
 *           Never out of room.
 *   staged  tx_base is a send ring; the bytes travel at delivery, later. A send queue of `sq_len`
 *           slots, -FI_EAGAIN when they are taken. read_consumer answers by event, with a value
 *           that may be old by then.
 *
 * Order is kept per link, as dev.h promises; everything else is delayed at random (`eager`: not).
 * A rule of dev.h that the user breaks is reported by fake_fail, which does not return: writes that
 * are out of order or cross the end, bytes written or cleared that the peer has not released,
 * bytes changed between the write and its delivery, link words written by others.
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

#define FAKE_LINKS_MAX 8

/** A write on its way, oldest first in struct fake_link.wire. */
struct fake_write {
	uint64_t off;
	uint32_t len;
	uint32_t imm;
	bool ack; /* its writer is told when it is delivered */
};

struct fake_dev {
	bool direct;
	bool late;       /* staged, and of links connected from now on: write_imm_ack */
	bool eager;      /* everything is delivered at the first look */
	bool no_read;    /* read_consumer answers -FI_EAGAIN for ever */
	bool get_later;  /* get ends by event */
	bool sink;       /* nothing arrives, nothing is checked but the bounds: a lying peer */
	uint32_t ahead;  /* direct: inband_len less 32; of links connected from now on */
	uint32_t sq_len; /* staged: writes that may wait for delivery; 0: none goes */
	int fail_create; /* what the next calls of link_create, connect, attach return */
	int fail_connect;
	int fail_attach;
	int fail_reg;
	bool registers;   /* a get needs registered memory at both ends */
	unsigned mem_cnt; /* registered */
	struct rng rng;
	struct fake_link *links[FAKE_LINKS_MAX];
	unsigned link_cnt;
	uint64_t write_cnt; /* accepted */
	int fd;             /* wait_fd: never readable; of a device made by open */
};

struct fake_mem {
	struct dev_mem base; /* first */
	uint32_t magic;
	const uint8_t *addr;
	size_t len;
	unsigned access;
};

struct fake_link {
	struct dev_link base;       /* first */
	struct util_list open_link; /* of all there are, whoever has them */
	struct fake_dev *dev;
	struct fake_link *peer;
	uint64_t consumer; /* *base.consumer_word */
	uint64_t tx_pos;   /* where the next write must begin */
	uint64_t rx_pos;   /* direct: where the next arrival begins */
	uint8_t *image;    /* the bytes of all writes that have not arrived, as they were written */
	struct fake_write *wire; /* ring of wire_mask + 1 */
	uint64_t wire_mask;
	uint64_t wire_head; /* oldest not arrived */
	uint64_t wire_sent; /* staged: oldest not delivered (direct: as tail) */
	uint64_t wire_tail;
	uint32_t acks; /* delivered, not told */
	bool read_busy;
	bool read_taken; /* read_value was loaded at the peer */
	uint64_t read_value;
	struct dev_get *get; /* not ended */
	int down;            /* not 0: the next event is DEV_EV_DOWN */
	bool attached;
};

extern const struct dev_link_ops fake_link_direct_ops;
extern const struct dev_link_ops fake_link_staged_ops;
extern const struct dev_link_ops fake_link_late_ops;
extern const struct dev_ops fake_dev_ops;

/** The staged device as a NIC: registers memory, gets end later. Not there while fake_nic_absent. */
extern const struct dev_ops fake_nic_ops;
extern bool fake_nic_absent;

/** A device that does what its fields say: set them behind the call. */
void fake_dev_init(struct fake_dev *fake, bool direct, uint64_t seed);

static inline struct dev *fake_dev_of(struct fake_dev *fake)
{
	return (struct dev *)fake;
}

static inline struct fake_link *fake_link_of(struct dev_link *link)
{
	return (struct fake_link *)link;
}

/** Both ends of a connected, attached pair whose rings (of their readers) have these lengths. */
void fake_link_pair(struct fake_dev *a, uint64_t a_rx_len, struct fake_dev *b, uint64_t b_rx_len,
		    struct dev_link *out[2]);

/** Has both rings start at other positions than 0; before the first write. */
void fake_link_start(struct dev_link *link, uint64_t tx_pos, uint64_t rx_pos);

/** Staged: moves the oldest write into the peer's ring. False: there was none. */
bool fake_link_deliver(struct dev_link *link);

/** Writes of `link` that the peer has not polled. */
uint32_t fake_link_in_transit(const struct dev_link *link);

/** The n-th of them, oldest first, and its bytes as they were written. */
const uint8_t *fake_link_peek(const struct dev_link *link, uint32_t n, struct fake_write *w);

/* Between the three files of the device. */
int fake_direct_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
int fake_staged_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
int fake_late_write(struct dev_link *link, uint64_t off, uint32_t len, uint32_t imm);
/** The oldest write that was delivered arrives: an event, or false. */
bool fake_poll_imm(struct fake_link *f, struct dev_event *ev);
int fake_link_create(struct dev *dev, uint64_t rx_len, struct dev_link **out);
bool fake_poll_link(struct dev_link *link, struct dev_event *ev);
/** Is [addr, addr + len) registered for `access`? */
void fake_check_mem(const struct fake_mem *mem, const void *addr, size_t len, unsigned access);

/** An event of that link: true. */
static inline bool fake_ev(struct fake_link *f, struct dev_event *ev, struct dev_event value)
{
	value.link = &f->base;
	*ev = value;
	return true;
}

#endif
