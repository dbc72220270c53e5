/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive loop of an endpoint: polls the device and passes each packet to the handler of its kind.
 * Called by erpc_progress.h and transport/.
 *
 * Tested in test/unit/erpc/test_erpc_ep.c and bulk/test_erpc_direct.c.
 */
#ifndef ERPC_RX_ERPC_RX_H
#define ERPC_RX_ERPC_RX_H

#include "erpc/base/erpc_ep.h"

/**
 * Receives packets at time now_ns: the first half of erpc_ep_progress. Returns true if more packets
 * may be pending.
 */
bool erpc_rx_poll(struct erpc_ep *ep, uint64_t now_ns);

#endif
