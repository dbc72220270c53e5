/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Size of the ring of a new connection. Called by ring_setup.c for each connection, and by
 * copyrpc_info for those of a job that has not started. Pure.
 */
#ifndef RING_RING_LEN_H
#define RING_RING_LEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/eng_size.h"

#define RING_LEN_DEFAULT (256u << 10)
#define RING_LEN_LEAST   (16u << 10) /* Ring size when the budget runs low */
/* Bytes of the rings of one more connection at each end, once there are many at both. */
#define RING_LEN_MANY (32u << 10)

/**
 * Returns the ring size for one more connection, 0 if the budget is used up. `mem`: FI_COPYRPC_MEM.
 * `left`: bytes of it that no ring has. The first quarter of the budget goes to rings of full size,
 * and with the default that is 256 connections; rings that come later are small, as are all of them
 * in a small budget. With ENG_SIZE_LARGE a ring has full size up to the last quarter, and with
 * ENG_SIZE_SMALL it is small in any case. `registers`: a device moves the bytes, so that the
 * connection also has a send ring; the peer chooses its size, the same if it has as many
 * connections. `fixed`: FI_COPYRPC_RING_SIZE, or 0.
 */
uint64_t ring_len_next(size_t mem, size_t left, bool registers, size_t fixed, enum eng_size size);

#endif
