/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A second process, forked, whose memory the test gets from: the sender of shared copies. It copies
 * its parts, computes, or claims one part of each get by hand and defers, fails or stops.
 */
#ifndef TEST_UNIT_DEV_SHM_SHM_FAR_H
#define TEST_UNIT_DEV_SHM_SHM_FAR_H

#include "dev/shm/shm_share.h"
#include "shm_pair.h"

#define FAR_LEN   (4u << 20)
#define FAR_CROWD 40

/** Behaviour of the sender. */
enum far_sender {
	FAR_POLLS, /* copies parts */
	FAR_COMPUTES,
	FAR_DEFERS, /* claims one part of each get and defers writing it */
	FAR_FAILS,  /* claims one part of each get and fails to write it */
	FAR_STOPS,  /* claims one part of each get and stops before it writes it */
};

/** Exposures that the receiver requests, in memory of both. */
struct far_desk {
	uint32_t want, have; /* requests, and those that the sender has fulfilled */
	size_t cnt;
	uint64_t addr[FAR_CROWD], len[FAR_CROWD], key[FAR_CROWD];
};

struct far {
	struct shm_dev *dev;
	struct transport transport;
	struct far_desk *desk;
	enum far_sender sender;
	bool shares_processor; /* gets believe that, however busy the machine is */
	uint8_t *src;          /* FAR_LEN bytes of the sender */
	uint8_t *dst; /* FAR_LEN bytes of the receiver, and 64 more for each get of a crowd */
	pid_t pid;
};

extern struct far far;

/** Returns true until both processes happen to run at once, or for very long. */
bool far_patient(void);
/** Returns byte `i` of the sender's memory. */
uint8_t far_pattern(size_t i);

/** Forks the sender and connects to it. */
void far_start(enum far_sender how);
/** Kills the sender. */
void far_stop(void);

/** Starts `cnt` gets of exposures of their bytes. */
void far_get_exposed(struct dev_get *g, size_t cnt);
/** Polls until the next get has ended. */
struct dev_get *far_await(void);
/** Checks `len` received bytes at dst[at] and the 32 untouched ones on each side. */
void far_expect_bytes(size_t at, size_t from, size_t len);
/** Gets [from, from + len) and checks every byte. Returns the parts that the sender wrote. */
uint32_t far_get_checked(size_t from, size_t len);

#endif
