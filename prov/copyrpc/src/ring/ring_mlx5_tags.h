/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tag matching by a ConnectX for core (core_tags.h): lists of the queue type m5_tm.h. Called by
 * ring_mlx5.c. A connection with two devices has none, because the list is one device's.
 */
#ifndef RING_RING_MLX5_TAGS_H
#define RING_RING_MLX5_TAGS_H

#include "core/core_tags.h"

struct core_chan;

/** Implements core_chan_ops.tags_open. */
int ring_mlx5_tags_open(struct core_chan *chan, uint32_t cnt, struct core_tags_list **out);

#endif
