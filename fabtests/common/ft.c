/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Services for a process of a case: exchange with the other processes outside the fabric, waiting,
 * and the verdict. A waiting process makes progress (ft->fab), as an application that waits for its
 * peers does.
 */
#include "ft.h"
#include "ft_fab.h"
#include "ft_proc.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FT_IDLE_TURNS 2000u /* of ft_turn(): a millisecond or so */

static struct ft *ft_self; /* for the verdicts */
static bool ft_complained;

void ft_proc_begin(struct ft *ft)
{
	ft_self = ft;
}

int ft_proc_verdict(void)
{
	return ft_complained ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- verdicts ---- */

const char *ft_err_name(long err)
{
	static const char *const names[] = {
		[0] = "FI_SUCCESS",        [FI_EPERM] = "FI_EPERM",   [FI_ENOENT] = "FI_ENOENT",
		[FI_EIO] = "FI_EIO",       [FI_EAGAIN] = "FI_EAGAIN", [FI_ENOMEM] = "FI_ENOMEM",
		[FI_EACCES] = "FI_EACCES", [FI_EBUSY] = "FI_EBUSY",   [FI_EINVAL] = "FI_EINVAL",
		[FI_ENOSYS] = "FI_ENOSYS", [FI_ENOMSG] = "FI_ENOMSG", [FI_ENODATA] = "FI_ENODATA",
	};
	size_t code = (size_t)labs(err);

	if (code < FT_CNT(names) && names[code])
		return names[code];
	return fi_strerror((int)code);
}

static void say(const char *file, int line, const char *why, va_list args)
{
	char text[512];
	const char *name = strrchr(file, '/');

	vsnprintf(text, sizeof(text), why, args);
	fprintf(stderr, "  %s, rank %d: %s:%d: %s\n", ft_self ? ft_self->test->name : "?",
		ft_self ? ft_self->rank : 0, name ? name + 1 : file, line, text);
}

void ft_fail(const char *file, int line, const char *why, ...)
{
	va_list args;

	va_start(args, why);
	say(file, line, why, args);
	va_end(args);
	_exit(EXIT_FAILURE);
}

void ft_complain(const char *file, int line, const char *why, ...)
{
	va_list args;

	va_start(args, why);
	say(file, line, why, args);
	va_end(args);
	ft_complained = true;
}

void ft_notrun(const char *why, ...)
{
	va_list args;

	if (ft_self && ft_self->opts->verbose) {
		va_start(args, why);
		say("notrun", ft_self->rank, why, args);
		va_end(args);
	}
	_exit(ft_complained ? EXIT_FAILURE : FT_EXIT_NOTRUN);
}

void ft_leave(struct ft *ft)
{
	_exit(ft_proc_verdict());
}

/* ---- waiting ---- */

double ft_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void ft_turn(struct ft *ft, bool found)
{
	if (found)
		ft->idle_turns = 0;
	else if (ft->idle_turns < FT_IDLE_TURNS)
		ft->idle_turns++;
	else
		usleep(50);
}

static void progress(struct ft *ft)
{
	if (ft->fab)
		ft_fab_progress(ft->fab);
	else
		usleep(1000);
	ft_turn(ft, false);
}

void ft_pause(struct ft *ft, double seconds)
{
	double end = ft_now() + seconds;
	unsigned turns = (unsigned)(seconds * 2000);

	/*
	 * Counts turns as well: if the machine stood still meanwhile, no process has come any
	 * further.
	 */
	for (unsigned i = 0; i < turns || ft_now() < end; i++) {
		progress(ft);
		if (i < turns)
			usleep(100);
	}
}

/* ---- talking ---- */

void ft_tell(struct ft *ft, int rank, const void *data, size_t len)
{
	const char *next = data;

	while (len) {
		ssize_t done = send(ft->sock[rank], next, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (done < 0 && errno != EAGAIN && errno != EINTR)
			ft_fail(__FILE__, __LINE__, "rank %d is gone", rank);
		if (done < 0) {
			progress(ft);
			continue;
		}
		ft_turn(ft, true);
		next += done;
		len -= (size_t)done;
	}
}

void ft_hear(struct ft *ft, int rank, void *data, size_t len)
{
	char *next = data;

	while (len) {
		ssize_t done = recv(ft->sock[rank], next, len, MSG_DONTWAIT);

		if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR))
			ft_fail(__FILE__, __LINE__, "rank %d is gone", rank);
		if (done < 0) {
			progress(ft);
			continue;
		}
		ft_turn(ft, true);
		next += done;
		len -= (size_t)done;
	}
}

void ft_swap(struct ft *ft, int rank, const void *mine, void *theirs, size_t len)
{
	if (rank == ft->rank) {
		memcpy(theirs, mine, len);
		return;
	}
	ft_tell(ft, rank, mine, len);
	ft_hear(ft, rank, theirs, len);
}

void ft_sync(struct ft *ft)
{
	char byte = 's';

	for (int rank = 0; rank < ft->procs; rank++) {
		if (rank != ft->rank && !ft_proc_is_gone(ft, rank))
			ft_tell(ft, rank, &byte, 1);
	}
	for (int rank = 0; rank < ft->procs; rank++) {
		if (rank == ft->rank || ft_proc_is_gone(ft, rank))
			continue;
		ft_hear(ft, rank, &byte, 1);
		FT_CHECK(byte == 's', "rank %d is elsewhere in this case", rank);
	}
}

/* ---- other processes ---- */

void ft_signal(struct ft *ft, int rank, int sig)
{
	if (sig == SIGKILL)
		ft_proc_mark_gone(ft, rank);
	FT_OK(kill(ft_proc_pid(ft, rank), sig));
}

void ft_await_death(struct ft *ft, int rank)
{
	double end = ft_now() + 100;

	ft_proc_mark_gone(ft, rank);
	while (!ft_proc_has_ended(ft, rank)) {
		FT_CHECK(ft_now() < end, "rank %d does not end", rank);
		progress(ft);
	}
}
