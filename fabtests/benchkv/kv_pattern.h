/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests of one client, generated before the run so that the run does not pay for random
 * numbers: which node, which key, read or write. Repeated in a circle. The same seed and client
 * give the same pattern. Tested by test/unit/benchkv/test_kv_pattern.c.
 */
#ifndef KV_PATTERN_H
#define KV_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

struct kv_step {
	uint64_t key;
	uint32_t rank;
	bool is_get;
};

struct kv_pattern {
	uint32_t len;
	struct kv_step *steps;
};

/** Parameters of a pattern. */
struct kv_mix {
	uint32_t ranks;    /* nodes, numbered from 0 */
	uint32_t first;    /* the only node that is asked, if `pinned` */
	bool pinned;       /* all requests go to `first` */
	bool remote_only;  /* `self` is never asked, if there are other nodes */
	uint32_t self;     /* node of the client */
	uint64_t keys;     /* keys of each node */
	double read_ratio; /* share of gets, 0 to 1 */
	double zipf;       /* exponent of Zipf's law; 0: uniform */
	uint64_t seed;
	uint32_t len; /* steps */
};

/** Generates the pattern of `client`. Returns 0 or -ENOMEM. */
int kv_pattern_init(struct kv_pattern *pattern, const struct kv_mix *mix, uint32_t client);
void kv_pattern_fini(struct kv_pattern *pattern);

#endif
