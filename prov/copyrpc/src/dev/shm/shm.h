/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device whose wire is the memory of one host. Start here.
 *
 *   shm_seg    sealed shared memory            shm_link   a link: publish, connect
 *   shm_inbox  bits and bell for other links   shm_poll   the device: poll
 *   shm_desc   what the ends tell each other   shm_watch  which links poll looks at
 *   shm_bulk   the peer's memory, one copy    shm_dev    open, close, sleep
 *
 * docs/shm.md has the whole, the memory orders and the figures.
 *
 * Owner: whoever includes it instantiates its loop over shm_dev_ops_inline and shm_link_ops_inline.
 */
#ifndef SHM_SHM_H
#define SHM_SHM_H

#include "dev/shm/shm_link.h"
#include "dev/shm/shm_poll.h"

#endif
