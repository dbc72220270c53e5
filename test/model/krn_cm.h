/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_cm: what an open /dev/infiniband/rdma_cm is. */
#ifndef KRN_CM_H
#define KRN_CM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor, or -1 and errno. */
int krn_cm_open(int flags);
ssize_t krn_cm_write(uint32_t index, const void *from, size_t size);
void krn_cm_close(uint32_t index);

#endif /* KRN_CM_H */
