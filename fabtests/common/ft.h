/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is a test of this suite?
 *
 * A program is a table of cases (struct ft_case). Each case says in one sentence what a man page of
 * libfabric promises, and has a function that a number of processes run at the same time. Every
 * case has fresh processes: one that crashes or hangs is found, named, and ends nothing but itself.
 *
 *	int main(int argc, char **argv)
 *	{
 *		return ft_main(argc, argv, "What is sent arrives.", cases, FT_CNT(cases));
 *	}
 *
 * Inside a case FT_CHECK, FT_OK and FT_RET end the process with a line that says where and why; what
 * the provider does not offer ends it with ft_notrun(). The processes of a case talk to each other
 * through ft_sync() and ft_swap(), outside the fabric.
 *
 * The suite knows libfabric and nothing else: it judges any provider (-p), and it is written from
 * the man pages, not from a provider.
 */
#ifndef FT_H
#define FT_H

#include "ft_opts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FT_PROCS_MAX   4
#define FT_EXIT_NOTRUN 61 /* as upstream's programs: FI_ENODATA */
#define FT_EXIT_NOCASE 3  /* -k: no case has such a name */
#define FT_CNT(array)  (sizeof(array) / sizeof(*(array)))

struct ft_fab;
struct ft_shared;

/** One process of a case that runs. */
struct ft {
	const struct ft_opts *opts;
	const struct ft_case *test;
	int rank, procs;
	int sock[FT_PROCS_MAX]; /* to the other ranks; -1: none */
	struct ft_shared *shared;
	double started;
	struct ft_fab *fab; /* what makes progress while this process waits; NULL: nothing */
};

struct ft_case {
	const char *name;
	const char *promise; /* what the man page says, in our words */
	void (*run)(struct ft *ft);
	int procs;        /* 0: two */
	unsigned victims; /* bit n: rank n is killed, or ends, in the course of the case */
	bool fresh;       /* sets parameters: it runs before libfabric is loaded */
	bool local;       /* needs the other processes on this host: it kills them or stops them */
	int arg;          /* for a function that several cases share */
};

/** A row: name, function, promise, then further fields by name. */
#define FT_CASE(title, function, sentence, ...)                                                    \
	{                                                                                          \
		.name = (title), .promise = (sentence), .run = (function), ##__VA_ARGS__           \
	}

int ft_main(int argc, char **argv, const char *about, const struct ft_case *cases, size_t cnt);

/* ---- in a case ---- */

/** Until all processes of the case are here. Makes progress meanwhile. */
void ft_sync(struct ft *ft);
/** Gives `rank` a block and takes one of the same length. Makes progress meanwhile. */
void ft_swap(struct ft *ft, int rank, const void *mine, void *theirs, size_t len);
/** One way. */
void ft_tell(struct ft *ft, int rank, const void *data, size_t len);
void ft_hear(struct ft *ft, int rank, void *data, size_t len);

/** SIGKILL, SIGSTOP, SIGCONT for another process of a local case. */
void ft_signal(struct ft *ft, int rank, int sig);
/** Waits until `rank`, a victim, has ended. */
void ft_await_death(struct ft *ft, int rank);
/** This process is no longer wanted: ends well, without any clean-up. */
_Noreturn void ft_leave(struct ft *ft);

double ft_now(void); /* seconds */
/** A moment, or a number of them, with progress. */
void ft_pause(struct ft *ft, double seconds);

_Noreturn void ft_notrun(const char *why, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void ft_fail(const char *file, int line, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/** Says it and goes on: the case fails when it ends. For tables, whose rows are independent. */
void ft_complain(const char *file, int line, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/** FI_SUCCESS, FI_EAGAIN, ... for a negative or positive error. */
const char *ft_err_name(long err);

/** Ends the case unless `cond` holds; says `...`, a format and its values. */
#define FT_CHECK(cond, ...)                                                                        \
	do {                                                                                       \
		if (!(cond))                                                                       \
			ft_fail(__FILE__, __LINE__, __VA_ARGS__);                                  \
	} while (0)

/** Ends the case unless the call returns exactly `want`. */
#define FT_RET(call, want)                                                                         \
	do {                                                                                       \
		long ft_got = (long)(call), ft_want = (long)(want);                                \
		if (ft_got != ft_want)                                                             \
			ft_fail(__FILE__, __LINE__, "%s: %ld (%s), expected %ld (%s)", #call,      \
				ft_got, ft_err_name(ft_got), ft_want, ft_err_name(ft_want));       \
	} while (0)

#define FT_OK(call) FT_RET(call, 0)

/** As FT_RET, but goes on. */
#define FT_ROW(call, want)                                                                         \
	do {                                                                                       \
		long ft_got = (long)(call), ft_want = (long)(want);                                \
		if (ft_got != ft_want)                                                             \
			ft_complain(__FILE__, __LINE__, "%s: %ld (%s), expected %ld (%s)", #call,  \
				    ft_got, ft_err_name(ft_got), ft_want, ft_err_name(ft_want));   \
	} while (0)

/** The call must be refused, the page does not say with which error: negative, and not "again". */
#define FT_REFUSED(call)                                                                           \
	do {                                                                                       \
		long ft_got = (long)(call);                                                        \
		if (ft_got >= 0 || ft_got == -FI_EAGAIN)                                           \
			ft_complain(__FILE__, __LINE__, "%s: %ld (%s), expected a refusal", #call, \
				    ft_got, ft_err_name(ft_got));                                  \
	} while (0)

#endif
