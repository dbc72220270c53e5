/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Children with captured output: see info_child.h. */
#include "info/info_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "info/info.h"
#include "util/clock.h"

#define INFO_CHILD_MAX ((size_t)16 << 20) /* further bytes are read and dropped */

struct info_sink {
	int fd; /* -1: closed */
	char *data;
	size_t len;
};

/* Reads once. Closes the descriptor at its end. */
static void info_sink_read(struct info_sink *sink)
{
	char bytes[16384];
	ssize_t got = read(sink->fd, bytes, sizeof(bytes));
	char *data;

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (got <= 0) {
		close(sink->fd);
		sink->fd = -1;
		return;
	}
	data = sink->len < INFO_CHILD_MAX ? realloc(sink->data, sink->len + (size_t)got + 1) : NULL;
	if (!data)
		return;
	memcpy(data + sink->len, bytes, (size_t)got);
	sink->data = data;
	sink->len += (size_t)got;
	data[sink->len] = '\0';
}

/* Reads both until they end. Returns false if `end_ns` came first. */
static bool info_sinks_read(struct info_sink sinks[2], uint64_t end_ns)
{
	while (sinks[0].fd >= 0 || sinks[1].fd >= 0) {
		struct pollfd fds[2] = { { .fd = sinks[0].fd, .events = POLLIN },
					 { .fd = sinks[1].fd, .events = POLLIN } };
		uint64_t now_ns = util_clock_ns();

		if (now_ns >= end_ns)
			return false;
		poll(fds, 2, (int)((end_ns - now_ns) / UTIL_NS_PER_MS) + 1);
		for (int i = 0; i < 2; i++)
			if (fds[i].revents)
				info_sink_read(&sinks[i]);
	}
	return true;
}

static void info_child_main(info_child_fn *fn, void *arg, int out, int log)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	dup2(log, STDERR_FILENO);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	_exit(fn(arg, out));
}

/* Waits for the child. A child that keeps its group alive is killed with it. */
static void info_child_reap(pid_t pid, bool in_time, struct info_child *child)
{
	int status = 0;

	if (!in_time)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	child->ended = in_time;
	child->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void info_child_follow(pid_t pid, const int fds[2], unsigned seconds,
			      struct info_child *child)
{
	struct info_sink sinks[2] = { { .fd = fds[0] }, { .fd = fds[1] } };
	bool in_time = info_sinks_read(sinks, util_clock_ns() + seconds * UTIL_NS_PER_S);

	for (int i = 0; i < 2; i++)
		if (sinks[i].fd >= 0)
			close(sinks[i].fd);
	info_child_reap(pid, in_time, child);
	child->out = sinks[0].data ? sinks[0].data : info_print("%s", "");
	child->len = sinks[0].len;
	child->log = sinks[1].data ? sinks[1].data : info_print("%s", "");
}

int info_child_run(info_child_fn *fn, void *arg, unsigned seconds, struct info_child *child)
{
	int out[2], log[2], ret = 0;
	pid_t pid;

	memset(child, 0, sizeof(*child));
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(log, O_CLOEXEC)) {
		ret = -errno;
		goto err_out;
	}
	pid = fork();
	if (pid < 0) {
		ret = -errno;
		goto err_log;
	}
	if (!pid)
		info_child_main(fn, arg, out[1], log[1]);
	setpgid(pid, pid);
	close(out[1]);
	close(log[1]);
	info_child_follow(pid, (const int[]){ out[0], log[0] }, seconds, child);
	return 0;

err_log:
	close(log[0]);
	close(log[1]);
err_out:
	close(out[0]);
	close(out[1]);
	return ret;
}

static int info_child_program(void *arg, int out)
{
	char *const *argv = arg;

	dup2(out, STDOUT_FILENO);
	execvp(argv[0], argv);
	return 127;
}

int info_child_exec(const char *const argv[], unsigned seconds, struct info_child *child)
{
	return info_child_run(info_child_program, (void *)(uintptr_t)argv, seconds, child);
}

void info_child_fini(struct info_child *child)
{
	INFO_FREE(child->out);
	INFO_FREE(child->log);
}
