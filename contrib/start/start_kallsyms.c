/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Library for LD_PRELOAD: programs find no symbols of the kernel (copyrpc_env --fast-start).
 *
 * When libfabric 1.17 starts, its verbs provider reads /proc/kallsyms twice, in each process, to
 * learn whether the kernel can register the memory of graphics processors: 5 MB of text, made by
 * the kernel line by line, 80 ms each time. This fopen does not find that file, and passes all
 * others on. copyrpc does not use what the verbs provider learns.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HIDDEN_FILE "/proc/kallsyms"

typedef FILE *open_fn(const char *path, const char *mode);

/* Returns the next function of that name: of another preloaded library, or of libc. */
static open_fn *next_open(void)
{
	static open_fn *next; /* atomic */
	open_fn *found = __atomic_load_n(&next, __ATOMIC_RELAXED);
	void *sym;

	if (!found) {
		sym = dlsym(RTLD_NEXT, "fopen");
		memcpy(&found, &sym, sizeof(found));
		__atomic_store_n(&next, found, __ATOMIC_RELAXED);
	}
	return found;
}

FILE *fopen(const char *path, const char *mode)
{
	open_fn *next = next_open();

	if (!next || (path && !strcmp(path, HIDDEN_FILE))) {
		errno = ENOENT;
		return NULL;
	}
	return next(path, mode);
}
