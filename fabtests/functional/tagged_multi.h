/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cases of crpc_tagged about multi-receive buffers (fi_msg(3), FI_MULTI_RECV). Messages of many
 * lengths go into one buffer, one behind the other. A buffer is released once, when less than the
 * minimum is left, and the next one takes the rest.
 */
#ifndef FT_TAGGED_MULTI_H
#define FT_TAGGED_MULTI_H

#include "common/ft.h"

/* With the case's argument the messages come before the first buffer is posted. */
void tagged_run_multi(struct ft *ft);

#endif
