/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contract between the kernel border (krn_*.c) and the NIC (nic_*.c).
 *
 * Where a call happens: in the process that owns the QP, in any thread: inside a SIGSEGV handler
 * (trap mode), called in place of a store (kick mode), in the polling thread, inside write() of a
 * uverbs command. So neither side may call malloc or stdio from here on, and the stack is what the
 * application left (use little: 20 KiB). All signals are blocked while the NIC runs, but in kick
 * mode.
 *
 * The requester's process does everything: it reads its own WQEs, moves the bytes, takes the receive
 * WQE of its peer and writes the CQEs of both.
 */
#ifndef MDL_NIC_H
#define MDL_NIC_H

#include "model/mdl_objects.h"
#include "model/mdl_segment.h"

/* ---- the border calls, the NIC provides ------------------------------------------------------ */

/* After the segment was mapped and this process has its slot, once. */
void nic_attach(void);

/*
 * Bytes written to a UAR page of this process: `len` bytes in ascending order from `off` (8, or a
 * multiple of 8 up to 256 for a BlueFlame copy). The NIC decides what the register is: 0x20 arms a CQ,
 * 0x800 + k*0x200 + (0 or 0x100) are doorbells, whose first 8 bytes are the control segment of the last
 * WQE and so name the QP. ctx and page say which context of the process and which of its UAR pages.
 * `bytes` is not aligned to more than 8. A copy that ran over several traps comes in one call.
 */
void nic_uar_write(uint32_t ctx, uint32_t page, uint32_t off, const void *bytes, uint32_t len);

/*
 * Poll mode only, after nic_uar_write(): the register was found changed, but other writes to it may have
 * been missed. Looks at the records of all QPs of this process that use it (off: of its first half), or of
 * all CQs (off 0x20).
 */
void nic_recheck(uint32_t ctx, uint32_t page, uint32_t off);

/* A QP goes from one state to another; the attributes in *qp are the new ones, qp->state still `from`. Called
 * with sq_lock and rq_lock held; the caller sets qp->state = to afterwards. To RESET: forget everything. */
void nic_qp_modify(struct mdl_qp *qp, uint32_t from, uint32_t to);
/* After such a change, without locks: flush with error CQEs (ERR), go on (SQD to RTS). */
void nic_qp_modified(struct mdl_qp *qp);
/* Before the QP's number becomes free: nothing of it may be used after the return. No locks held. */
void nic_qp_destroy(struct mdl_qp *qp);
/* New objects, zeroed and filled in by the border, not yet visible to anybody. */
void nic_qp_create(struct mdl_qp *qp);
void nic_cq_create(struct mdl_cq *cq);
void nic_srq_create(struct mdl_srq *srq);
/* The CQ has a new buffer (RESIZE_CQ): old_buf, old_cnt, old_size describe the one that is left. Under cq->lock.
 * The NIC puts a resize CQE (opcode 5) at the end of the old one and goes on in the new one. */
void nic_cq_resize(struct mdl_cq *cq, uint64_t old_buf, uint32_t old_cnt, uint32_t old_size);
/* The limit of an SRQ was set (MODIFY_SRQ): raises the event at once if it is already undercut. */
void nic_srq_limit(struct mdl_srq *srq);
/* Another process died: QPs that talk to it need not wait for their timeouts to notice. May be empty. */
void nic_proc_died(uint32_t slot);

/*
 * Work that waits for time: stalled QPs (RNR), delayed packets, late fetches of poll mode. Called by the
 * service thread of the process; returns the time (mdl_now_ns()) of the next call, UINT64_MAX for never,
 * 0 for at once. krn_service_wake() calls it earlier.
 */
uint64_t nic_service(uint64_t now_ns);

/* Faults that were ordered, now: the port is down; the device does nothing any more. When the next of it changes. */
bool nic_fault_link_down(void);
bool nic_fault_dead(void);
/* The device's file may not be opened. */
bool nic_fault_denied(void);
uint64_t nic_fault_due(uint64_t now_ns);

/* ---- the NIC calls, the border provides ------------------------------------------------------ */

/* Copy between a local buffer and memory of a region's owner. addr is as WQEs name it, and the caller has
 * checked it against the region. 0, -EFAULT (no such page any more), -ESRCH (the owner is dead). */
int krn_mem_read(const struct mdl_mr *mr, uint64_t addr, void *to, uint64_t len);
int krn_mem_write(const struct mdl_mr *mr, uint64_t addr, const void *from, uint64_t len);
/* Straight from one region into another; either may belong to another process, not both. */
int krn_mem_copy(const struct mdl_mr *to, uint64_t to_addr, const struct mdl_mr *from,
		 uint64_t from_addr, uint64_t len);
/* A pointer that this process may use for the whole range, or null: then the calls above must be used. */
void *krn_mem_map(const struct mdl_mr *mr, uint64_t addr, uint64_t len);

/* A completion event for the CQ: what ibv_get_cq_event() returns. cq->lock may be held. */
void krn_cq_event(struct mdl_cq *cq);
/* Async events, type as enum ibv_event_type: they go to the process that owns the object. */
void krn_cq_async(struct mdl_cq *cq, uint32_t type);
void krn_qp_async(struct mdl_qp *qp, uint32_t type);
void krn_srq_async(struct mdl_srq *srq, uint32_t type);

/* Makes the service thread of a process (a slot; mdl_self.slot for one's own) call nic_service() soon. */
void krn_service_wake(uint32_t slot);

#endif /* MDL_NIC_H */
