/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What all objects of a context have in common: they are found only by their owner, they hold
 * references to others, and they go when the context goes.
 */
#ifndef KRN_OBJECT_H
#define KRN_OBJECT_H

#include "model/mdl_objects.h"
#include "model/mdl_table.h"

/* The object with that handle if it belongs to this context of this process, else null. */
void *krn_object_own(enum mdl_table table, uint32_t ctx, uint32_t handle);

/* Adds to the count of objects on a PD, CQ, SRQ; nothing where the number is 0 or gone. */
void krn_object_pd_ref(uint32_t pd, int more);
void krn_object_cq_ref(uint32_t cq, int more);
void krn_object_srq_ref(uint32_t srq, int more);

/*
 * Destroys without asking whether others use it. The results of the last three: events that the
 * program read.
 */
void krn_object_destroy_mr(struct mdl_mr *mr);
uint32_t krn_object_destroy_qp(struct mdl_qp *qp);
uint32_t krn_object_destroy_srq(struct mdl_srq *srq);
/* A region of this process is gone: its pages may be locked again (RLIMIT_MEMLOCK). */
void krn_object_unpin(uint64_t start, uint64_t length);
void krn_object_destroy_cq(struct mdl_cq *cq, uint32_t *comp_read, uint32_t *async_read);

/* Everything that a context still has, users before what they use. */
void krn_object_destroy_all(uint32_t ctx);

#endif /* KRN_OBJECT_H */
