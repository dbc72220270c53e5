/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulation of sessions that share a link: endpoints that all send to one receiver, or get from
 * it, over its link, the bottleneck. Simulated time.
 *
 *   sender 1 --\
 *      ...      >-- latency -- queue -- link of link_bytes_per_s -- receiver
 *   sender n --/
 *
 * Each sender sends as much as its session accepts, in messages of FLOWS_LEN bytes; or two gets of
 * FLOWS_GET_LEN bytes are always in progress. The sessions are real: slots, credits, time-outs,
 * measured round trips. The last flow may start later than the others. Bytes received and the
 * length of the queue are recorded in bins of time.
 *
 * Used and tested in test/unit/erpc/pace/test_erpc_flows.c.
 */
#ifndef ERPC_FLOWS_H
#define ERPC_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "erpc/erpc_progress.h"
#include "erpc/erpc_setup.h"
#include "support/fake_net.h"

#define FLOWS_MAX     16u
#define FLOWS_BINS    512u
#define FLOWS_LEN     32768u
#define FLOWS_GET_LEN (1u << 20)
#define FLOWS_GETS    2u

struct flows_cfg {
	unsigned cnt;
	bool get; /* the receiver gets; else the senders send */
	bool paced;
	uint64_t ns;            /* the whole run, at most FLOWS_BINS bins */
	uint64_t last_start_ns; /* start of the last flow; 0: with the others */
	uint64_t bin_ns;
	double link_bytes_per_s;
	uint64_t latency_ns; /* one way */
	uint64_t queue_max;  /* bytes; datagrams beyond are lost */
	uint32_t mtu;
	/* Ends that compute for away_ns in each every_ns: the receiver, or all senders. */
	uint64_t every_ns, away_ns;
	bool senders_away;
	/* Ends that sleep: mean delay of a wake-up, sometimes ten times as long */
	uint64_t wake_ns;
	uint64_t host_ns; /* additional round-trip time for that */
	uint64_t step_ns; /* step of simulated time */
};

struct flows_bin {
	double bytes[FLOWS_MAX]; /* received, by flow */
	double queue_ns;         /* time in the queue, mean */
	double queue_max_ns;     /* time in the queue, maximum */
};

struct flows {
	struct flows_cfg cfg;
	struct flows_bin bins[FLOWS_BINS];
	unsigned bin_cnt;
	uint64_t paced;  /* times that a session waited for its rate */
	uint64_t lost;   /* datagrams that found the queue full */
	uint64_t resent; /* packets sent again */
};

/**
 * Returns 25 Gbit/s, a round trip of 20 us, packets of 4 KiB, a queue of 4 MiB, and 100 ms in bins
 * of 1 ms. Ends do not sleep.
 */
struct flows_cfg flows_cfg_default(unsigned cnt);

/** Runs the simulation. A fault ends the program. */
void flows_run(const struct flows_cfg *cfg, struct flows *f);

/** Returns Jain's index of the flows' shares in the bins [from, to); 1: equal. */
double flows_fairness(const struct flows *f, unsigned from, unsigned to);
/** Returns the fraction of the link that arrived as messages. */
double flows_used(const struct flows *f, unsigned from, unsigned to);
/** Return the mean and the longest time in the queue. */
double flows_queue_ns(const struct flows *f, unsigned from, unsigned to);
double flows_queue_max_ns(const struct flows *f, unsigned from, unsigned to);

#endif
