/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do sessions share a link? Ports that all send to one, whose link is the bottleneck, or that it
 * gets_pending from; simulated time.
 *
 *	sender 1 --\
 *	   ...      >-- latency -- queue -- link of link_bytes_per_s -- receiver
 *	sender n --/
 *
 * Every sender says as much as its session takes, in messages of FLOWS_LEN bytes (or two gets_pending of
 * FLOWS_FETCH bytes are always under way). The sessions are the real ones: slots, credits, time-outs,
 * round trips as they measure them. The last flow may begin later than the others. What arrived, and how
 * long the queue was, is written down in bins of time.
 *
 * Shown by, and used in test/unit/erpc/pace/test_erpc_flows.c.
 */
#ifndef ERPC_FLOWS_H
#define ERPC_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "erpc/erpc_ep.h"
#include "erpc/erpc_session.h"
#include "support/fake_net.h"

#define FLOWS_MAX     16u
#define FLOWS_BINS    512u
#define FLOWS_LEN     32768u
#define FLOWS_GET_LEN (1u << 20)
#define FLOWS_GETS    2u

struct flows_cfg {
	unsigned cnt;
	bool get; /* the receiver gets_pending; else the senders send */
	bool paced;
	uint64_t ns;            /* the whole run; at most FLOWS_BINS bins */
	uint64_t last_start_ns; /* the last flow begins then; 0: with the others */
	uint64_t bin_ns;
	double link_bytes_per_s;
	uint64_t latency_ns; /* one way */
	uint64_t queue_max;  /* bytes; what does not fit is lost */
	uint32_t mtu;
	/* Ends that compute: of each every_ns the first away_ns; the receiver, or all senders. */
	uint64_t every_ns, away_ns;
	bool senders_away;
	/* Ends that sleep: woken so late on average, and sometimes ten times as late; */
	uint64_t wake_ns;
	uint64_t host_ns; /* what a round trip may take longer for that */
	uint64_t step_ns; /* of time, at once */
};

struct flows_bin {
	double bytes[FLOWS_MAX]; /* that arrived, by flow */
	double queue_ns;         /* time in the queue: mean, */
	double queue_max_ns;     /* and the longest */
};

struct flows {
	struct flows_cfg cfg;
	struct flows_bin bins[FLOWS_BINS];
	unsigned bin_cnt;
	uint64_t paced;  /* how often a session had to wait for its time */
	uint64_t lost;   /* datagrams that found the queue full */
	uint64_t resent; /* packets that were sent again */
};

/** 25 Gbit/s, 20 us there and back, packets of 4 KiB, a queue of 4 MiB, 100 ms in bins of 1 ms, nobody sleeps. */
struct flows_cfg flows_cfg_default(unsigned cnt);

/** Runs it. A fault ends the program. */
void flows_run(const struct flows_cfg *cfg, struct flows *f);

/** Of the bins [from, to): Jain's index of what the flows got (1: all alike), */
double flows_fairness(const struct flows *f, unsigned from, unsigned to);
/** part of the link that arrived as messages, */
double flows_used(const struct flows *f, unsigned from, unsigned to);
/** time in the queue, mean and longest. */
double flows_queue_ns(const struct flows *f, unsigned from, unsigned to);
double flows_queue_max_ns(const struct flows *f, unsigned from, unsigned to);

#endif
