/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interface between the kernel border (krn_*.c) and the NIC (nic_*.c).
 *
 * Calls run in the process that owns the QP, in any thread: inside a SIGSEGV handler (trap mode),
 * in the polling thread, or inside write() of a uverbs command. Neither side may call malloc or
 * stdio. The stack is the application's, so both use at most 20 KiB. All signals are blocked while
 * the NIC runs.
 *
 * The requester's process does all the work: it reads its own WQEs, moves the bytes, takes the
 * receive WQE of its peer and writes the CQEs of both.
 */
#ifndef MDL_NIC_H
#define MDL_NIC_H

#include "model/fabric/mdl_objects.h"
#include "model/fabric/mdl_segment.h"

/* ---- called by the border, provided by the NIC ---------------------------------------------- */

/*
 * Initialises the NIC of this process. Called once, after the segment was mapped and the process
 * has its slot.
 */
void nic_attach(void);

/*
 * Executes a write of `len` bytes to a UAR page of this process, in ascending order from `off`; len
 * is 8, or a multiple of 8 up to 256 for a BlueFlame copy.
 *
 * Register 0x20 arms a CQ. Registers 0x800 + k*0x200 + (0 or 0x100) are doorbells, whose first 8
 * bytes are the control segment of the last WQE and so name the QP. ctx is the context of the
 * process, page its UAR page. `bytes` is aligned to 8 at most. A copy that ran over several traps
 * arrives in one call.
 */
void nic_uar_write(uint32_t ctx, uint32_t page, uint32_t off, const void *bytes, uint32_t len);

/*
 * Rechecks the records of all QPs of this process that use a register (off: of its first half), or
 * of all CQs (off 0x20). Called in poll mode after nic_uar_write(), because the scan may have
 * missed other writes to the register.
 */
void nic_recheck(uint32_t ctx, uint32_t page, uint32_t off);

/*
 * Prepares a state change of a QP. *qp has the new attributes, qp->state is still `from`. Called
 * with sq_lock and rq_lock held; the caller sets qp->state = to afterwards. A change to RESET
 * clears the NIC's state.
 */
void nic_qp_modify(struct mdl_qp *qp, uint32_t from, uint32_t to);
/*
 * Completes a state change, without locks: flushes with error CQEs (ERR) or resumes (SQD to RTS).
 */
void nic_qp_modified(struct mdl_qp *qp);
/*
 * Releases what the NIC keeps of a QP, before its number becomes free. The NIC uses nothing of the
 * QP after the return. Called without locks.
 */
void nic_qp_destroy(struct mdl_qp *qp);
/*
 * Forgets the error of a stream of a DCI, whose WQEs are executed again. Returns 0, or -EINVAL if
 * that stream is not in error.
 */
int nic_stream_reset(struct mdl_qp *qp, uint16_t stream);
/*
 * Initialise the NIC's part of an object. The border has zeroed it and filled it in and has not
 * published it yet. nic_qp_create() returns 0, or -ENOMEM if the process has too many DCIs with
 * streams.
 */
int nic_qp_create(struct mdl_qp *qp);
void nic_cq_create(struct mdl_cq *cq);
void nic_srq_create(struct mdl_srq *srq);
/*
 * Moves a CQ to a new buffer (RESIZE_CQ). old_buf, old_cnt and old_size describe the previous one.
 * Called under cq->lock. Writes a resize CQE (opcode 5) at the end of the old buffer.
 */
void nic_cq_resize(struct mdl_cq *cq, uint64_t old_buf, uint32_t old_cnt, uint32_t old_size);
/*
 * Records a new limit of an SRQ (MODIFY_SRQ). Raises the event at once if the SRQ is below the
 * limit.
 */
void nic_srq_limit(struct mdl_srq *srq, uint32_t limit);
/*
 * Reports the death of another process, so that QPs connected to it need not wait for their
 * timeouts. May do nothing.
 */
void nic_proc_died(uint32_t slot);

/*
 * Resumes work that waits for time: stalled QPs (RNR), delayed packets, late fetches of poll mode.
 * Called by the service thread of the process. Returns the time (mdl_now_ns()) of the next call,
 * UINT64_MAX for never, 0 for at once. krn_service_wake() makes the call earlier.
 */
uint64_t nic_service(uint64_t now_ns);

/*
 * Return true while an injected fault is in effect at a device of this process: port down, device
 * stopped.
 */
bool nic_fault_link_down(uint32_t device);
bool nic_fault_dead(uint32_t device);
/* Returns true if the port of the device has been given another LID. */
bool nic_fault_moved(uint32_t device);
/* Returns true if the device has failed since it was opened at that time. */
bool nic_fault_has_failed(uint32_t device, uint64_t opened_ns);
/*
 * Lets the device fail, now. What other processes have in progress on it has ended
 * at the return, so that no message arrives behind the event and is acknowledged all the same.
 */
void nic_fault_fail(uint32_t device, uint64_t now_ns);
/* Returns true if opening the device's file must fail. */
bool nic_fault_denied(void);
/* Returns true if the rights of the file say so. */
bool nic_fault_forbidden(void);
/* Returns true if the device reports doorbell registers without BlueFlame. */
bool nic_fault_without_bf(void);
/* Returns the time of the next change of such a fault. */
uint64_t nic_fault_due(uint64_t now_ns);

/* ---- called by the NIC, provided by the border ---------------------------------------------- */

/*
 * Copy between a local buffer and memory of a region's owner. addr is an address as in WQEs; the
 * caller has checked it against the region. Return 0, -EFAULT if the page no longer exists, or
 * -ESRCH if the owner is dead.
 */
int krn_mem_read(const struct mdl_mr *mr, uint64_t addr, void *to, uint64_t len);
int krn_mem_write(const struct mdl_mr *mr, uint64_t addr, const void *from, uint64_t len);
/* Copies from one region into another. At most one of them belongs to another process. */
int krn_mem_copy(const struct mdl_mr *to, uint64_t to_addr, const struct mdl_mr *from,
		 uint64_t from_addr, uint64_t len);
/*
 * Returns a pointer to the range that is valid in this process, or null if only the calls above
 * reach the range.
 */
void *krn_mem_map(const struct mdl_mr *mr, uint64_t addr, uint64_t len);

/* Raises a completion event of the CQ, as returned by ibv_get_cq_event(). cq->lock may be held. */
void krn_cq_event(struct mdl_cq *cq);
/* Raise an async event (type as enum ibv_event_type) in the process that owns the object. */
void krn_cq_async(struct mdl_cq *cq, uint32_t type);
void krn_qp_async(struct mdl_qp *qp, uint32_t type);
void krn_srq_async(struct mdl_srq *srq, uint32_t type);

/*
 * Makes the service thread of a process (by slot; mdl_self.slot for this one) call nic_service()
 * soon.
 */
void krn_service_wake(uint32_t slot);

#endif /* MDL_NIC_H */
