/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Description of a link's end (shm_desc.h). No state. */
#include "dev/shm/shm_desc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "dev/shm/shm_poll.h"
#include "util/log.h"

static int shm_desc_dup(const int *fds, struct dev_desc *desc)
{
	for (desc->fd_cnt = 0; desc->fd_cnt < SHM_FD_CNT; desc->fd_cnt++) {
		int fd = fcntl(fds[desc->fd_cnt], F_DUPFD_CLOEXEC, 0);

		if (fd < 0)
			goto err_close;
		desc->fds[desc->fd_cnt] = fd;
	}
	return 0;

err_close:
	UTIL_WARN_SELDOM(EP_CTRL, "cannot duplicate a descriptor: %s (ulimit -n)\n",
			 strerror(errno));
	while (desc->fd_cnt)
		close(desc->fds[--desc->fd_cnt]);
	return -FI_EMFILE;
}

int shm_desc_fill(const struct shm_link *link, struct dev_desc *desc)
{
	const struct shm_dev *dev = link->dev;
	const int fds[SHM_FD_CNT] = {
		[SHM_FD_SEG] = link->seg_fd,
		[SHM_FD_INBOX] = dev->inbox_fd,
		[SHM_FD_BELL] = dev->bell.write_fd,
	};
	const struct shm_desc d = {
		.magic = SHM_DESC_MAGIC,
		.version = SHM_DESC_VERSION,
		.flags = dev->membarrier ? SHM_DESC_MEMBARRIER : 0,
		.rx_len = link->base.rx_len,
		.link_id = link->id,
		.pid = getpid(),
		.nonce_addr = (uint64_t)(uintptr_t)dev->nonce,
		.nonce = { dev->nonce[0], dev->nonce[1] },
	};

	memcpy(desc->bytes, &d, sizeof(d));
	desc->len = sizeof(d);
	desc->pid = d.pid;
	return shm_desc_dup(fds, desc);
}

static const char *shm_desc_fault(const struct shm_desc *d)
{
	if (d->magic != SHM_DESC_MAGIC)
		return "not a shared-memory description";
	if (d->version != SHM_DESC_VERSION)
		return "another version: use the same copyrpc in all processes";
	if (d->flags & ~SHM_DESC_MEMBARRIER || d->reserved[0] || d->reserved[1])
		return "unknown flags";
	if (!util_is_pow2(d->rx_len) || d->rx_len < SHM_RING_MIN || d->rx_len > SHM_RING_MAX)
		return "illegal ring size";
	if (d->link_id >= SHM_LINKS_MAX || d->pid <= 0)
		return "illegal id";
	return NULL;
}

int shm_desc_parse(const struct dev_desc *desc, struct shm_desc *out)
{
	const char *why = "wrong length";

	if (desc->len == sizeof(*out) && desc->fd_cnt == SHM_FD_CNT) {
		memcpy(out, desc->bytes, sizeof(*out));
		why = shm_desc_fault(out);
	}
	if (why) {
		UTIL_WARN(EP_CTRL, "peer's description refused: %s\n", why);
		return -FI_EINVAL;
	}
	if (shm_seg_check(desc->fds[SHM_FD_SEG], shm_seg_len(out->rx_len)) ||
	    shm_seg_check(desc->fds[SHM_FD_INBOX], SHM_INBOX_LEN))
		return -FI_EINVAL;
	return shm_bell_check(desc->fds[SHM_FD_BELL]);
}
