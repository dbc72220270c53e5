/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ends of shared-memory links for the tests, in one process or in two.
 *
 * A transport is one end with just enough of an engine to write and read: positions, without flow
 * control (the test keeps the room). Writes are filled with bytes that look like a link word.
 */
#ifndef TEST_SHM_PAIR_H
#define TEST_SHM_PAIR_H

#include <stdint.h>

#include "dev/shm/shm.h"
#include "dev/shm/shm_watch.h"

struct transport {
	struct dev_link *link;
	uint64_t tx_pos; /* virtual */
	uint64_t rx_pos;
};

/** Opens a device, or fails the test. pair_fini closes it. */
struct shm_dev *pair_dev(void);
void pair_dev_close(struct shm_dev *dev);

/** Closes the links and devices of a test: the .fini of every suite. */
void pair_fini(void);

/** Connects and attaches a link with one transport on each device. */
void pair_open(struct shm_dev *a, struct transport *la, uint64_t rx_a, struct shm_dev *b,
	       struct transport *lb, uint64_t rx_b);
void pair_close(struct transport *la, struct transport *lb);

/** Creates and describes a link. *desc owns its descriptors until pair_desc_close. */
struct dev_link *pair_half(struct shm_dev *dev, uint64_t rx_len, struct dev_desc *desc);
/** Detaches and closes. */
void pair_link_close(struct dev_link *link);
void pair_desc_close(struct dev_desc *desc);

/**
 * Creates the end of a link in this process, exchanges descriptions over a socket, and attaches.
 */
void pair_join(struct shm_dev *dev, struct transport *transport, uint64_t rx_len, int sock);

/**
 * Fills [head + 32, head + 32 * imm) with 0xff and publishes. Wraps like an engine, without marker.
 */
void pair_write(struct transport *transport, uint32_t imm);

/**
 * Polls up to `polls` times. Returns true with the transport's next event in *ev, position
 * advanced.
 */
bool pair_poll(struct shm_dev *dev, struct dev_event *ev, uint32_t polls);

/** Expects one IMM event with `imm` for `transport` within `polls` polls. */
bool pair_expect(struct shm_dev *dev, struct transport *transport, uint32_t imm, uint32_t polls);

static inline struct shm_link *pair_shm_link(const struct transport *transport)
{
	return (struct shm_link *)transport->link;
}

/** Returns the number of open descriptors of this process. */
int pair_fd_cnt(void);

/** Makes the system call `nr` of this process fail with `err` from now on (seccomp). */
void pair_forbid(int nr, int err);

/** xorshift64*, for seeded property runs. */
uint64_t pair_rand(uint64_t *state);

#endif
