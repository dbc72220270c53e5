/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Removal of fabrics without a process. Called by run, for all fabrics of this user.
 *
 * A process that ends or is killed removes nothing, so that its counters can be read, and what is
 * in /dev/shm counts as memory in use. A fabric is removed if no process in it lives and its lock
 * file is older than an hour.
 */
#include "model/tool/hca_tool.h"
#include "model/fabric/mdl_segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SWEEP_DIR   "/dev/shm"
#define SWEEP_AGE_S 3600

/* Returns whether the file is a segment of this user without a process. */
static bool is_left(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct mdl_segment *seg;
	struct stat st;
	bool left;

	if (fd < 0)
		return false;
	seg = fstat(fd, &st) || st.st_uid != getuid() || st.st_size < (off_t)sizeof(*seg)
		      ? MAP_FAILED
		      : mmap(NULL, sizeof(*seg), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (seg == MAP_FAILED)
		return false;
	left = seg->magic == MDL_SEGMENT_MAGIC && seg->version == MDL_SEGMENT_VERSION &&
	       seg->ready && !mdl_segment_user(seg);
	munmap(seg, sizeof(*seg));
	return left;
}

/* Opens and takes the lock file if it is old and free. Returns its descriptor or -1. */
static int take_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && st.st_uid == getuid() && time(NULL) - st.st_mtime > SWEEP_AGE_S &&
	    !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	close(fd);
	return -1;
}

/* Removes the fabric of a lock file, `len` characters of whose path are the segment's. */
static void sweep(const char *lock_path, size_t len)
{
	char path[512];
	int lock = take_lock(lock_path);

	if (lock < 0)
		return;
	snprintf(path, sizeof(path), "%.*s", (int)len, lock_path);
	if (is_left(path))
		hca_remove(path);
	close(lock);
}

void hca_sweep(void)
{
	char prefix[48], path[512];
	struct dirent *entry;
	DIR *dir = opendir(SWEEP_DIR);
	size_t len;

	snprintf(prefix, sizeof(prefix), "copyrpc_hca-%ld-", (long)getuid());
	while (dir && (entry = readdir(dir))) {
		len = strlen(entry->d_name);
		if (strncmp(entry->d_name, prefix, strlen(prefix)) || len < 5 ||
		    strcmp(entry->d_name + len - 5, ".lock"))
			continue;
		snprintf(path, sizeof(path), SWEEP_DIR "/%s", entry->d_name);
		sweep(path, strlen(path) - 5);
	}
	if (dir)
		closedir(dir);
}
