/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copyrpc_top: what the processes of this host carry over copyrpc. See copyrpc_top(1). */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stats/stats_print.h"
#include "top/top_live.h"
#include "top/top_pages.h"
#include "top/top_prometheus.h"
#include "top/top_waits.h"
#include "util/proc.h"

static void top_print_once(const struct top_pages *pages)
{
	for (size_t i = 0; i < pages->cnt; i++)
		stats_print_text(stdout, &pages->views[i]);
}

static void top_print_json(const struct top_pages *pages)
{
	printf("[");
	for (size_t i = 0; i < pages->cnt; i++) {
		printf("%s", i ? ",\n" : "");
		stats_print_json(stdout, &pages->views[i]);
	}
	printf("]\n");
}

static void top_print_events(const struct top_pages *pages)
{
	for (size_t i = 0; i < pages->cnt; i++)
		stats_print_events(stdout, &pages->views[i]);
}

static void top_print_waits(const struct top_pages *pages)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	top_waits_print(stdout, pages, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
			util_proc_state);
}

/** Returns what is wrong with the process or file of --events and --of, or else with /proc. */
static const char *top_error(const char *name, int err)
{
	switch (err) {
	case ENOENT: return name ? strerror(err) : "not mounted";
	case EINVAL:
		return "neither a statistics page of this version, nor is one beside it (.events)";
	case ESRCH: return "no such process of yours has a statistics page";
	default: return strerror(err);
	}
}

/** Returns the exit status, 1 with a message if the output could not be written. */
static int top_written(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "copyrpc_top: the output could not be written\n");
	return 1;
}

/** Prints all processes, or the one that `name` names. */
static int top_print(void (*print)(const struct top_pages *pages), const char *name)
{
	struct top_pages pages;
	int ret = name ? top_pages_find(&pages, name) : top_pages_read(&pages);

	if (!ret)
		print(&pages);
	if (ret)
		fprintf(stderr, "copyrpc_top: %s: %s\n", name ? name : "/proc",
			top_error(name, -ret));
	if (!ret && !pages.cnt && print == top_print_once)
		fprintf(stderr, "copyrpc_top: no process of %s uses copyrpc\n",
			geteuid() ? "yours on this host" : "this host");
	if (pages.refused)
		fprintf(stderr, "copyrpc_top: %zu pages are of another version, or forged\n",
			pages.refused);
	top_pages_free(&pages);
	return top_written(ret ? 1 : 0);
}

/** Shows the live view, or prints once where there is no terminal or no ncurses. */
static int top_run(double seconds)
{
	int ret = -ENOTSUP;

	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		ret = top_live(seconds);
	if (ret == -ENOTSUP)
		return top_print(top_print_once, NULL);
	if (ret)
		fprintf(stderr, "copyrpc_top: %s (copyrpc_top --once needs no terminal)\n",
			ret == -ENOTTY ? "TERM is unset, or no terminal that ncurses knows"
				       : strerror(-ret));
	return ret ? 1 : 0;
}

/** Request that the options make. */
struct top_request {
	/** NULL: the live view. */
	void (*print)(const struct top_pages *pages);
	/** The option that asked for `print`. */
	const char *option;
	/** The process or file of --of or --events; NULL: all processes. */
	const char *name;
	/** The interval of the live view; 0: not given. */
	double seconds;
	/** Whether to print and end, which all output but the live view does. */
	bool once;
};

/** Takes an interval, in seconds. Returns false if the text is none. */
static bool top_take_seconds(struct top_request *request, const char *text)
{
	char *end;

	request->seconds = strtod(text, &end);
	return !*end && end != text && request->seconds >= 0.1 && request->seconds <= 3600;
}

/** Takes an option that says what to print. Returns false, with the reason, beside another. */
static bool top_take_print(struct top_request *request, const char *option,
			   void (*print)(const struct top_pages *pages))
{
	if (request->print && request->print != print) {
		fprintf(stderr, "copyrpc_top: %s and %s exclude each other\n", request->option,
			option);
		return false;
	}
	request->print = print;
	request->option = option;
	return true;
}

/** Takes a process or file. Returns false, with the reason, if there is one. */
static bool top_take_name(struct top_request *request, const char *name)
{
	if (request->name)
		fprintf(stderr, "copyrpc_top: more than one process or file: %s and %s\n",
			request->name, name);
	return !request->name && (request->name = name);
}

/** Completes a request. Returns false, with the reason, if options exclude each other. */
static bool top_complete(struct top_request *request)
{
	if (!request->print && (request->once || request->name)) {
		request->print = top_print_once;
		request->option = request->once ? "--once" : "--of";
	}
	if (request->print && request->seconds > 0) {
		fprintf(stderr, "copyrpc_top: --interval is for the live view, not for %s\n",
			request->option);
		return false;
	}
	if (request->name && request->print == top_print_waits) {
		fprintf(stderr, "copyrpc_top: --waits is about all processes, not one\n");
		return false;
	}
	return true;
}

static const char usage_text[] =
	"usage: copyrpc_top [--interval SECONDS]\n"
	"       copyrpc_top [--once] --waits\n"
	"       copyrpc_top [--once] [--json | --prometheus] [--of PID|FILE]\n"
	"       copyrpc_top [--once] --events PID|FILE\n"
	"       copyrpc_top --version | --help\n"
	"SECONDS: 0.1 to 3600\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "interval", required_argument, NULL, 'i' },
		{ "once", no_argument, NULL, 'o' },
		{ "json", no_argument, NULL, 'j' },
		{ "prometheus", no_argument, NULL, 'p' },
		{ "waits", no_argument, NULL, 'w' },
		{ "events", required_argument, NULL, 'e' },
		{ "of", required_argument, NULL, 'f' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct top_request request = { 0 };
	bool good = true;
	int opt;

	while (good && (opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'i': good = top_take_seconds(&request, optarg); break;
		case 'o': request.once = true; break;
		case 'j': good = top_take_print(&request, "--json", top_print_json); break;
		case 'p':
			good = top_take_print(&request, "--prometheus", top_prometheus_print);
			break;
		case 'w': good = top_take_print(&request, "--waits", top_print_waits); break;
		case 'e':
			good = top_take_print(&request, "--events", top_print_events) &&
			       top_take_name(&request, optarg);
			break;
		case 'f': good = top_take_name(&request, optarg); break;
		case 'V': puts("copyrpc_top " PACKAGE_VERSION); return top_written(0);
		case 'h': fputs(usage_text, stdout); return top_written(0);
		default: good = false;
		}
	}
	if (!good || optind != argc || !top_complete(&request)) {
		fputs(usage_text, stderr);
		return 2;
	}
	return request.print ? top_print(request.print, request.name)
			     : top_run(request.seconds > 0 ? request.seconds : 1);
}
