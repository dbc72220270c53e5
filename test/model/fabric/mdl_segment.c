/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mapping of the segment: one file per fabric. The first process creates it; a later process
 * replaces it if no process in it lives.
 *
 * A lock file beside it (flock) serialises attaching and leaving. The file is replaced, never
 * shrunk, so that a tool that still maps an old one can read on.
 */
#include "model/fabric/mdl_port.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ARENA_BYTES (16ull << 30)

struct mdl_self mdl_self;
static int segment_fd = -1;

static uint64_t round_page(uint64_t bytes)
{
	return (bytes + MDL_PAGE - 1) & ~(uint64_t)(MDL_PAGE - 1);
}

int mdl_segment_fd(void)
{
	return segment_fd;
}

int mdl_segment_path(char *path, size_t size, const char *suffix)
{
	int len = snprintf(path, size, "/dev/shm/copyrpc_hca-%ld-%s%s", MDL_RAW0(getuid),
			   mdl_config_get()->segment, suffix);

	return len < (int)size ? len : -1;
}

bool mdl_fd_is_own(int fd, const char *path)
{
	struct stat st;

	if (!MDL_RAW4(newfstatat, fd, "", &st, AT_EMPTY_PATH) && st.st_uid == MDL_RAW0(getuid) &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return true;
	mdl_say("%s belongs to another user, or others may write it: not used. Choose another name "
		"(--segment), or have it removed",
		path);
	return false;
}

static void segment_init(struct mdl_segment *seg, uint64_t size)
{
	const struct mdl_config *config = mdl_config_get();
	uint64_t tables = round_page(sizeof(*seg));

	seg->size = size;
	seg->link = config->link;
	seg->node_cnt = config->nodes;
	seg->port_cnt = config->nodes * config->devices;
	seg->seed = config->seed;
	seg->generation = 1;
	seg->page_cnt = ARENA_BYTES / MDL_PAGE;
	seg->page_map = tables;
	seg->page_first = tables + round_page(seg->page_cnt * sizeof(uint16_t));
	mdl_lock_init(&seg->table_lock);
	mdl_lock_init(&seg->cm_lock);
	for (uint32_t i = 0; i < seg->port_cnt; i++)
		mdl_port_fill(&seg->port[i], i, (enum mdl_link)config->link);
	seg->version = MDL_SEGMENT_VERSION;
	seg->magic = MDL_SEGMENT_MAGIC;
	__atomic_store_n(&seg->ready, 1, __ATOMIC_RELEASE);
}

int mdl_segment_user(const struct mdl_segment *seg)
{
	for (uint32_t slot = 0; slot < MDL_PROC_MAX; slot++) {
		const struct mdl_proc *proc = &seg->proc[slot];

		if (proc->state == MDL_PROC_LIVE && !mdl_pid_is_dead(proc->pid, proc->started))
			return proc->pid;
	}
	return 0;
}

/* Moves a descriptor away from the low numbers that programs count on or close. */
static int move_up(int fd)
{
	long high = fd < 0 ? fd : MDL_RAW3(fcntl, fd, F_DUPFD_CLOEXEC, 900);

	if (high < 0)
		return fd;
	MDL_RAW1(close, fd);
	return (int)high;
}

static struct mdl_segment *map_file(int fd, uint64_t size)
{
	long at = MDL_RAW6(mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			   0);

	return at < 0 && at > -4096 ? NULL : (struct mdl_segment *)at;
}

static uint64_t segment_bytes(void)
{
	return round_page(sizeof(struct mdl_segment)) +
	       round_page(ARENA_BYTES / MDL_PAGE * sizeof(uint16_t)) + ARENA_BYTES;
}

/*
 * Maps an existing, complete segment. Returns null if there is none, with *err -EPERM if there is a
 * file of another user.
 */
static struct mdl_segment *map_existing(const char *path, uint64_t size, int *err)
{
	long fd = MDL_RAW4(openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
	struct mdl_segment *seg;

	if (fd < 0)
		return NULL;
	if (!mdl_fd_is_own((int)fd, path))
		*err = -EPERM;
	if (*err == -EPERM || MDL_RAW3(lseek, fd, 0, SEEK_END) != (long)size) {
		MDL_RAW1(close, fd);
		return NULL;
	}
	seg = map_file((int)fd, size);
	if (!seg || seg->magic != MDL_SEGMENT_MAGIC || seg->version != MDL_SEGMENT_VERSION ||
	    !seg->ready) {
		if (seg)
			MDL_RAW2(munmap, seg, size);
		MDL_RAW1(close, fd);
		return NULL;
	}
	segment_fd = move_up((int)fd);
	return seg;
}

static struct mdl_segment *map_new(const char *path, uint64_t size)
{
	struct mdl_segment *seg;
	long fd;

	MDL_RAW1(unlink, path);
	fd = MDL_RAW4(openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return NULL;
	if (MDL_RAW2(ftruncate, fd, size) < 0 || !(seg = map_file((int)fd, size))) {
		MDL_RAW1(close, fd);
		return NULL;
	}
	segment_init(seg, size);
	segment_fd = move_up((int)fd);
	return seg;
}

static bool config_agrees(const struct mdl_segment *seg)
{
	const struct mdl_config *config = mdl_config_get();

	if (seg->link == config->link && seg->node_cnt == config->nodes &&
	    seg->port_cnt == config->nodes * config->devices)
		return true;
	mdl_say("fabric \"%s\" is in use with another link layer or number of nodes or devices "
		"(%s, %u, %u): choose another name (--segment) or the same options",
		config->segment, seg->link == MDL_LINK_IB ? "ib" : "roce", seg->node_cnt,
		seg->port_cnt / seg->node_cnt);
	return false;
}

/* Maps the existing segment if it is usable, else a new one. */
static struct mdl_segment *map_or_make(const char *path, bool create, int *err)
{
	uint64_t size = segment_bytes();
	struct mdl_segment *seg;

	*err = -ENOENT;
	seg = map_existing(path, size, err);
	if (!create || *err == -EPERM)
		return seg;
	if (seg && mdl_segment_user(seg)) {
		*err = -EINVAL;
		return config_agrees(seg) ? seg : NULL;
	}
	if (seg) {
		MDL_RAW2(munmap, seg, size);
		MDL_RAW1(close, segment_fd);
	}
	*err = -ENOMEM;
	return map_new(path, size);
}

/* Returns whether the file that was opened still has its name. */
static bool has_name(int fd, const char *path)
{
	struct stat opened, named;

	return !MDL_RAW4(newfstatat, fd, "", &opened, AT_EMPTY_PATH) &&
	       !MDL_RAW4(newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) &&
	       opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/* Opens the lock file and takes the lock. Returns the descriptor or a negative errno. */
static long lock_file(const char *path)
{
	long fd = MDL_RAW4(openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0 && !mdl_fd_is_own((int)fd, path)) {
		MDL_RAW1(close, fd);
		return -EPERM;
	}
	if (fd >= 0)
		MDL_RAW2(flock, fd, LOCK_EX);
	return fd;
}

/* A lock file may be removed between its open and the lock: the next one is another file. */
int mdl_segment_lock(void)
{
	char path[160];
	long fd;

	if (mdl_segment_path(path, sizeof(path), ".lock") < 0)
		return -ENAMETOOLONG;
	while ((fd = lock_file(path)) >= 0 && !has_name((int)fd, path))
		MDL_RAW1(close, fd);
	return (int)fd;
}

int mdl_segment_map_locked(bool create)
{
	char path[160];
	int err;

	if (mdl_self.seg)
		return 0;
	if (mdl_segment_path(path, sizeof(path), "") < 0)
		return -ENAMETOOLONG;
	mdl_self.config = *mdl_config_get();
	mdl_self.seg = map_or_make(path, create, &err);
	return mdl_self.seg ? 0 : err;
}

int mdl_segment_map(bool create)
{
	int lock = mdl_segment_lock(), err;

	if (lock < 0)
		return lock;
	err = mdl_segment_map_locked(create);
	MDL_RAW1(close, lock);
	return err;
}
