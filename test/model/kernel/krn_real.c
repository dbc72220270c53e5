/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Looks up the C library's functions, once. */
#include "model/kernel/krn_real.h"
#include "model/fabric/mdl_segment.h"

#include <dlfcn.h>
#include <stdlib.h>

static struct krn_real real;
static int real_ready;

static void *libc_symbol(void *libc, const char *name)
{
	void *symbol = dlsym(libc, name);

	if (!symbol)
		mdl_fatal("the C library has no %s(): the model needs glibc 2.33 or later", name);
	return symbol;
}

#define FIND(name) *(void **)&real.name = libc_symbol(libc, #name)

static void find_all(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	FIND(open);
	FIND(openat);
	FIND(fopen);
	FIND(opendir);
	FIND(scandir);
	FIND(stat);
	FIND(lstat);
	FIND(fstat);
	FIND(fstatat);
	FIND(access);
	FIND(faccessat);
	FIND(readlink);
	FIND(readlinkat);
	FIND(realpath);
	FIND(read);
	FIND(write);
	FIND(close);
	FIND(ioctl);
	FIND(socket);
	FIND(sigaction);
	FIND(signal);
}

/* Returns the table. Threads that fill it at the same time find the same values. */
const struct krn_real *krn_real(void)
{
	if (!__atomic_load_n(&real_ready, __ATOMIC_ACQUIRE)) {
		find_all();
		__atomic_store_n(&real_ready, 1, __ATOMIC_RELEASE);
	}
	return &real;
}

void krn_overflow(const char *function)
{
	mdl_say("buffer overflow: %s() would write more than its buffer takes", function);
	abort();
}
