/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements top_pages.h. */
#include "top/top_pages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOP_LINK "/memfd:" COPYRPC_STATS_NAME " (deleted)"

/** Returns the number that is the whole text, or -1. */
static long top_number(const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);

	return end != text && !*end && v > 0 ? v : -1;
}

/** Copies the page behind a descriptor. Returns 0 or -EINVAL or another -errno. */
static int top_page_copy(struct stats_view *view, int fd)
{
	struct stat st;
	void *mem;
	int ret, seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || ((unsigned)seals & COPYRPC_STATS_SEALS) != COPYRPC_STATS_SEALS ||
	    fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > (off_t)COPYRPC_STATS_LEN_MAX)
		return -EINVAL;
	mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) /* a page of another kind, such as a huge one that this host lacks */
		return -EINVAL;
	ret = stats_view_copy(view, mem, (size_t)st.st_size);
	munmap(mem, (size_t)st.st_size);
	return ret;
}

static int top_pages_add(struct top_pages *pages, struct stats_view view)
{
	struct stats_view *more = realloc(pages->views, (pages->cnt + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	pages->views = more;
	more[pages->cnt++] = view;
	return 0;
}

/** Takes a page unless it is none, or that of another process. */
static int top_page_take(struct top_pages *pages, int fd, long pid)
{
	struct stats_view view;
	int ret = top_page_copy(&view, fd);

	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		pages->refused++;
		return 0;
	}
	if (view.page->pid != pid) {
		stats_view_free(&view);
		return 0;
	}
	ret = top_pages_add(pages, view);
	if (ret)
		stats_view_free(&view);
	return ret;
}

/** Reads the pages of one process. A process that has gone, or is another user's, has none. */
static int top_pages_of(struct top_pages *pages, long pid)
{
	char path[320], link[64];
	struct dirent *entry;
	ssize_t len;
	int fd, ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
	dir = opendir(path);
	while (dir && !ret && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%ld/fd/%s", pid, entry->d_name);
		len = readlink(path, link, sizeof(link));
		if (len != (ssize_t)strlen(TOP_LINK) || memcmp(link, TOP_LINK, (size_t)len))
			continue;
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		ret = top_page_take(pages, fd, pid);
		close(fd);
	}
	if (dir)
		closedir(dir);
	return ret;
}

static int top_by_pid(const void *a, const void *b)
{
	const struct stats_view *x = a, *y = b;

	return x->page->pid < y->page->pid ? -1 : x->page->pid > y->page->pid;
}

int top_pages_read(struct top_pages *pages)
{
	/* Where /proc is not mounted, its directory is there and empty. */
	DIR *dir = access("/proc/self", F_OK) ? NULL : opendir("/proc");
	struct dirent *entry;
	long pid;
	int ret = 0;

	*pages = (struct top_pages){ 0 };
	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		pid = top_number(entry->d_name);
		if (pid > 0)
			ret = top_pages_of(pages, pid);
	}
	closedir(dir);
	if (pages->cnt)
		qsort(pages->views, pages->cnt, sizeof(*pages->views), top_by_pid);
	return ret;
}

/** Copies a page from a file, which may be cut meanwhile and so is not mapped. */
static int top_page_load(struct stats_view *view, int fd)
{
	struct stat st;
	void *mem;
	ssize_t len;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > (off_t)COPYRPC_STATS_LEN_MAX)
		return -EINVAL;
	mem = malloc((size_t)st.st_size);
	if (!mem)
		return -ENOMEM;
	len = pread(fd, mem, (size_t)st.st_size, 0);
	ret = len < 0 ? -errno : stats_view_copy(view, mem, (size_t)len);
	free(mem);
	return ret;
}

static int top_file_read(struct top_pages *pages, const char *name)
{
	int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC), ret;
	struct stats_view view;

	if (fd < 0)
		return -errno;
	ret = top_page_load(&view, fd);
	close(fd);
	if (ret)
		return ret;
	ret = top_pages_add(pages, view);
	if (ret)
		stats_view_free(&view);
	return ret;
}

/** Reads the page beside a report: the file of its name with .events behind it. */
static int top_report_read(struct top_pages *pages, const char *report)
{
	char *name;
	int ret;

	if (asprintf(&name, "%s.events", report) < 0)
		return -ENOMEM;
	ret = top_file_read(pages, name);
	free(name);
	return ret;
}

int top_pages_find(struct top_pages *pages, const char *name)
{
	long pid = top_number(name);
	int ret;

	*pages = (struct top_pages){ 0 };
	if (pid < 0) {
		ret = top_file_read(pages, name);
		return ret && !top_report_read(pages, name) ? 0 : ret;
	}
	ret = top_pages_of(pages, pid);
	return ret || pages->cnt ? ret : -ESRCH;
}

void top_pages_free(struct top_pages *pages)
{
	for (size_t i = 0; i < pages->cnt; i++)
		stats_view_free(&pages->views[i]);
	free(pages->views);
}
