/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What seems to be lost?
 *
 * Every half millisecond, of the sessions that have packets in flight: a slot that heard nothing for its
 * time-out goes back to the last answer and sends again from there. Not while one of its packets is
 * still here, in the burst: then it is not lost, and a second one would not help.
 *
 * Shown by test/unit/erpc/test_erpc_port.c.
 */
#ifndef ERPC_LOSS_H
#define ERPC_LOSS_H

struct erpc_port;

void erpc_loss_scan(struct erpc_port *port);

#endif
