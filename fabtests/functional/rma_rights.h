/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cases of crpc_rma about access rights. They access memory beyond a region, by a wrong key,
 * against the rights of a region, or after its close. Each access ends with an error and moves no
 * byte.
 */
#ifndef FT_RMA_RIGHTS_H
#define FT_RMA_RIGHTS_H

#include "common/ft.h"

/* Accesses across each bound, by a wrong key, and to a region without the right. */
void rma_run_forbidden(struct ft *ft);
/* A closed region cannot be accessed; its neighbour can. */
void rma_run_closed(struct ft *ft);

#endif
