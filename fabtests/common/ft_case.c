/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs the cases of a program, each in new processes, and reports each result.
 *
 * On one host the runner forks all processes of a case and connects each two of them by a pair of
 * sockets. With -l and a server's name there is one process on each of two hosts, joined by a TCP
 * connection that is opened anew for each case, so that data left by a failed case is gone. Cases
 * that kill, or need three processes, are "notrun" then.
 *
 * The verdict of a case: every process must end with 0, or all that did not with FT_EXIT_NOTRUN;
 * victims may end in any way. A process that takes longer than the limit is killed and has failed.
 */
#include "ft.h"
#include "ft_proc.h"
#include "ft_talk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum result { PASS, FAIL, NOTRUN, RESULTS };

static const char *const result_names[RESULTS] = { "Pass", "Fail", "Notrun" };

struct runner {
	const struct ft_opts *opts;
	const char *program;
	struct ft_shared *shared;
	int listener; /* listening socket with -l; else -1 */
	int cnt[RESULTS];
	int chosen; /* cases */
};

/* ---- processes ---- */

/* Opens the sockets: a uses socks[a][b] to talk to b. */
static void pairs_open(int socks[FT_PROCS_MAX][FT_PROCS_MAX], int procs)
{
	for (int a = 0; a < FT_PROCS_MAX; a++) {
		for (int b = 0; b < FT_PROCS_MAX; b++)
			socks[a][b] = -1;
	}
	for (int a = 0; a < procs; a++) {
		for (int b = 0; b < a; b++) {
			int pair[2];

			if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
				exit(EXIT_FAILURE);
			socks[a][b] = pair[0];
			socks[b][a] = pair[1];
		}
	}
}

/* Closes all sockets but those of `rank`; -1: all. */
static void pairs_close(int socks[FT_PROCS_MAX][FT_PROCS_MAX], int rank)
{
	for (int a = 0; a < FT_PROCS_MAX; a++) {
		for (int b = 0; b < FT_PROCS_MAX; b++) {
			if (a != rank && socks[a][b] >= 0)
				close(socks[a][b]);
		}
	}
}

static pid_t child_start(struct runner *r, const struct ft_case *test, int rank, int procs,
			 const int *socks)
{
	struct ft ft = { .opts = r->opts, .test = test, .rank = rank, .procs = procs };
	pid_t parent = getpid(), child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	ft.shared = r->shared;
	ft.started = ft_now();
	memcpy(ft.sock, socks, sizeof(ft.sock));
	ft_proc_begin(&ft);
	test->run(&ft);
	_exit(ft_proc_verdict());
}

/* Converts the end of one process to a result of the case. */
static enum result child_result(const struct ft_case *test, int rank, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
		return PASS;
	if (WIFEXITED(status) && WEXITSTATUS(status) == FT_EXIT_NOTRUN)
		return NOTRUN;
	if (test->victims & 1u << rank && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return PASS;
	if (WIFSIGNALED(status))
		fprintf(stderr, "  %s, rank %d: ended by signal %d\n", test->name, rank,
			WTERMSIG(status));
	return FAIL;
}

static int rank_of(struct ft_shared *shared, pid_t pid)
{
	for (int rank = 0; rank < FT_PROCS_MAX; rank++) {
		if (atomic_load(&shared->pid[rank]) == pid)
			return rank;
	}
	return -1;
}

static void kill_all(struct ft_shared *shared)
{
	for (int rank = 0; rank < FT_PROCS_MAX; rank++) {
		pid_t pid = atomic_load(&shared->pid[rank]);

		if (pid > 0 && !atomic_load(&shared->ended[rank]))
			kill(pid, SIGKILL);
	}
}

/*
 * Reaps `cnt` children. After one has failed the others get little time, because they wait for it.
 */
static enum result reap(struct runner *r, const struct ft_case *test, int cnt)
{
	double end = ft_now() + r->opts->limit;
	enum result result = PASS, one;
	bool killed = false;
	int status, rank;

	while (cnt) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid <= 0) {
			if (!killed && ft_now() > end) {
				if (result == PASS) {
					result = FAIL;
					fprintf(stderr, "  %s: not done after %.0f s\n", test->name,
						r->opts->limit);
				}
				killed = true;
				kill_all(r->shared);
			}
			usleep(500);
			continue;
		}
		rank = rank_of(r->shared, pid);
		if (rank < 0)
			continue;
		atomic_store(&r->shared->ended[rank], true);
		cnt--;
		one = killed ? result : child_result(test, rank, status);
		if (one != PASS && result != FAIL) {
			result = one;
			end = ft_now() + 2;
		}
	}
	return result;
}

static enum result run_here(struct runner *r, const struct ft_case *test)
{
	int socks[FT_PROCS_MAX][FT_PROCS_MAX], procs = test->procs ? test->procs : 2;

	memset(r->shared, 0, sizeof(*r->shared));
	pairs_open(socks, procs);
	for (int rank = 0; rank < procs; rank++) {
		pid_t pid = child_start(r, test, rank, procs, socks[rank]);

		if (pid < 0)
			exit(EXIT_FAILURE);
		atomic_store(&r->shared->pid[rank], pid);
	}
	pairs_close(socks, -1);
	return reap(r, test, procs);
}

/* Runs a case with one process on this host and one on the other. */
static enum result run_across(struct runner *r, const struct ft_case *test)
{
	int rank = r->opts->server ? 1 : 0, socks[FT_PROCS_MAX] = { -1, -1, -1, -1 };
	enum result mine;
	char theirs;

	if (test->local || (test->procs && test->procs != 2))
		return NOTRUN;
	socks[!rank] = rank ? ft_talk_connect(r->opts->server, r->opts->talk_port)
			    : ft_talk_accept(r->listener);
	if (socks[!rank] < 0) {
		fprintf(stderr, "  %s: no connection to the other host\n", test->name);
		return FAIL;
	}
	memset(r->shared, 0, sizeof(*r->shared));
	atomic_store(&r->shared->pid[rank], child_start(r, test, rank, 2, socks));
	mine = reap(r, test, 1);
	if (mine == FAIL)
		shutdown(socks[!rank], SHUT_RDWR);
	theirs = (char)mine;
	if (!ft_talk_verdict(socks[!rank], &theirs))
		theirs = FAIL;
	close(socks[!rank]);
	return mine == FAIL || theirs == FAIL ? FAIL : mine;
}

/* ---- reports ---- */

static void report(const struct runner *r, const struct ft_case *test, enum result result,
		   double took)
{
	char name[128];

	snprintf(name, sizeof(name), "%s -e %s: %s", r->program, r->opts->type_name, test->name);
	if (r->opts->json)
		printf("{\"program\": \"%s\", \"case\": \"%s\", \"provider\": \"%s\", "
		       "\"ep\": \"%s\", \"result\": \"%s\", \"seconds\": %.3f}\n",
		       r->program, test->name, r->opts->provider, r->opts->type_name,
		       result_names[result], took);
	else
		printf("%-68s %-6s %7.2f s\n", name, result_names[result], took);
	if (result == FAIL && !r->opts->json)
		printf("  the promise: %s\n  again: %s -p %s -e %s -k %s --seed %llu\n",
		       test->promise, r->program, r->opts->provider, r->opts->type_name, test->name,
		       (unsigned long long)r->opts->seed);
	fflush(stdout);
}

static void run_case(struct runner *r, const struct ft_case *test)
{
	double start = ft_now();
	enum result result =
		r->opts->server || r->opts->listen ? run_across(r, test) : run_here(r, test);

	r->cnt[result]++;
	report(r, test, result, ft_now() - start);
}

static void usage(FILE *out, const char *program, const char *about)
{
	fprintf(out, "usage: %s [option]... [server]\n%s\n" FT_USAGE, program, about);
}

/* Returns the exit status, which is another one if the output could not be written. */
static int written(const struct runner *r, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "%s: the output could not be written\n", r->program);
	return FT_EXIT_WRONG;
}

/*
 * Loads libfabric's providers before the first fork, since loading takes longer than most cases.
 * The requested provider does not exist, so that no provider opens anything.
 */
static void look_for_providers(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	if (!hints)
		return;
	hints->fabric_attr->prov_name = strdup("nobody");
	if (!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info))
		fi_freeinfo(info);
	fi_freeinfo(hints);
}

static struct ft_shared *shared_map(void)
{
	void *shared = mmap(NULL, sizeof(struct ft_shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return shared == MAP_FAILED ? NULL : shared;
}

static bool is_chosen(const struct runner *r, const struct ft_case *test)
{
	return !r->opts->only || strstr(test->name, r->opts->only);
}

static void run_cases(struct runner *r, const struct ft_case *cases, size_t cnt, bool fresh)
{
	for (size_t i = 0; i < cnt; i++) {
		if (cases[i].fresh != fresh || !is_chosen(r, &cases[i]))
			continue;
		r->chosen++;
		if (r->opts->list)
			printf("%-24s %s\n", cases[i].name, cases[i].promise);
		else
			run_case(r, &cases[i]);
	}
}

/* Reports a mistyped name of a case as a failure. */
static int no_case(const struct runner *r)
{
	fprintf(stderr, "%s: no case has '%s' in its name; --list tells their names\n", r->program,
		r->opts->only);
	return FT_EXIT_NOCASE;
}

/*
 * Lets an interrupt end the process. A library that libfabric is linked with (PSM's) has a handler
 * that calls exit(3), which waits for a lock of libfabric that the interrupted function may hold.
 */
static void restore_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM };
	struct sigaction action;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
			signal(numbers[i], SIG_DFL);
}

int ft_main(int argc, char **argv, const char *about, const struct ft_case *cases, size_t cnt)
{
	struct ft_opts opts;
	const char *name = strrchr(argv[0], '/');
	struct runner r = { .opts = &opts, .program = name ? name + 1 : argv[0], .listener = -1 };

	restore_signals();
	ft_opts_init(&opts);
	if (ft_opts_parse(&opts, argc, argv)) {
		usage(stderr, r.program, about);
		return FT_EXIT_WRONG;
	}
	if (opts.help) {
		usage(stdout, r.program, about);
		return written(&r, EXIT_SUCCESS);
	}
	r.shared = shared_map();
	if (opts.listen)
		r.listener = ft_talk_listen(opts.talk_port);
	if (!r.shared || (opts.listen && r.listener < 0)) {
		perror(r.program);
		return EXIT_FAILURE;
	}
	run_cases(&r, cases, cnt, true);
	if (!opts.list)
		look_for_providers();
	run_cases(&r, cases, cnt, false);
	if (!r.chosen)
		return no_case(&r);
	if (r.cnt[FAIL])
		return written(&r, EXIT_FAILURE);
	return written(&r, r.cnt[PASS] || !r.cnt[NOTRUN] ? EXIT_SUCCESS : FT_EXIT_NOTRUN);
}
