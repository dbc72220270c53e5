/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_send and fi_tsend of endpoints whose default flags request injection and no completion.
 *
 * Such a send ends with the call, like fi_inject, and may be deferred until the next progress, like
 * other sends. A program that makes progress anyway thus saves the completion of each small
 * message: usually by an alias with FI_INJECT as its only default flag, beside an endpoint with
 * FI_SELECTIVE_COMPLETION. Called when the op tables of an endpoint are chosen.
 *
 * Tested by test/unit/ofi/xfer/test_cpr_silent.c.
 */
#ifndef OFI_XFER_CPR_SILENT_H
#define OFI_XFER_CPR_SILENT_H

struct cpr_ep;

/** Replaces the calls in the tables of an enabled endpoint if its default flags are such. */
void cpr_silent_pick(struct cpr_ep *ep);

#endif
