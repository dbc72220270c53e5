/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two datagram endpoints that have resolved each other, on the devices of vb_pair.h.
 */
#ifndef TEST_VB_UD_PAIR_H
#define TEST_VB_UD_PAIR_H

#include "dev/verbs/vb_ud.h"
#include "vb_pair.h"

extern struct vb_dev *ud_pair_devs[2];
extern struct dev_dgram *ud_pair[2];
extern struct dev_dgram_ah *ud_pair_way[2]; /* address of the other one */

/** Opens both, or skips the test without a device. */
void ud_pair_open(uint32_t rx_cnt, uint32_t tx_cnt);
/** Closes all that is open: the .fini of a suite. */
void ud_pair_close(void);

/** Makes a datagram with this text for the other endpoint. */
struct dev_dgram_out ud_pair_text(int from, const char *what);
/** Polls until cnt datagrams have arrived. */
void ud_pair_await(int at, struct dev_dgram_in *in, int cnt);

#endif
