/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Common handling of all objects of a context: lookup by the owner only, references to other
 * objects, and destruction with the context.
 */
#ifndef KRN_OBJECT_H
#define KRN_OBJECT_H

#include "model/fabric/mdl_objects.h"
#include "model/fabric/mdl_table.h"

/* Returns the object with that handle if this context of this process owns it, else null. */
void *krn_object_own(enum mdl_table table, uint32_t ctx, uint32_t handle);

/* Add to the count of objects on a PD, CQ, SRQ. Do nothing if the number is 0 or stale. */
void krn_object_pd_ref(uint32_t pd, int more);
void krn_object_cq_ref(uint32_t cq, int more);
void krn_object_srq_ref(uint32_t srq, int more);

/* Returns the pages of a list of tags with that many entries. */
uint32_t krn_object_tag_pages(uint32_t tags);

/*
 * Destroy an object without checking references. The last three return the number of events that
 * the program read.
 */
void krn_object_destroy_mr(struct mdl_mr *mr);
uint32_t krn_object_destroy_qp(struct mdl_qp *qp);
uint32_t krn_object_destroy_srq(struct mdl_srq *srq);
/* Subtracts a deregistered region's pages from the pages locked (RLIMIT_MEMLOCK). */
void krn_object_unpin(uint64_t start, uint64_t length);
void krn_object_destroy_cq(struct mdl_cq *cq, uint32_t *comp_read, uint32_t *async_read);

/* Destroys all objects of a context, users before the objects they use. */
void krn_object_destroy_all(uint32_t ctx);

#endif /* KRN_OBJECT_H */
