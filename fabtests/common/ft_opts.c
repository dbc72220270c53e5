/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parser of the options of ft_opts.h. */
#include "ft_opts.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FT_LONG_SEED = 256, FT_LONG_LIST, FT_LONG_JSON };

void ft_opts_init(struct ft_opts *opts)
{
	*opts = (struct ft_opts){
		.provider = "copyrpc",
		.address = "127.0.0.1",
		.type = FI_EP_RDM,
		.type_name = "rdm",
		.talk_port = "47592",
		.seed = (uint64_t)time(NULL),
		.limit = 60,
	};
}

static int type_take(struct ft_opts *opts, const char *arg)
{
	static const struct {
		const char *name;
		enum fi_ep_type type;
	} types[] = { { "rdm", FI_EP_RDM }, { "msg", FI_EP_MSG }, { "dgram", FI_EP_DGRAM } };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strcmp(arg, types[i].name))
			continue;
		opts->type_name = types[i].name;
		opts->type = types[i].type;
		return 0;
	}
	return -1;
}

static int wait_take(struct ft_opts *opts, const char *arg)
{
	static const char *const names[] = { "spin", "sread", "fd" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(arg, names[i]))
			continue;
		opts->wait = (enum ft_wait)i;
		return 0;
	}
	return -1;
}

static int number(const char *arg, double least, double *value)
{
	char *end;

	*value = strtod(arg, &end);
	return *end || end == arg || *value < least ? -1 : 0;
}

int ft_opts_take(struct ft_opts *opts, int letter, const char *arg)
{
	double value = 0;
	int err;

	switch (letter) {
	case 'p': opts->provider = arg; return 0;
	case 'f': opts->fabric = arg; return 0;
	case 'd': opts->domain = arg; return 0;
	case 's': opts->address = strcmp(arg, "any") ? arg : NULL; return 0;
	case 'B': opts->port = arg; return 0;
	case 'b': opts->talk_port = arg; return 0;
	case 'k': opts->only = arg; return 0;
	case 'h': opts->help = true; return 0;
	case 'l': opts->listen = true; return 0;
	case 'U': opts->delivery = true; return 0;
	case 'v': opts->verbose = true; return 0;
	case 'e': return type_take(opts, arg);
	case 'c': return wait_take(opts, arg);
	case 'T': return number(arg, 0.001, &opts->seconds);
	case 't': return number(arg, 0.1, &opts->limit);
	case 'I':
		err = number(arg, 1, &value);
		opts->iterations = (long)value;
		return err;
	case 'S':
		err = number(arg, 1, &value);
		opts->size = (size_t)value;
		return err;
	case FT_LONG_SEED: opts->seed = strtoull(arg, NULL, 0); return 0;
	case FT_LONG_LIST: opts->list = true; return 0;
	case FT_LONG_JSON: opts->json = true; return 0;
	}
	return -1;
}

int ft_opts_parse(struct ft_opts *opts, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", required_argument, NULL, FT_LONG_SEED },
		{ "list", no_argument, NULL, FT_LONG_LIST },
		{ "json", no_argument, NULL, FT_LONG_JSON },
		{ 0 },
	};
	int letter;

	while ((letter = getopt_long(argc, argv, FT_OPTIONS, longs, NULL)) != -1) {
		if (ft_opts_take(opts, letter, optarg))
			return -1;
	}
	if (optind < argc)
		opts->server = argv[optind++];
	return optind == argc ? 0 : -1;
}
