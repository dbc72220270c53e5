/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two ends of shared-memory links for the tests: in one process, or in two that fork made.
 *
 * A transport is one end with just enough of an engine to write and to read: positions, and no flow
 * control (the test keeps the room). What it writes is filled with bytes that would be taken for a
 * link word if anything looked where it must not.
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

/** A device, or the end of the test. What is still open is closed by pair_fini. */
struct shm_dev *pair_dev(void);
void pair_dev_close(struct shm_dev *dev);

/** Closes the links and devices of a test: the .fini of every suite. */
void pair_fini(void);

/** Links one transport on each device, connected and attached. */
void pair_open(struct shm_dev *a, struct transport *la, uint64_t rx_a, struct shm_dev *b,
	       struct transport *lb, uint64_t rx_b);
void pair_close(struct transport *la, struct transport *lb);

/** create + describe; *desc owns its descriptors until pair_desc_close. */
struct dev_link *pair_half(struct shm_dev *dev, uint64_t rx_len, struct dev_desc *desc);
/** detach + close */
void pair_link_close(struct dev_link *link);
void pair_desc_close(struct dev_desc *desc);

/** The end of `link` in this process, its description exchanged over a socket, attached. */
void pair_join(struct shm_dev *dev, struct transport *transport, uint64_t rx_len, int sock);

/** Fills [head + 32, head + 32 * imm) with 0xff and publishes; wraps like an engine, no marker. */
void lane_write(struct transport *transport, uint32_t imm);

/** Polls up to `polls` times: the transport's next event in *ev, its position advanced. */
bool lane_poll(struct shm_dev *dev, struct dev_event *ev, uint32_t polls);

/** Expects one IMM event with `imm` for `transport` within `polls` polls. */
bool lane_expect(struct shm_dev *dev, struct transport *transport, uint32_t imm, uint32_t polls);

static inline struct shm_link *lane_shm(const struct transport *transport)
{
	return (struct shm_link *)transport->link;
}

/** Open descriptors of this process. */
int pair_fd_cnt(void);

/** From now on this process's system call `nr` fails with `err` (seccomp, no way back). */
void pair_forbid(int nr, int err);

/** xorshift64*, for seeded property runs. */
uint64_t pair_rand(uint64_t *state);

#endif
