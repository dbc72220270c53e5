/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared-memory device: links between processes of one host. Described in docs/shm.md.
 *
 *   shm_seg    sealed shared memory            shm_link    a link: publish, connect
 *   shm_inbox  bits and bell for parked links  shm_poll    poll of the device
 *   shm_desc   description of a link's end     shm_watch   links that poll looks at
 *   shm_bulk   copies between processes        shm_dev     open, close, waiting
 *   shm_share  gets that both ends copy        shm_round   gets copied together, and their parts
 *   shm_expose exposures, the sender's half    shm_offer   a round as both ends see it
 *
 * Engines that include this file compile their loop over shm_dev_ops_inline and
 * shm_link_ops_inline.
 */
#ifndef DEV_SHM_SHM_H
#define DEV_SHM_SHM_H

#include "dev/shm/shm_link.h"
#include "dev/shm/shm_poll.h"

#endif
