/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests and responses of the key-value benchmark, the same on local channels and between nodes.
 * All nodes of a job have the same byte order, so numbers travel as they are in memory.
 *
 * A key belongs to one node (`rank`) and there to the daemon key % daemons. Keys count from 0 on
 * each node.
 */
#ifndef KV_MSG_H
#define KV_MSG_H

#include <stdint.h>

/** Largest value in bytes. */
#define KV_VALUE_MAX 4096u

enum kv_op {
	KV_GET = 1,
	KV_PUT = 2,
};

enum kv_status {
	KV_OK = 0,          /* PutOk, or GetOk with the value behind it */
	KV_NOT_FOUND = 1,   /* no value was put for that key */
	KV_UNREACHABLE = 2, /* the node of the key does not respond */
	KV_BAD = 3, /* the request is malformed: unknown operation, wrong length, no such key */
};

/** Head of a request. The value of a put follows. */
struct kv_request {
	uint8_t op; /* enum kv_op */
	uint8_t reserved[3];
	uint32_t rank;
	uint64_t key;
};

/** Head of a response. The value of a successful get follows. */
struct kv_response {
	uint8_t status; /* enum kv_status */
	uint8_t reserved[7];
};

#endif
