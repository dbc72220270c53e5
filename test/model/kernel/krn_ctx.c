/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opening and closing the device.
 *
 * Of a context's 16 registers, number 0 is reserved (it takes doorbells only), 1 to 11 are shared
 * and locked by libmlx5, and 12 to 15 serve one QP each. A page's layout has four registers of
 * which two are used; the number that CREATE_QP reports counts all four.
 */
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_chan.h"
#include "model/kernel/krn_fd.h"
#include "model/kernel/krn_mode.h"
#include "model/kernel/krn_object.h"
#include "model/kernel/krn_uar.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_raw.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static struct krn_ctx contexts[MDL_CTX_MAX];
static uint32_t context_cnt; /* entries that were ever used */
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;

/* Resets the contexts in a child of fork(), where those of the parent are invalid. */
static void forget_all(void)
{
	mdl_self.proc = NULL;
	memset(contexts, 0, sizeof(contexts));
	context_cnt = 0;
	pthread_mutex_init(&context_lock, NULL);
	krn_uar_forget();
	krn_mode_forget();
}

static int attach(void)
{
	static int registered;
	int err;

	if (mdl_self.proc)
		return 0;
	err = mdl_segment_attach();
	if (err)
		return err;
	/* Yama lets only parents access a process: permit its peers as well. */
	MDL_RAW2(prctl, PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (!registered++)
		pthread_atfork(NULL, NULL, forget_all);
	nic_attach();
	return 0;
}

static char *map_pages(int fd)
{
	long at =
		MDL_RAW6(mmap, NULL, KRN_UAR_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at < 0 && at > -4096 ? NULL : (char *)at;
}

static int make_file(int flags)
{
	long fd = MDL_RAW2(memfd_create, "uverbs0", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd >= 0 && MDL_RAW2(ftruncate, fd, KRN_UAR_FILE_BYTES) < 0) {
		MDL_RAW1(close, fd);
		return -ENOMEM;
	}
	return (int)fd;
}

static int context_fill(uint32_t index, uint32_t device, int flags)
{
	struct krn_ctx *ctx = &contexts[index];
	int fd = make_file(flags);
	char *pages;

	if (fd < 0)
		return fd;
	pages = map_pages(fd);
	if (!pages) {
		MDL_RAW1(close, fd);
		return -ENOMEM;
	}
	ctx->device = device;
	ctx->async_chan = ctx->mapped = 0;
	for (uint32_t page = 0; page < MDL_UAR_PAGES; page++)
		__atomic_store_n(&ctx->place[page], page, __ATOMIC_RELAXED);
	for (uint32_t n = 0; n < KRN_BFREGS; n++)
		__atomic_store_n(&ctx->bfreg_users[n], 0, __ATOMIC_RELAXED);
	pthread_mutex_init(&ctx->lock, NULL);
	ctx->async_fd = -1;
	ctx->opened_ns = mdl_now_ns();
	ctx->fd = fd;
	/* the context is visible from here on */
	__atomic_store_n(&ctx->pages, pages, __ATOMIC_RELEASE);
	krn_fd_set(fd, KRN_FD_UVERBS, index);
	return fd;
}

static int open_locked(uint32_t device, int flags)
{
	int err = attach();

	if (!err && nic_fault_denied())
		err = nic_fault_forbidden() ? -EACCES : -EPERM;
	if (!err && nic_fault_dead(device))
		err = -ENODEV;
	if (err)
		return err;
	for (uint32_t index = 0; index < MDL_CTX_MAX; index++) {
		if (contexts[index].pages)
			continue;
		err = context_fill(index, device, flags);
		if (err >= 0 && index >= context_cnt)
			__atomic_store_n(&context_cnt, index + 1, __ATOMIC_RELEASE);
		return err;
	}
	return -EMFILE;
}

int krn_ctx_attach(void)
{
	int err;

	pthread_mutex_lock(&context_lock);
	err = attach();
	pthread_mutex_unlock(&context_lock);
	return err;
}

bool krn_ctx_is_forbidden(void)
{
	return krn_ctx_attach() == 0 && nic_fault_forbidden();
}

int krn_ctx_open(uint32_t device, int flags)
{
	int fd;

	pthread_mutex_lock(&context_lock);
	fd = open_locked(device, flags);
	pthread_mutex_unlock(&context_lock);
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

struct krn_ctx *krn_ctx_get(uint32_t index)
{
	if (index >= __atomic_load_n(&context_cnt, __ATOMIC_ACQUIRE) ||
	    !__atomic_load_n(&contexts[index].pages, __ATOMIC_ACQUIRE))
		return NULL;
	return &contexts[index];
}

void krn_ctx_close(uint32_t index)
{
	struct krn_ctx *ctx = krn_ctx_get(index);
	char *pages;

	if (!ctx)
		return;
	krn_object_destroy_all(index);
	pthread_mutex_lock(&context_lock);
	krn_uar_unmapped(index);
	if (ctx->async_chan)
		krn_chan_release(ctx->async_chan);
	pages = ctx->pages;
	__atomic_store_n(&ctx->pages, NULL, __ATOMIC_RELEASE);
	ctx->fd = -1;
	krn_mode_quiesce();
	MDL_RAW2(munmap, pages, KRN_UAR_FILE_BYTES);
	pthread_mutex_unlock(&context_lock);
}

/* Chooses an exclusive register if one is free, else the shared one with the fewest users. */
static uint32_t choose_bfreg(const struct krn_ctx *ctx)
{
	uint32_t best = 1;

	for (uint32_t n = KRN_BFREGS - KRN_BFREG_LOW_LAT; n < KRN_BFREGS; n++)
		if (!ctx->bfreg_users[n])
			return n;
	for (uint32_t n = 2; n < KRN_BFREGS - KRN_BFREG_LOW_LAT; n++)
		if (ctx->bfreg_users[n] < ctx->bfreg_users[best])
			best = n;
	return best;
}

uint32_t krn_ctx_bfreg_take(struct krn_ctx *ctx, uint32_t *page, uint32_t *off)
{
	uint32_t n = choose_bfreg(ctx);

	__atomic_fetch_add(&ctx->bfreg_users[n], 1, __ATOMIC_RELAXED);
	*page = n / 2;
	*off = KRN_UAR_BF + (n & 1) * KRN_UAR_BF_STRIDE;
	return n / 2 * 4 + (n & 1);
}

void krn_ctx_bfreg_put(struct krn_ctx *ctx, uint32_t page, uint32_t off)
{
	uint32_t n = page * 2 + (off - KRN_UAR_BF) / KRN_UAR_BF_STRIDE;

	__atomic_fetch_sub(&ctx->bfreg_users[n], 1, __ATOMIC_RELAXED);
}
