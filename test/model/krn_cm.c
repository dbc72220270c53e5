/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_cm: not there yet; a program finds no such device. */
#include "model/krn_cm.h"

#include <errno.h>

int krn_cm_open(int flags)
{
	(void)flags;
	errno = ENODEV;
	return -1;
}

ssize_t krn_cm_write(uint32_t index, const void *from, size_t size)
{
	(void)index;
	(void)from;
	(void)size;
	return -ENODEV;
}

void krn_cm_close(uint32_t index)
{
	(void)index;
}
