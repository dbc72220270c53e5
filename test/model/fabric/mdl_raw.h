/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * System calls that bypass every interposer: the model's, and those of programs under the model
 * (UCX patches mmap(), for example). They preserve errno and return -errno, so that a signal
 * handler may use them.
 */
#ifndef MDL_RAW_H
#define MDL_RAW_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long mdl_raw(long number, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long got = syscall(number, a, b, c, d, e, f);

	if (got == -1)
		got = -errno;
	errno = saved;
	return got;
}

#define MDL_RAW0(name)          mdl_raw(SYS_##name, 0, 0, 0, 0, 0, 0)
#define MDL_RAW1(name, a)       mdl_raw(SYS_##name, (long)(a), 0, 0, 0, 0, 0)
#define MDL_RAW2(name, a, b)    mdl_raw(SYS_##name, (long)(a), (long)(b), 0, 0, 0, 0)
#define MDL_RAW3(name, a, b, c) mdl_raw(SYS_##name, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define MDL_RAW4(name, a, b, c, d)                                                                 \
	mdl_raw(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define MDL_RAW6(name, a, b, c, d, e, f)                                                           \
	mdl_raw(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif /* MDL_RAW_H */
