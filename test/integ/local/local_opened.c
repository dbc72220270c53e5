/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A server that is killed at any system call of crl_server_open leaves nothing that keeps others
 * from its path, but its socket, which the next server of its user removes.
 *
 * The victim is traced and runs to a system call, one further each time, until it gets through.
 * Every user may write in the directory, and the next server of the path is another user's, unless
 * the victim's socket is there. A second round begins with the socket of a crashed server.
 *
 * usage: local_opened     (as root and with ptrace; exits with 77 otherwise)
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integ_local.h"

#define VICTIM 65533
#define OTHER  65534

static char dir[] = "/tmp/local-opened-XXXXXX", path[64];

static void become(uid_t uid)
{
	CHECK(!setgroups(0, NULL) && !setgid(uid) && !setuid(uid));
}

/* Opens a server. Returns 0 or a negative errno. close: or leaves its socket, like a crash. */
static int serve(bool close)
{
	struct crl_server *server;
	int ret = crl_server_open(&server, CRL_IPC, path, NULL);

	if (!ret && close)
		crl_server_close(server);
	return ret;
}

/* Runs `serve` in a process of that user. */
static void expect_served(uid_t uid, bool close)
{
	int status;
	pid_t pid = local_fork();

	if (!pid) {
		become(uid);
		_exit(-serve(close));
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status)
		fprintf(stderr, "user %u: %s\n", (unsigned int)uid, strerror(WEXITSTATUS(status)));
	CHECK(!status);
}

/* Counts the files in the directory. */
static uint32_t files(void)
{
	DIR *all = opendir(dir);
	struct dirent *file;
	uint32_t cnt = 0;

	CHECK(all);
	while ((file = readdir(all)))
		cnt += file->d_name[0] != '.';
	closedir(all);
	return cnt;
}

static pid_t begin_victim(void)
{
	int status;
	pid_t pid = local_fork();

	if (!pid) {
		become(VICTIM);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		_exit(-serve(false));
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		exit(77);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	return pid;
}

/* Kills a victim at the begin or the end of a system call. Returns false if it had ended. */
static bool kill_at(uint32_t call)
{
	pid_t pid = begin_victim();
	int status = 0;

	for (uint32_t i = 0; i < call; i++) {
		CHECK(!ptrace(PTRACE_SYSCALL, pid, NULL, NULL));
		CHECK(waitpid(pid, &status, 0) == pid);
		if (!WIFSTOPPED(status)) {
			CHECK(!status);
			return false;
		}
	}
	kill(pid, SIGKILL);
	do {
		CHECK(waitpid(pid, &status, 0) == pid);
	} while (WIFSTOPPED(status));
	return true;
}

/* crashed: every victim finds the socket of a server that was killed. Returns the victims. */
static uint32_t check(bool crashed)
{
	uint32_t victims = 0;
	bool alive = true;
	struct stat st;

	while (alive) {
		if (crashed)
			expect_served(VICTIM, false);
		alive = kill_at(victims++);
		if (!lstat(path, &st)) {
			CHECK(S_ISSOCK(st.st_mode) && files() == 1);
			expect_served(VICTIM, true);
		}
		expect_served(OTHER, true);
		CHECK(!files());
	}
	return victims;
}

int main(void)
{
	uint32_t free_path, crashed;

	if (geteuid()) {
		puts("needs root");
		return 77;
	}
	CHECK(mkdtemp(dir) && !chmod(dir, 01777));
	snprintf(path, sizeof(path), "%s/name", dir);
	free_path = check(false);
	crashed = check(true);
	CHECK(!rmdir(dir));
	printf("%u and %u servers killed while they opened\n", free_path - 1, crashed - 1);
	return 0;
}
