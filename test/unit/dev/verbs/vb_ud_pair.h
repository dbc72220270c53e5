/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two datagram endpoints that know the way to each other, on the devices of vb_pair.h.
 */
#ifndef TEST_VB_UD_PAIR_H
#define TEST_VB_UD_PAIR_H

#include "dev/verbs/vb_ud.h"
#include "vb_pair.h"

extern struct vb_dev *ud_pair_devs[2];
extern struct dev_dgram *ud_pair[2];
extern struct dev_dgram_ah *ud_pair_way[2]; /* to the other one */

/** Opens both; skips the test where there is no device. */
void ud_pair_open(uint32_t rx_cnt, uint32_t tx_cnt);
/** Closes what is open: the .fini of a suite. */
void ud_pair_close(void);

/** Those bytes, for the other one. */
struct dev_dgram_out ud_pair_text(int from, const char *what);
/** Waits for cnt datagrams. */
void ud_pair_await(int at, struct dev_dgram_in *in, int cnt);

#endif
