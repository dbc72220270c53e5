/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of regions: the process's own is copied in place, another process's by
 * process_vm_readv/writev.
 *
 * The kernel may move fewer bytes than requested if a page is missing. Moved bytes stay moved, as
 * with an adapter that stops in the middle of a message.
 *
 * An aligned word of 8 bytes moves whole, as over PCIe: programs read words that a processor writes
 * meanwhile. memmove does not promise that, and AddressSanitizer's moves single bytes.
 */
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_raw.h"

#include <string.h>
#include <sys/uio.h>

static uint64_t user_address(const struct mdl_mr *mr, uint64_t addr)
{
	return mr->user_addr + (addr - mr->addr);
}

static int remote(long number, const struct mdl_mr *mr, uint64_t addr, const void *local,
		  uint64_t len)
{
	struct iovec mine = { (void *)local, len };
	struct iovec theirs = { (void *)user_address(mr, addr), len };
	int32_t pid = mdl_self.seg->proc[mr->proc].pid;

	while (mine.iov_len) {
		long got = mdl_raw(number, pid, (long)&mine, 1, (long)&theirs, 1, 0);

		if (got <= 0)
			return got == -ESRCH ? -ESRCH : -EFAULT;
		mine.iov_base = (char *)mine.iov_base + got;
		theirs.iov_base = (char *)theirs.iov_base + got;
		mine.iov_len -= (size_t)got;
		theirs.iov_len -= (size_t)got;
	}
	return 0;
}

void *krn_mem_map(const struct mdl_mr *mr, uint64_t addr, uint64_t len)
{
	return mr->proc == mdl_self.slot ? (void *)user_address(mr, addr) : NULL;
}

/** Moves bytes within this process. */
static void move(void *to, const void *from, uint64_t len)
{
	if (len == sizeof(uint64_t) && !(((uintptr_t)to | (uintptr_t)from) % sizeof(uint64_t)))
		__atomic_store_n((uint64_t *)to,
				 __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	else
		memmove(to, from, len);
}

int krn_mem_read(const struct mdl_mr *mr, uint64_t addr, void *to, uint64_t len)
{
	if (mr->proc != mdl_self.slot)
		return remote(SYS_process_vm_readv, mr, addr, to, len);
	move(to, (const void *)user_address(mr, addr), len);
	return 0;
}

int krn_mem_write(const struct mdl_mr *mr, uint64_t addr, const void *from, uint64_t len)
{
	if (mr->proc != mdl_self.slot)
		return remote(SYS_process_vm_writev, mr, addr, from, len);
	move((void *)user_address(mr, addr), from, len);
	return 0;
}

int krn_mem_copy(const struct mdl_mr *to, uint64_t to_addr, const struct mdl_mr *from,
		 uint64_t from_addr, uint64_t len)
{
	if (from->proc == mdl_self.slot)
		return krn_mem_write(to, to_addr, (const void *)user_address(from, from_addr), len);
	return krn_mem_read(from, from_addr, (void *)user_address(to, to_addr), len);
}
