/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * C library functions behind those that the border replaces.
 *
 * Found by name in libc.so.6, not by RTLD_NEXT, whose result depends on the order of loading. The
 * table is filled at the first use, which may be before any constructor ran.
 */
#ifndef KRN_REAL_H
#define KRN_REAL_H

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

struct krn_real {
	int (*open)(const char *, int, ...);
	int (*openat)(int, const char *, int, ...);
	FILE *(*fopen)(const char *, const char *);
	DIR *(*opendir)(const char *);
	int (*scandir)(const char *, struct dirent ***, int (*)(const struct dirent *),
		       int (*)(const struct dirent **, const struct dirent **));
	int (*stat)(const char *, struct stat *);
	int (*lstat)(const char *, struct stat *);
	int (*fstat)(int, struct stat *);
	int (*fstatat)(int, const char *, struct stat *, int);
	int (*access)(const char *, int);
	int (*faccessat)(int, const char *, int, int);
	ssize_t (*readlink)(const char *, char *, size_t);
	ssize_t (*readlinkat)(int, const char *, char *, size_t);
	char *(*realpath)(const char *, char *);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*write)(int, const void *, size_t);
	int (*close)(int);
	int (*ioctl)(int, unsigned long, ...);
	int (*socket)(int, int, int);
	int (*sigaction)(int, const void *, void *);
	void (*(*signal)(int, void (*)(int)))(int);
};

const struct krn_real *krn_real(void);

/* Ends the program as the C library's checked function of that name does. */
_Noreturn void krn_overflow(const char *function);

#endif /* KRN_REAL_H */
