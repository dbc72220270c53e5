/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two processes with a socket between them: see dev_pair.h. */
#include "dev_pair.h"

#include <poll.h>
#include <rdma/fabric.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/param.h"

int side;
static int sock;

uint64_t pair_rand(void)
{
	static uint64_t rnd;

	if (!rnd)
		rnd = 0x9e3779b97f4a7c15ull + (unsigned)side;
	rnd ^= rnd >> 12;
	rnd ^= rnd << 25;
	rnd ^= rnd >> 27;
	return rnd * 0x2545f4914f6cdd1dull;
}

uint8_t pair_pattern(uint32_t seq, uint64_t i)
{
	return (uint8_t)(seq * 31 + i * 7 + (i >> 8) + 1);
}

void pair_tell(const void *bytes, size_t len)
{
	CHECK(write(sock, bytes, len) == (ssize_t)len);
}

void pair_hear(void *bytes, size_t len)
{
	CHECK(recv(sock, bytes, len, MSG_WAITALL) == (ssize_t)len);
}

bool pair_has_arrival(void)
{
	struct pollfd pfd = { .fd = sock, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

void pair_meet(void)
{
	char c = 'x';

	pair_tell(&c, 1);
	pair_hear(&c, 1);
}

/* libfabric reads FI_LOG_LEVEL in the first fi_getinfo only. */
static void pair_start_log(void)
{
	struct fi_info *info = NULL;

	if (!getenv("FI_LOG_LEVEL"))
		return;
	setenv("FI_PROVIDER", "none", 1);
	fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, NULL, &info);
	fi_freeinfo(info);
}

static pid_t pair_spawn(char **argv, int number, int fd, int other)
{
	char text[32];
	pid_t pid = fork();

	if (pid)
		return pid;
	close(other);
	snprintf(text, sizeof(text), "%d:%d", number, fd);
	setenv("DEV_LINK_SIDE", text, 1);
	snprintf(text, sizeof(text), "%d", number);
	setenv("COPYRPC_HCA_NODE", text, 1);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static int pair_both(char **argv, bool killed)
{
	int fds[2], status[2], i;
	pid_t pid[2];
	bool ok;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 1;
	for (i = 0; i < 2; i++)
		pid[i] = pair_spawn(argv, i, fds[i], fds[!i]);
	close(fds[0]);
	close(fds[1]);
	for (i = 0; i < 2; i++)
		waitpid(pid[i], &status[i], 0);
	ok = killed ? WIFSIGNALED(status[1]) && WTERMSIG(status[1]) == SIGKILL : !status[1];
	if (ok && !status[0])
		return 0;
	fprintf(stderr, "ended with %#x and %#x\n", (unsigned)status[0], (unsigned)status[1]);
	return 1;
}

int pair_run(char **argv, void (*play)(void), bool killed)
{
	const char *text = getenv("DEV_LINK_SIDE");

	if (!text)
		return pair_both(argv, killed);
	if (sscanf(text, "%d:%d", &side, &sock) != 2)
		return 2;
	util_params.device = getenv(side ? "DEV_LINK_DEVICE1" : "DEV_LINK_DEVICE0");
	pair_start_log();
	play();
	return 0;
}
