/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attaches a process to the fabric: sweeps the objects of dead processes from the tables and claims
 * a slot. Called through mdl_segment_attach() by the border.
 */
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/*
 * Retires a dead process once its objects are out of the tables, and adds its counters to those of
 * the retired.
 */
static void proc_retire(uint32_t slot)
{
	struct mdl_proc *proc = &mdl_self.seg->proc[slot];

	proc->state = MDL_PROC_DEAD;
	nic_proc_died(slot);
	mdl_table_drop(slot);
	mdl_count_sum(&mdl_self.seg->retired, &proc->count);
	proc->state = MDL_PROC_FREE;
}

void mdl_proc_sweep(void)
{
	for (uint32_t slot = 0; slot < MDL_PROC_MAX; slot++) {
		struct mdl_proc *proc = &mdl_self.seg->proc[slot];

		if (proc->state == MDL_PROC_FREE || proc == mdl_self.proc)
			continue;
		if (proc->state == MDL_PROC_DEAD || mdl_pid_is_dead(proc->pid, proc->started))
			proc_retire(slot);
	}
}

static void proc_fill(struct mdl_proc *proc)
{
	uint32_t generation = proc->generation + 1;
	long name;

	memset(proc, 0, sizeof(*proc));
	proc->generation = generation;
	proc->pid = (int32_t)MDL_RAW0(getpid);
	proc->started = mdl_pid_started(proc->pid);
	proc->node = mdl_self.config.node;
	name = MDL_RAW4(openat, AT_FDCWD, "/proc/self/comm", O_RDONLY | O_CLOEXEC, 0);
	if (name >= 0) {
		long len = MDL_RAW3(read, name, proc->name, sizeof(proc->name) - 1);

		proc->name[len > 0 ? len - 1 : 0] = 0;
		MDL_RAW1(close, name);
	}
	__atomic_store_n(&proc->state, MDL_PROC_LIVE, __ATOMIC_RELEASE);
}

static int take_slot(void)
{
	struct mdl_segment *seg = mdl_self.seg;

	for (uint32_t slot = 0; slot < MDL_PROC_MAX; slot++) {
		struct mdl_proc *proc = &seg->proc[slot];

		if (proc->state != MDL_PROC_FREE)
			continue;
		proc_fill(proc);
		mdl_self.slot = slot;
		mdl_self.proc = proc;
		return 0;
	}
	return -EAGAIN;
}

int mdl_segment_attach(void)
{
	int lock, err;

	if (mdl_self.proc)
		return 0;
	lock = mdl_segment_lock();
	if (lock < 0)
		return lock;
	err = mdl_segment_map_locked(true);
	if (!err) {
		mdl_proc_sweep();
		err = take_slot();
	}
	MDL_RAW1(close, lock);
	return err;
}
