/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes connected by shared-memory links, for shm_link_bench: their state (struct side),
 * their start and end (pair_run), and a minimal engine of a ring. A message is 32 bytes of
 * metadata, 12 of header and the payload, as on a real ring, one to a batch; released positions
 * arrive in metadata and consumer words, and a marker skips the ring's end.
 *
 * A failure ends the process: a benchmark has nothing to clean up.
 */
#ifndef SHM_LINK_PAIR_H
#define SHM_LINK_PAIR_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "dev/shm/shm.h"
#include "dev/shm/shm_watch.h"
#include "util/bits.h"

#define HEAD_LEN 32u
#define HDR_LEN  12u
#define MARKER   UINT32_MAX
#define BUF_LEN  (16u << 20)

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x,                 \
				strerror(errno));                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct conn {
	struct dev_link *link;
	uint64_t producer; /* next position to write */
	uint64_t released; /* position up to which the peer has released */
	uint64_t taken;    /* next position to read */
};

/** One process of the pair. */
struct side {
	struct dev *dev;
	struct conn *conns;
	uint32_t cnt;
	int sock; /* to the other process */
	bool is_child;
	int ahead;    /* bytes that links clear ahead of their metadata; -1: automatic */
	uint8_t *buf; /* payload, source and sink */
	uint64_t peer_buf;
	pid_t peer_pid;
};

/** Job of both processes in a measurement. The parent's return value is the figure. */
typedef double (*pair_job_fn)(struct side *s, const void *arg);

/** A pair of processes: links, their rings, the device's constants. */
struct pair_conf {
	int cpu[2];
	uint32_t cnt;
	uint64_t ring;
	const struct shm_tune *tune; /* NULL: the device's own */
	int ahead;                   /* see struct side */
};

/**
 * Forks, connects both processes by conf->cnt links, runs `job` in both. Returns the parent's
 * figure.
 */
double pair_run(const struct pair_conf *conf, pair_job_fn job, const void *arg);

static inline uint32_t span_of(uint32_t len)
{
	return HEAD_LEN + (uint32_t)util_align_up(HDR_LEN + len, DEV_IMM_UNIT);
}

static inline void put(struct conn *c, uint64_t off, uint32_t count, uint32_t span)
{
	uint64_t head[3] = { c->taken, 0, count };

	memcpy(c->link->tx_base + off, head, sizeof(head));
	shm_link_ops_inline.write_imm(c->link, off, count == MARKER ? HEAD_LEN : span,
				      span / DEV_IMM_UNIT);
	c->producer += span;
}

static inline void send_one(struct conn *c, const uint8_t *src, uint32_t len)
{
	struct dev_link *l = c->link;
	uint64_t off = c->producer & (l->tx_len - 1);
	uint32_t span = span_of(len), hdr[3] = { 0, 0, len };

	while (c->producer + 2 * (uint64_t)span + l->inband_len - c->released > l->tx_len - 64)
		shm_link_ops_inline.read_consumer(l, &c->released);
	if (off + span >= l->tx_len) {
		put(c, off, MARKER, (uint32_t)(l->tx_len - off));
		off = 0;
	}
	memcpy(l->tx_base + off + HEAD_LEN, hdr, sizeof(hdr));
	memcpy(l->tx_base + off + HEAD_LEN + HDR_LEN, src, len);
	put(c, off, 1, span);
}

/* Copies the payload of one message to dst. Returns its length, or -1 for a marker. */
static inline int take_one(struct conn *c, uint32_t imm, uint8_t *dst)
{
	struct dev_link *l = c->link;
	const uint8_t *head = l->rx_base + (c->taken & (l->rx_len - 1));
	uint64_t meta[3];
	uint32_t hdr[3];
	int len = -1;

	memcpy(meta, head, sizeof(meta));
	if ((uint32_t)meta[2] != MARKER) {
		memcpy(hdr, head + HEAD_LEN, sizeof(hdr));
		memcpy(dst, head + HEAD_LEN + HDR_LEN, hdr[2]);
		len = (int)hdr[2];
	}
	if (meta[0] > c->released)
		c->released = meta[0];
	c->taken += (uint64_t)imm * DEV_IMM_UNIT;
	__atomic_store_n(l->consumer_word, c->taken, __ATOMIC_RELEASE);
	return len;
}

static inline struct conn *recv_one(struct side *s, uint8_t *dst)
{
	struct dev_event ev;
	struct conn *c;

	do {
		while (!shm_dev_ops_inline.poll(s->dev, &ev))
			;
		CHECK(ev.kind == DEV_EV_IMM);
		c = ev.link->user;
	} while (take_one(c, ev.imm, dst) < 0);
	return c;
}

#endif
