/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Framework of this suite.
 *
 * A program is a table of cases (struct ft_case). Each case states in one sentence a promise of a
 * libfabric man page, and has a function that a number of processes run at the same time. Every
 * case has new processes: one that crashes or hangs is found, named, and ends nothing but itself.
 *
 * 	int main(int argc, char **argv)
 * 	{
 * 		return ft_main(argc, argv, "What is sent arrives.", cases, FT_CNT(cases));
 * 	}
 *
 * Inside a case FT_CHECK, FT_OK and FT_RET end the process with a line that states where and why.
 * ft_notrun() ends a case whose feature the provider does not offer. The processes of a case
 * exchange data through ft_sync() and ft_swap(), outside the fabric.
 *
 * The suite knows libfabric only: it judges any provider (-p), and is written from the man pages,
 * not from a provider.
 */
#ifndef FT_H
#define FT_H

#include "ft_opts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FT_PROCS_MAX   4
#define FT_EXIT_WRONG  2  /* wrong usage, or the output could not be written */
#define FT_EXIT_NOTRUN 61 /* FI_ENODATA, as in upstream's programs */
#define FT_EXIT_NOCASE 3  /* -k: no case has such a name */
#define FT_CNT(array)  (sizeof(array) / sizeof(*(array)))

struct ft_fab;
struct ft_shared;

/** One process of a running case. */
struct ft {
	const struct ft_opts *opts;
	const struct ft_case *test;
	int rank, procs;
	int sock[FT_PROCS_MAX]; /* sockets to the other ranks; -1: none */
	struct ft_shared *shared;
	double started;
	struct ft_fab *fab;  /* fabric that makes progress while this process waits; NULL: none */
	unsigned idle_turns; /* turns of a waiting loop in a row that found nothing */
};

struct ft_case {
	const char *name;
	const char *promise; /* statement of the man page in plain words */
	void (*run)(struct ft *ft);
	int procs;        /* 0: two */
	unsigned victims; /* bit n: rank n is killed, or ends, in the course of the case */
	bool fresh;       /* True if the case sets parameters: it runs before libfabric is loaded */
	/*
	 * True if the case needs the other processes on this host, because it kills or stops them
	 */
	bool local;
	int arg; /* for a function that several cases share */
};

/** A row: name, function, promise, then further fields by name. */
#define FT_CASE(title, function, sentence, ...)                                                    \
	{                                                                                          \
		.name = (title), .promise = (sentence), .run = (function), ##__VA_ARGS__           \
	}

int ft_main(int argc, char **argv, const char *about, const struct ft_case *cases, size_t cnt);

/* ---- in a case ---- */

/** Waits until all processes of the case have called it. Makes progress meanwhile. */
void ft_sync(struct ft *ft);
/** Sends a block to `rank` and receives one of the same length. Makes progress meanwhile. */
void ft_swap(struct ft *ft, int rank, const void *mine, void *theirs, size_t len);
/** Sends a block to `rank`. */
void ft_tell(struct ft *ft, int rank, const void *data, size_t len);
void ft_hear(struct ft *ft, int rank, void *data, size_t len);

/** Sends SIGKILL, SIGSTOP or SIGCONT to another process of a local case. */
void ft_signal(struct ft *ft, int rank, int sig);
/** Waits until `rank`, a victim, has ended. */
void ft_await_death(struct ft *ft, int rank);
/** Ends this process well, without any clean-up. */
_Noreturn void ft_leave(struct ft *ft);

double ft_now(void); /* Returns a clock in seconds. */
/** Waits a moment, or a number of seconds, with progress. */
void ft_pause(struct ft *ft, double seconds);
/**
 * Counts a turn of a loop that waits, and whether it found something. After many turns in a row
 * that found nothing each sleeps a little: the processor is of more use to the process that is
 * waited for.
 */
void ft_turn(struct ft *ft, bool found);

_Noreturn void ft_notrun(const char *why, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void ft_fail(const char *file, int line, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/**
 * Reports a fault and continues: the case fails when it ends. For tables, whose rows are
 * independent.
 */
void ft_complain(const char *file, int line, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/** Returns FI_SUCCESS, FI_EAGAIN, ... for a negative or positive error. */
const char *ft_err_name(long err);

/** Ends the case unless `cond` holds; prints `...`, a format and its values. */
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

/** Reports the call unless it returns exactly `want`, and continues. */
#define FT_ROW(call, want)                                                                         \
	do {                                                                                       \
		long ft_got = (long)(call), ft_want = (long)(want);                                \
		if (ft_got != ft_want)                                                             \
			ft_complain(__FILE__, __LINE__, "%s: %ld (%s), expected %ld (%s)", #call,  \
				    ft_got, ft_err_name(ft_got), ft_want, ft_err_name(ft_want));   \
	} while (0)

/** Reports the call unless it fails with any error but "again": the page names no error. */
#define FT_REFUSED(call)                                                                           \
	do {                                                                                       \
		long ft_got = (long)(call);                                                        \
		if (ft_got >= 0 || ft_got == -FI_EAGAIN)                                           \
			ft_complain(__FILE__, __LINE__, "%s: %ld (%s), expected a refusal", #call, \
				    ft_got, ft_err_name(ft_got));                                  \
	} while (0)

#endif
