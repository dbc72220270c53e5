/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Readers of /proc: memory, descriptors and sockets of a process. A failure ends the program. */
#ifndef SUPPORT_PROC_H
#define SUPPORT_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static inline void proc_need(bool got, const char *path)
{
	if (got)
		return;
	perror(path);
	abort();
}

static inline DIR *proc_open_fds(pid_t pid)
{
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	proc_need(dir, path);
	return dir;
}

/** Returns the resident memory of a process in KiB. */
static inline unsigned long proc_resident_kib(pid_t pid)
{
	unsigned long size, resident = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	file = fopen(path, "re");
	proc_need(file && fscanf(file, "%lu %lu", &size, &resident) == 2, path);
	fclose(file);
	return resident * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

/** Returns the number of entries in a process's directory of descriptors. */
static inline unsigned proc_fd_cnt(pid_t pid)
{
	DIR *dir = proc_open_fds(pid);
	unsigned cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/** Returns true if the socket with this inode is a process's. */
static inline bool proc_owns_socket(pid_t pid, unsigned long inode)
{
	DIR *dir = proc_open_fds(pid);
	char link[64], want[64];
	struct dirent *entry;
	bool found = false;
	ssize_t len;

	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	while (!found && (entry = readdir(dir))) {
		len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = '\0';
		found = !strcmp(link, want);
	}
	closedir(dir);
	return found;
}

/** A line of /proc/net/udp; `peer` is 0 if the socket is not connected. */
struct proc_udp {
	unsigned port, peer;
	unsigned long inode;
};

/** Reads the lines of the caller's network namespace. Returns their number, at most `max`. */
static inline unsigned proc_read_udp(struct proc_udp *socks, unsigned max)
{
	FILE *file = fopen("/proc/net/udp", "re");
	unsigned cnt = 0;
	char line[512];

	proc_need(file, "/proc/net/udp");
	while (cnt < max && fgets(line, sizeof(line), file))
		cnt += sscanf(line, "%*d: %*x:%x %*x:%x %*x %*s %*s %*s %*u %*u %lu",
			      &socks[cnt].port, &socks[cnt].peer, &socks[cnt].inode) == 3;
	fclose(file);
	return cnt;
}

/** Returns true if a socket of a process is connected to an open UDP port on this machine. */
static inline bool proc_has_udp_peer(pid_t pid)
{
	static struct proc_udp socks[4096];
	unsigned cnt = proc_read_udp(socks, 4096);

	for (unsigned i = 0; i < cnt; i++)
		for (unsigned j = 0; socks[i].peer && j < cnt; j++)
			if (socks[j].port == socks[i].peer && proc_owns_socket(pid, socks[i].inode))
				return true;
	return false;
}

#endif
