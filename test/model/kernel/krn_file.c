/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * C library functions with a path argument: paths of the device are redirected into the model's
 * tree.
 *
 * Each is replaced under all names that programs of this platform are linked to: with and without
 * "64", the checking variants of _FORTIFY_SOURCE, and stat() of glibc before 2.33.
 */
#include "model/kernel/cm/krn_cm.h"
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_path.h"
#include "model/kernel/krn_real.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Names that the headers do not declare, or declare under conditions. */
EXPORT int __open_2(const char *path, int flags);
EXPORT int __open64_2(const char *path, int flags);
EXPORT int __openat_2(int dir, const char *path, int flags);
EXPORT int __openat64_2(int dir, const char *path, int flags);
EXPORT ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room);
EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room);
EXPORT char *__realpath_chk(const char *path, char *to, size_t room);
EXPORT int __xstat(int version, const char *path, struct stat *st);
EXPORT int __xstat64(int version, const char *path, struct stat64 *st);
EXPORT int __lxstat(int version, const char *path, struct stat *st);
EXPORT int __lxstat64(int version, const char *path, struct stat64 *st);

static int open_device(enum krn_dev kind, uint32_t device, int flags)
{
	return kind == KRN_DEV_IS_UVERBS ? krn_ctx_open(device, flags) : krn_cm_open(flags);
}

static int open_path(int dir, const char *path, int flags, mode_t mode)
{
	uint32_t device;
	enum krn_dev kind = krn_path_device(path, &device);
	char buf[PATH_MAX];

	if (kind != KRN_DEV_NONE)
		return open_device(kind, device, flags);
	return krn_real()->openat(dir, krn_path_map(path, buf), flags, mode);
}

/* Reads the mode argument, if the flags require one. */
#define TAKE_MODE(last)                                                                            \
	mode_t mode = 0;                                                                           \
	if (flags & (O_CREAT | __O_TMPFILE)) {                                                     \
		va_list args;                                                                      \
		va_start(args, last);                                                              \
		mode = va_arg(args, mode_t);                                                       \
		va_end(args);                                                                      \
	}

EXPORT int open(const char *path, int flags, ...)
{
	TAKE_MODE(flags)
	return open_path(AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	TAKE_MODE(flags)
	return open_path(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
	TAKE_MODE(flags)
	return open_path(dir, path, flags, mode);
}

EXPORT int openat64(int dir, const char *path, int flags, ...)
{
	TAKE_MODE(flags)
	return open_path(dir, path, flags | O_LARGEFILE, mode);
}

int __open_2(const char *path, int flags)
{
	return open_path(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
	return open_path(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

int __openat_2(int dir, const char *path, int flags)
{
	return open_path(dir, path, flags, 0);
}

int __openat64_2(int dir, const char *path, int flags)
{
	return open_path(dir, path, flags | O_LARGEFILE, 0);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	char buf[PATH_MAX];

	return krn_real()->fopen(krn_path_map(path, buf), mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

EXPORT DIR *opendir(const char *path)
{
	char buf[PATH_MAX];

	return krn_real()->opendir(krn_path_map(path, buf));
}

EXPORT int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **))
{
	char buf[PATH_MAX];

	return krn_real()->scandir(krn_path_map(path, buf), list, filter, compare);
}

/* Reports the files that stand for device nodes as character devices. */
static int as_device(const char *path, struct stat *st, int rc)
{
	uint32_t device;
	enum krn_dev kind = rc ? KRN_DEV_NONE : krn_path_device(path, &device);

	if (kind == KRN_DEV_NONE)
		return rc;
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = kind == KRN_DEV_IS_UVERBS ? makedev(KRN_DEV_MAJOR, KRN_DEV_MINOR + device)
						: makedev(10, 59);
	return rc;
}

/* All names of stat(). None calls another, which may be interposed by a sanitizer. */
static int file_stat(const char *path, struct stat *st)
{
	char buf[PATH_MAX];

	return as_device(path, st, krn_real()->stat(krn_path_map(path, buf), st));
}

static int file_lstat(const char *path, struct stat *st)
{
	char buf[PATH_MAX];

	return as_device(path, st, krn_real()->lstat(krn_path_map(path, buf), st));
}

EXPORT int stat(const char *path, struct stat *st)
{
	return file_stat(path, st);
}

EXPORT int lstat(const char *path, struct stat *st)
{
	return file_lstat(path, st);
}

EXPORT int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	char buf[PATH_MAX];

	if (!path[0])
		return krn_real()->fstatat(dir, path, st, flags);
	return as_device(path, st, krn_real()->fstatat(dir, krn_path_map(path, buf), st, flags));
}

/* struct stat64 is struct stat on this platform. */
EXPORT int stat64(const char *path, struct stat64 *st)
{
	return file_stat(path, (struct stat *)st);
}

EXPORT int lstat64(const char *path, struct stat64 *st)
{
	return file_lstat(path, (struct stat *)st);
}

EXPORT int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	return fstatat(dir, path, (struct stat *)st, flags);
}

EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	return file_stat(path, st);
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
	return file_stat(path, (struct stat *)st);
}

EXPORT int __lxstat(int version, const char *path, struct stat *st)
{
	return file_lstat(path, st);
}

EXPORT int __lxstat64(int version, const char *path, struct stat64 *st)
{
	return file_lstat(path, (struct stat *)st);
}

EXPORT int access(const char *path, int mode)
{
	char buf[PATH_MAX];
	uint32_t device;

	if (krn_path_device(path, &device) == KRN_DEV_IS_UVERBS && mode != F_OK &&
	    krn_ctx_is_forbidden()) {
		errno = EACCES;
		return -1;
	}
	return krn_real()->access(krn_path_map(path, buf), mode);
}

EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	char buf[PATH_MAX];

	return krn_real()->faccessat(dir, krn_path_map(path, buf), mode, flags);
}

EXPORT ssize_t readlink(const char *path, char *to, size_t size)
{
	char buf[PATH_MAX];

	return krn_real()->readlink(krn_path_map(path, buf), to, size);
}

EXPORT ssize_t readlinkat(int dir, const char *path, char *to, size_t size)
{
	char buf[PATH_MAX];

	return krn_real()->readlinkat(dir, krn_path_map(path, buf), to, size);
}

ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room)
{
	if (size > room)
		krn_overflow("readlink");
	return readlink(path, to, size);
}

ssize_t __readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room)
{
	if (size > room)
		krn_overflow("readlinkat");
	return readlinkat(dir, path, to, size);
}

EXPORT char *realpath(const char *path, char *to)
{
	char buf[PATH_MAX], *found;

	found = krn_real()->realpath(krn_path_map(path, buf), to);
	if (found)
		krn_path_unmap(found);
	return found;
}

char *__realpath_chk(const char *path, char *to, size_t room)
{
	if (room < PATH_MAX)
		krn_overflow("realpath");
	return realpath(path, to);
}

EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}
