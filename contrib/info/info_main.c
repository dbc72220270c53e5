/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copyrpc_info(1): options, the order of the probes, exit status. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "info/info.h"
#include "info/info_peer.h"
#include "info/info_plan.h"
#include "info/info_print.h"
#include "info/info_probes.h"

#define FAILED_STATUS 3 /* wrong usage, or no report */
#define RANKS_MAX     1000000u

struct options {
	bool json, quiet;
	const char *only;         /* topics to print; NULL: all */
	uint64_t ranks, per_node; /* 0: no plan */
	const char *probe;        /* host to try; NULL: none */
	const char *port;         /* of --probe and --listen; NULL: INFO_PEER_PORT */
	bool listen;
};

static const char usage_text[] =
	"usage: copyrpc_info [--only TOPIC,...] [--json | --quiet]\n"
	"       copyrpc_info --plan N[:PER_NODE] [--json | --quiet]\n"
	"       copyrpc_info --listen [--port PORT]\n"
	"       copyrpc_info --probe HOST [--port PORT] [--json | --quiet]\n"
	"\n"
	"Tells what libfabric and Open MPI of this machine do with copyrpc, and what to "
	"change.\n"
	"\n"
	"  -q, --quiet   print what is slow or broken only\n"
	"  -j, --json    print JSON\n"
	"  --only LIST   look at these topics only, a list with commas: openmpi, libfabric, "
	"offer,\n"
	"                trial, settings, rdma, network, memory, limits, container, processor\n"
	"  --plan N[:M]  what a job of N ranks needs, M on each node (default: all on one)\n"
	"  --listen      wait for --probe from other hosts, until it is interrupted\n"
	"  --probe HOST  try each path to HOST, on which copyrpc_info --listen runs\n"
	"  --port PORT   TCP port of --listen and --probe (" INFO_PEER_PORT ")\n"
	"  --version     print the version\n"
	"  -h, --help    this text\n"
	"\n"
	"Exit status: 0 all is good, 1 something is slow, 2 something is broken, 3 wrong usage,\n"
	"or the output could not be written.\n";

static const struct option options_table[] = {
	{ "json", no_argument, NULL, 'j' },       { "quiet", no_argument, NULL, 'q' },
	{ "plan", required_argument, NULL, 'P' }, { "probe", required_argument, NULL, 'p' },
	{ "port", required_argument, NULL, 'o' }, { "listen", no_argument, NULL, 'l' },
	{ "only", required_argument, NULL, 'O' }, { "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },       { NULL, 0, NULL, 0 },
};

/* Returns the exit status, which is another one if the output could not be written. */
static int written(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "copyrpc_info: the output could not be written\n");
	return FAILED_STATUS;
}

static void usage(const char *why)
{
	if (why)
		fprintf(stderr, "copyrpc_info: %s\n", why);
	fputs(usage_text, why ? stderr : stdout);
	exit(why ? FAILED_STATUS : written(0));
}

/* Reads a number from 1 to RANKS_MAX up to the character `end` or the end of the text. */
static uint64_t options_number(const char **text, char end)
{
	char *at;
	unsigned long n = strtoul(*text, &at, 10);

	if (**text < '0' || **text > '9' || (*at && *at != end) || !n || n > RANKS_MAX)
		usage("--plan needs a number of ranks, as in --plan 256 or --plan 256:32");
	*text = at;
	return n;
}

static void options_plan(struct options *options, const char *text)
{
	options->ranks = options_number(&text, ':');
	options->per_node = options->ranks;
	if (*text == ':') {
		text++;
		options->per_node = options_number(&text, '\0');
	}
}

/** Returns the text if it is a port. libc takes a number above 65535 modulo 65536. */
static const char *options_port(const char *text)
{
	if (!*text || strspn(text, "0123456789") != strlen(text) || strtoul(text, NULL, 10) > 65535)
		usage("--port needs a number up to 65535, as in --port 47474");
	return text;
}

/** A probe, its topic, and the topics whose probes need its facts. */
struct probe {
	const char *topic;
	void (*run)(struct info *info);
	const char *needed_by;
};

static const struct probe probes[] = {
	{ "openmpi", info_probe_openmpi, "libfabric" },
	{ "libfabric", info_probe_fabric, "offer,trial,rdma,limits" },
	{ "offer", info_probe_offer, "trial,rdma,limits" },
	{ "trial", info_probe_trial, "" },
	{ "settings", info_probe_param, "" },
	{ "rdma", info_probe_rdma, "limits" },
	{ "network", info_probe_net, "" },
	{ "memory", info_probe_memory, "" },
	{ "limits", info_probe_limits, "" },
	{ "container", info_probe_container, "" },
	{ "processor", info_probe_cpu, "" },
};

#define PROBES (sizeof(probes) / sizeof(probes[0]))

/* Returns the index of a topic of `length` letters. */
static size_t probe_find(const char *topic, size_t len)
{
	size_t i = 0;

	while (i < PROBES &&
	       (strlen(probes[i].topic) != len || memcmp(probes[i].topic, topic, len)))
		i++;
	if (i == PROBES)
		usage("--only: there is no such topic");
	return i;
}

/* Calls for each topic of the list. */
#define PROBES_EACH(list, at, len)                                                                 \
	for (const char *at = (list); (len = strcspn(at, ",")) || *at; at += len + (at[len] == ','))

static bool probe_is_in(const char *list, size_t index)
{
	size_t len;

	PROBES_EACH(list, at, len)
	if (probe_find(at, len) == index)
		return true;
	return false;
}

/* Ends with the reason if options exclude each other: one without effect would pass unnoticed. */
static void options_check(const struct options *options)
{
	if ((options->ranks != 0) + (options->probe != NULL) + options->listen > 1)
		usage("only one of --plan, --probe and --listen");
	if (options->port && !options->probe && !options->listen)
		usage("--port is for --probe and --listen");
	if (options->only && (options->ranks || options->probe || options->listen))
		usage("--only is for the report, not for --plan, --probe or --listen");
	if (options->json && options->quiet)
		usage("only one of --json and --quiet");
	if ((options->json || options->quiet) && options->listen)
		usage("--json and --quiet are not for --listen");
}

static void options_read(struct options *options, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "jqh", options_table, NULL)) != -1)
		switch (option) {
		case 'j': options->json = true; break;
		case 'q': options->quiet = true; break;
		case 'p': options->probe = optarg; break;
		case 'o': options->port = options_port(optarg); break;
		case 'l': options->listen = true; break;
		case 'O': options->only = optarg; break;
		case 'P': options_plan(options, optarg); break;
		case 'h': usage(NULL); break;
		case 'V': puts("copyrpc_info " PACKAGE_VERSION); exit(written(0));
		default: usage("wrong option");
		}
	if (optind < argc)
		usage("an argument is too many");
	options_check(options);
	if (options->only) {
		probe_find(options->only, strcspn(options->only, ",")); /* there is one at least */
		probe_is_in(options->only, PROBES);                     /* checks the others */
	}
}

/* Returns whether a topic of the list needs the facts of a probe. */
static bool probe_is_needed(const char *list, size_t index)
{
	size_t len;

	PROBES_EACH(list, at, len)
	if (probe_is_in(probes[index].needed_by, probe_find(at, len)))
		return true;
	return false;
}

/* Runs what the topics need. Findings of other probes are dropped. */
static void run_probes(struct info *info, const char *only)
{
	for (size_t i = 0; i < PROBES; i++) {
		size_t cnt = info->report.cnt;

		if (only && !probe_is_in(only, i) && !probe_is_needed(only, i))
			continue;
		probes[i].run(info);
		if (only && !probe_is_in(only, i))
			info_drop(&info->report, cnt);
	}
}

static void print_title(void)
{
	struct utsname name;

	uname(&name);
	printf("copyrpc_info %s on %s, Linux %s\n\n", PACKAGE_VERSION, name.nodename, name.release);
}

static void print_plan(const struct info_plan *plan)
{
	for (size_t i = 0; i < info_plan_row_cnt; i++) {
		const struct info_plan_row *row = &info_plan_rows[i];
		uint64_t value = info_plan_value(plan, row);

		if (*row->unit && value >= (uint64_t)10 << 20)
			printf("%-46s %8" PRIu64 " MiB\n", row->label, value >> 20);
		else if (*row->unit)
			printf("%-46s %8" PRIu64 " KiB\n", row->label, (value + 1023) >> 10);
		else
			printf("%-46s %8" PRIu64 "\n", row->label, value);
	}
	putchar('\n');
}

static void make_plan(struct info *info, const struct options *options, struct info_plan *plan)
{
	struct info facts = { .root = "" };
	struct info_plan_settings settings;

	info_probe_offer(&facts);
	info_probe_rdma(&facts);
	info_plan_read(&settings, facts.nic[0], facts.has_dc);
	info_report_fini(&facts.report);
	info_plan_make(options->ranks, options->per_node, &settings, plan);
	info_plan_judge(plan, &settings, &info->report);
}

int main(int argc, char **argv)
{
	struct options options = { .port = NULL };
	struct info info = { .root = "" };
	enum info_verdict verdict;
	struct info_plan plan;

	options_read(&options, argc, argv);
	if (!options.port)
		options.port = INFO_PEER_PORT;
	if (options.listen)
		return info_peer_listen(options.port);
	if (options.ranks)
		make_plan(&info, &options, &plan);
	else if (options.probe)
		info_peer_probe(&info.report, options.probe, options.port);
	else
		run_probes(&info, options.only);
	if (options.json) {
		info_json_print(stdout, &info.report, options.ranks ? &plan : NULL);
	} else {
		if (!options.quiet)
			print_title();
		if (options.ranks && !options.quiet)
			print_plan(&plan);
		info_text_print(stdout, &info.report, options.quiet);
	}
	verdict = info_report_verdict(&info.report);
	info_report_fini(&info.report);
	free(info.mpi_provider);
	return written(verdict == INFO_BROKEN ? 2 : verdict == INFO_SLOW ? 1 : 0);
}
