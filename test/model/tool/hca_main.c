/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Launcher of the modelled mlx5 adapter: runs a command under the model, prints its counters,
 * removes its files.
 *
 * Options become environment variables (COPYRPC_HCA_*), which the library reads in every process
 * that the command starts. The library goes into LD_PRELOAD. It is found beside this program in a
 * build tree, and in the directory of installed libraries otherwise.
 */
#include "model/tool/hca_tool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_WANTED "at most 47 letters, digits, dots, dashes and underscores"

static const char usage[] =
	"usage: copyrpc_hca run [option...] [--] COMMAND [argument...]\n"
	"       copyrpc_hca stat [--segment NAME] [--qps]\n"
	"       copyrpc_hca reset [--segment NAME] [--force]\n"
	"\n"
	"Options of run:\n"
	"  --link ib|roce        link layer of the port (default ib)\n"
	"  --nodes N             nodes of the fabric (default 2)\n"
	"  --node K              the node that the command runs on, from 0 (default 0)\n"
	"  --devices N           adapters of each node, 1 or 2 (default 1)\n"
	"  --mode trap|poll      how doorbells are noticed (default trap)\n"
	"  --segment NAME        name of the fabric (default \"default\")\n"
	"  --seed N              of faults and delays (default 1)\n"
	"  --fault PLAN          faults to inject, see copyrpc_hca(1)\n"
	"  --stats[=lines]       print the counters of each process as it exits\n";

static int complain(const char *what, const char *which)
{
	fprintf(stderr, "copyrpc_hca: %s%s\n%s", what, which, usage);
	return 2;
}

/*
 * Places of the library: the build tree, an installed tree that was moved, the installation
 * directory.
 */
static bool find_library(char path[PATH_MAX])
{
	static const char *const dirs[] = { ".libs", "../lib/copyrpc", NULL };
	char self[PATH_MAX], wanted[2 * PATH_MAX], *slash;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[len < 0 ? 0 : len] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (int i = 0; slash && dirs[i]; i++) {
		snprintf(wanted, sizeof(wanted), "%s/%s/libcopyrpc_hca.so", self, dirs[i]);
		if (realpath(wanted, path))
			return true;
	}
	return realpath(HCA_LIBDIR "/libcopyrpc_hca.so", path) != NULL;
}

static int preload(void)
{
	const char *others = getenv("LD_PRELOAD");
	char path[PATH_MAX], *value;
	int rc;

	if (!find_library(path)) {
		fprintf(stderr,
			"copyrpc_hca: libcopyrpc_hca.so is neither in ../lib/copyrpc, as seen from "
			"this program, nor in " HCA_LIBDIR ": run 'make install' first\n");
		return -1;
	}
	if (strpbrk(path, " \t\n:")) {
		fprintf(stderr,
			"copyrpc_hca: %s has a space or a colon in its name, which separates names "
			"in LD_PRELOAD: install copyrpc into another directory\n",
			path);
		return -1;
	}
	if (others && strstr(others, "libcopyrpc_hca.so"))
		return 0;
	if (asprintf(&value, "%s%s%s", path, others && *others ? ":" : "", others ? others : "") <
	    0)
		return -1;
	rc = setenv("LD_PRELOAD", value, 1);
	free(value);
	return rc;
}

static bool is_one_of(const char *text, const char *const *allowed)
{
	for (; *allowed; allowed++)
		if (!strcmp(text, *allowed))
			return true;
	return false;
}

/* Returns true if a text may be part of a file name. */
static bool is_name(const char *text)
{
	return *text && strlen(text) < 48 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       strlen(text);
}

/* Returns true if a share of 1000 is one, and if a window ends after its begin. */
static bool is_fault(const char *name, unsigned long long from, const unsigned long long *to)
{
	static const char *const shares[] = { "drop", "dup", "late", "corrupt", "rnr", NULL };
	static const char *const windows[] = { "down", "down1", "fatal", "fatal1", NULL };

	if (to)
		return is_one_of(name, windows) && from < *to;
	return !is_one_of(name, shares) || from <= 1000;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* Returns true if a text is a plan: NAME=NUMBER or NAME=NUMBER-NUMBER, with commas in between. */
static bool is_plan(const char *text)
{
	static const char *const names[] = { "drop",   "dup",     "late",  "corrupt", "rnr",
					     "break",  "breakqp", "down",  "down1",   "fatal",
					     "fatal1", "every",   "times", "work",    "deny",
					     "nobf",   "die",     "seed",  "moved",   NULL };

	while (*text) {
		unsigned long long from, to;
		char name[8];
		int len = 0, more = 0;

		if (sscanf(text, "%7[a-z1]=%*[0-9]%n", name, &len) != 1 || !len ||
		    !is_one_of(name, names))
			return false;
		from = strtoull(strchr(text, '=') + 1, NULL, 10);
		text += len;
		sscanf(text, "-%*[0-9]%n", &more);
		to = more ? strtoull(text + 1, NULL, 10) : 0;
		text += more;
		if (!is_fault(name, from, more ? &to : NULL) || (*text && *text++ != ','))
			return false;
	}
	return true;
}

/* Checks the value of an option of run. */
static bool value_is_right(int option, const char *value)
{
	static const char *const links[] = { "ib", "roce", NULL };
	static const char *const modes[] = { "trap", "poll", NULL };

	switch (option) {
	case 'l': return is_one_of(value, links);
	case 'm': return is_one_of(value, modes);
	case 's': return is_name(value);
	case 'f': return is_plan(value);
	case 'N': return is_number(value) && atoi(value) >= 1 && atoi(value) <= 64;
	case 'd': return is_number(value) && atoi(value) >= 1 && atoi(value) <= 2;
	case 't': return !value || !strcmp(value, "lines");
	default: return is_number(value);
	}
}

/* Returns the description of the values that an option of run takes. */
static const char *value_wanted(int option)
{
	switch (option) {
	case 'l': return "ib or roce";
	case 'm': return "trap or poll";
	case 's': return NAME_WANTED;
	case 'f': return "a plan as in copyrpc_hca(1)";
	case 'N': return "a number from 1 to 64";
	case 'd': return "1 or 2";
	case 't': return "=lines or nothing";
	default: return "a number";
	}
}

static const struct option run_options[] = {
	{ "link", required_argument, NULL, 'l' },  { "nodes", required_argument, NULL, 'N' },
	{ "node", required_argument, NULL, 'n' },  { "devices", required_argument, NULL, 'd' },
	{ "mode", required_argument, NULL, 'm' },  { "segment", required_argument, NULL, 's' },
	{ "seed", required_argument, NULL, 'S' },  { "fault", required_argument, NULL, 'f' },
	{ "stats", optional_argument, NULL, 't' }, { NULL, 0, NULL, 0 },
};

static const char *variable(int option)
{
	switch (option) {
	case 'l': return "COPYRPC_HCA_LINK";
	case 'N': return "COPYRPC_HCA_NODES";
	case 'n': return "COPYRPC_HCA_NODE";
	case 'd': return "COPYRPC_HCA_DEVICES";
	case 'm': return "COPYRPC_HCA_MODE";
	case 's': return "COPYRPC_HCA_SEGMENT";
	case 'S': return "COPYRPC_HCA_SEED";
	case 'f': return "COPYRPC_HCA_FAULTS";
	default: return "COPYRPC_HCA_STATS";
	}
}

static int complain_value(const struct option *option, const char *value)
{
	fprintf(stderr, "copyrpc_hca: --%s takes %s, not '%s'\n%s", option->name,
		value_wanted(option->val), value, usage);
	return 2;
}

/* Reports an option that does not exist, or lacks its value. getopt_long would name the command. */
static int complain_option(int option, char **argv)
{
	char letter[] = { '-', (char)optopt, 0 };
	bool is_long = !strncmp(argv[optind - 1], "--", 2);

	return complain(option == ':' ? "a value is missing behind " : "wrong option: ",
			is_long ? argv[optind - 1] : letter);
}

static int take_run_options(int argc, char **argv)
{
	int option, index;

	while ((option = getopt_long(argc, argv, "+:", run_options, &index)) != -1) {
		const char *value = optarg;

		if (option == '?' || option == ':')
			return complain_option(option, argv);
		if (!value_is_right(option, value))
			return complain_value(&run_options[index], value);
		if (option == 't')
			value = value ? "2" : "1";
		setenv(variable(option), value, 1);
	}
	return 0;
}

/* Rejects a node beyond the number of nodes, which would otherwise silently become another node. */
static int check_node(void)
{
	const char *node = getenv("COPYRPC_HCA_NODE"), *nodes = getenv("COPYRPC_HCA_NODES");

	if (!node || atoi(node) < (nodes ? atoi(nodes) : 2))
		return 0;
	return complain("there is no such node: ", node);
}

static int run(int argc, char **argv)
{
	int rc = take_run_options(argc, argv);

	if (rc || (rc = check_node()))
		return rc;
	if (optind == argc)
		return complain("a command is missing", "");
	if (preload())
		return 1;
	hca_sweep();
	execvp(argv[optind], argv + optind);
	rc = errno;
	fprintf(stderr, "copyrpc_hca: cannot run %s: %s\n", argv[optind], strerror(rc));
	return rc == ENOENT ? 127 : 126;
}

/* Parses the options of stat and reset: --segment and one flag. */
static int take_flag(int argc, char **argv, const char *flag, bool *set)
{
	const struct option options[] = { { "segment", required_argument, NULL, 's' },
					  { flag, no_argument, NULL, 'x' },
					  { NULL, 0, NULL, 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return complain_option(option, argv);
		if (option == 'x')
			*set = true;
		else if (!is_name(optarg))
			return complain("--segment takes " NAME_WANTED ", not ", optarg);
		else
			setenv("COPYRPC_HCA_SEGMENT", optarg, 1);
	}
	return optind < argc ? complain("too many arguments: ", argv[optind]) : 0;
}

/* Returns the exit status, 1 if the output could not be written. */
static int written(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "copyrpc_hca: the output could not be written\n");
	return 1;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	bool flag = false;
	int rc;

	if (!strcmp(verb, "--help") || !strcmp(verb, "-h")) {
		fputs(usage, stdout);
		return written(0);
	}
	argc--;
	argv++;
	if (!strcmp(verb, "run"))
		return run(argc, argv);
	if (!strcmp(verb, "stat"))
		return (rc = take_flag(argc, argv, "qps", &flag)) ? rc : written(hca_stat(flag));
	if (!strcmp(verb, "reset"))
		return (rc = take_flag(argc, argv, "force", &flag)) ? rc : hca_reset(flag);
	return complain(*verb ? "there is no command " : "a command is missing", verb);
}
