/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Allocation and registration of memory (ib_mem.h). */
#include "dev/ib/ib_mem.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/held.h"
#include "util/log.h"

#define IB_MEM_HUGE (2ul << 20)

static void *ib_mem_mmap(size_t len, int flags)
{
	void *addr =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

static void ib_mem_log_small(void)
{
	static bool logged;

	if (!__atomic_exchange_n(&logged, true, __ATOMIC_RELAXED))
		UTIL_INFO(EP_CTRL,
			  "no huge pages of 2 MiB are free: using small ones; to get them, "
			  "reserve some (sysctl vm.nr_hugepages)\n");
}

int ib_mem_map(struct ib_mem *mem, size_t len)
{
	size_t huge_len = util_align_up(len, IB_MEM_HUGE);
	void *addr = NULL;

	memset(mem, 0, sizeof(*mem));
	mem->len = len;
	/* Uses huge pages only if rounding up wastes at most an eighth. */
	if (huge_len - len <= len / 8) {
		mem->map_len = huge_len;
		addr = ib_mem_mmap(huge_len, MAP_HUGETLB);
		if (!addr)
			ib_mem_log_small();
	}
	if (!addr) {
		mem->map_len = util_align_up(len, (size_t)sysconf(_SC_PAGESIZE));
		addr = ib_mem_mmap(mem->map_len, 0);
		if (addr && mem->map_len >= IB_MEM_HUGE)
			madvise(addr, mem->map_len, MADV_HUGEPAGE);
	}
	if (!addr) {
		UTIL_WARN(EP_CTRL, "no memory: %zu bytes: %s\n", len, strerror(errno));
		return -FI_ENOMEM;
	}
	madvise(addr, mem->map_len, MADV_DONTFORK);
	mem->addr = addr;
	return 0;
}

int ib_mem_init(struct ib_mem *mem, struct ib_dev *dev, size_t len, int access)
{
	int ret = ib_mem_map(mem, len);

	if (ret)
		return ret;
	ret = ib_mr_reg(dev, mem->addr, len, access, &mem->mr);
	if (ret)
		ib_mem_fini(mem);
	return ret;
}

int ib_mem_share(struct ib_mem *mem, struct ib_dev *dev, const struct ib_mem *of, int access)
{
	*mem = (struct ib_mem){ .addr = of->addr, .len = of->len };
	return ib_mr_reg(dev, mem->addr, mem->len, access, &mem->mr);
}

void ib_mem_pass(struct ib_mem *mem, struct ib_mem *of)
{
	mem->map_len = of->map_len;
	of->map_len = 0;
}

void ib_mem_fini(struct ib_mem *mem)
{
	ib_mr_dereg(mem->mr);
	if (mem->map_len)
		munmap(mem->addr, mem->map_len);
	memset(mem, 0, sizeof(*mem));
}

static void ib_mr_log(const struct ib_dev *dev, size_t len, int err)
{
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if ((err == ENOMEM || err == EAGAIN) && limit.rlim_cur != RLIM_INFINITY)
		UTIL_WARN(MR,
			  "%s cannot lock %zu bytes of memory; %llu KiB may be locked: raise the "
			  "limit (ulimit -l unlimited, or memlock in limits.conf)\n",
			  ib_dev_name(dev), len, (unsigned long long)limit.rlim_cur / 1024);
	else if (err == EFAULT)
		UTIL_WARN(MR, "%s: part of a buffer of %zu bytes is not mapped\n", ib_dev_name(dev),
			  len);
	else
		UTIL_WARN(MR, "%s cannot register %zu bytes: %s\n", ib_dev_name(dev), len,
			  strerror(err));
}

static bool ib_mr_is_mapped(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1);

	return !msync((void *)start, len + ((uintptr_t)addr - start), MS_ASYNC) || errno != ENOMEM;
}

int ib_mr_reg(struct ib_dev *dev, void *addr, size_t len, int access, struct ibv_mr **mr)
{
	int err;

	*mr = ibv_reg_mr(dev->pd, addr, len, access);
	if (*mr) {
		util_held_registered(len);
		return 0;
	}
	err = errno;
	util_held_refused();
	/*
	 * With fork protection, libibverbs calls madvise, which reports an unmapped page as ENOMEM.
	 */
	if (err == ENOMEM && !ib_mr_is_mapped(addr, len))
		err = EFAULT;
	ib_mr_log(dev, len, err);
	switch (err) {
	case ENOMEM:
	case EAGAIN: return -FI_ENOMEM;
	case EFAULT: return -FI_EFAULT;
	case EACCES:
	case EPERM: return -FI_EACCES;
	default: return -FI_EIO;
	}
}

void ib_mr_dereg(struct ibv_mr *mr)
{
	size_t len = mr ? mr->length : 0;

	if (!mr)
		return;
	if (!ibv_dereg_mr(mr))
		util_held_deregistered(len);
	else
		UTIL_WARN(MR, "memory could not be deregistered: %s\n", strerror(errno));
}

int ib_user_reg(struct ib_dev *dev, const void *addr, size_t len, unsigned access,
		struct dev_mem **out)
{
	/* Writes of peers stay in order: FI_ORDER_WAW, and a flag written behind data. */
	int rights = access & DEV_MEM_REMOTE_WRITE ? 0 : dev->relaxed;
	struct ib_user *user;
	int ret;

	user = malloc(sizeof(*user));
	if (!user)
		return -FI_ENOMEM;
	if (access & (DEV_MEM_LOCAL | DEV_MEM_REMOTE_WRITE))
		rights |= IBV_ACCESS_LOCAL_WRITE;
	if (access & DEV_MEM_REMOTE_READ)
		rights |= IBV_ACCESS_REMOTE_READ;
	if (access & DEV_MEM_REMOTE_WRITE)
		rights |= IBV_ACCESS_REMOTE_WRITE;
	ret = ib_mr_reg(dev, (void *)(uintptr_t)addr, len, rights, &user->mr);
	if (ret) {
		free(user);
		return ret;
	}
	user->base.remote_key = user->mr->rkey;
	user->lkey = user->mr->lkey;
	*out = &user->base;
	return 0;
}

void ib_user_dereg(struct dev_mem *mem)
{
	struct ib_user *user = (struct ib_user *)mem;

	ib_mr_dereg(user->mr);
	free(user);
}
