/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of messages: keys, bounds, copies. See nic_state.h. */
#ifndef NIC_MEM_H
#define NIC_MEM_H

#include "model/nic/nic_rwqe.h"
#include "model/nic/nic_state.h"
#include "model/nic/nic_wqe.h"

/* Returns the region with KEY if it covers the range, belongs to PROC and PD and grants ACCESS. */
const struct mdl_mr *nic_mem_find(uint32_t key, uint32_t proc, uint32_t pd, uint64_t addr,
				  uint64_t len, uint32_t access);
/*
 * Resolve the source or target (ACCESS) of a WQE's message. Return false if a key or a range is
 * wrong.
 */
bool nic_mem_pieces(const struct mdl_qp *qp, const struct nic_wqe *wqe, uint32_t access,
		    struct nic_spans *spans);
/* Resolves the first LEN bytes of a receive WQE after SKIP. */
bool nic_mem_scatter(const struct mdl_qp *qp, const struct nic_rwqe *rwqe, uint64_t skip,
		     uint64_t len, struct nic_spans *spans);
/*
 * Copies from one list into another. Returns 0, -EFAULT or -ESRCH. *WRITES counts the pieces
 * written.
 */
int nic_mem_copy(const struct nic_spans *to, const struct nic_spans *from, uint64_t len,
		 uint32_t *writes);
/* Executes a 64-bit compare and swap or fetch and add. *OLD receives the previous value. */
int nic_mem_atomic(const struct mdl_mr *mr, const struct nic_wqe *wqe, uint64_t *old);

#endif
