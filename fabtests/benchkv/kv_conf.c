/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options of a run: see kv_conf.h. Tested by test/unit/benchkv/test_kv_conf.c. */
#include "kv_conf.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kv_msg.h"
#include "kv_value.h"

static const char kv_usage[] =
	"usage: mpirun -n NODES copyrpc_benchkv [option...]     see copyrpc_benchkv(1)\n"
	"  -b, --backend NAME     delegation (default), meta, direct, mpi\n"
	"  -K, --daemons N        daemon threads of a node (2)\n"
	"  -C, --clients N        clients of a node (4)\n"
	"  -P, --processes        clients are processes instead of threads\n"
	"  -q, --depth N          requests of a client in flight (4)\n"
	"  -k, --keys N           keys of a node (1024)\n"
	"  -v, --value BYTES      bytes of a value, 32 to 4096 (32)\n"
	"  -r, --read RATIO       share of gets, 0 to 1 (0.5)\n"
	"  -z, --zipf EXPONENT    keys by Zipf's law instead of uniformly\n"
	"  -R, --remote           keys of other nodes only\n"
	"  -a, --pinned           client c asks only the (c+1)th node behind its own\n"
	"  -x, --fate FATE        stop or kill the last node during the middle run; implies -a\n"
	"  -d, --duration SECONDS of a run (1)\n"
	"  -n, --runs N           runs (3)\n"
	"  -s, --seed N           of the request patterns (1)\n"
	"  -c, --cores            bind threads to cores\n"
	"  -S, --spin US          time without work before a thread sleeps (20)\n"
	"  -p, --progress         rate once a second, on stderr\n"
	"  -j, --json             a JSON line for each run instead of the table\n"
	"  -h, --help\n";

static const struct option kv_options[] = {
	{ "backend", required_argument, NULL, 'b' },
	{ "daemons", required_argument, NULL, 'K' },
	{ "clients", required_argument, NULL, 'C' },
	{ "processes", no_argument, NULL, 'P' },
	{ "depth", required_argument, NULL, 'q' },
	{ "keys", required_argument, NULL, 'k' },
	{ "value", required_argument, NULL, 'v' },
	{ "read", required_argument, NULL, 'r' },
	{ "zipf", required_argument, NULL, 'z' },
	{ "remote", no_argument, NULL, 'R' },
	{ "pinned", no_argument, NULL, 'a' },
	{ "duration", required_argument, NULL, 'd' },
	{ "fate", required_argument, NULL, 'x' },
	{ "runs", required_argument, NULL, 'n' },
	{ "seed", required_argument, NULL, 's' },
	{ "cores", no_argument, NULL, 'c' },
	{ "spin", required_argument, NULL, 'S' },
	{ "progress", no_argument, NULL, 'p' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char *const kv_backends[KV_BACKENDS] = {
	[KV_DELEGATION] = "delegation",
	[KV_META] = "meta",
	[KV_DIRECT] = "direct",
	[KV_MPI] = "mpi",
};

const char *kv_backend_name(enum kv_backend backend)
{
	return kv_backends[backend];
}

static int kv_conf_bad(int opt, const char *text, const char *wanted)
{
	fprintf(stderr, "copyrpc_benchkv: -%c %s: expected %s\n", opt, text, wanted);
	return -EINVAL;
}

/* Parses a whole number from `min` to `max`. */
static int kv_conf_number(int opt, const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	char wanted[64], *end;

	errno = 0;
	*number = strtoull(text, &end, 0);
	if (!errno && end != text && !*end && *text != '-' && *number >= min && *number <= max)
		return 0;
	snprintf(wanted, sizeof(wanted), "a number from %llu to %llu", (unsigned long long)min,
		 (unsigned long long)max);
	return kv_conf_bad(opt, text, wanted);
}

static int kv_conf_u32(int opt, const char *text, uint32_t min, uint32_t max, uint32_t *number)
{
	uint64_t wide = 0;
	int ret = kv_conf_number(opt, text, min, max, &wide);

	*number = (uint32_t)wide;
	return ret;
}

static int kv_conf_real(int opt, const char *text, double min, double max, double *number)
{
	char wanted[64], *end;

	*number = strtod(text, &end);
	if (end != text && !*end && isfinite(*number) && *number >= min && *number <= max)
		return 0;
	snprintf(wanted, sizeof(wanted), "a number from %g to %g", min, max);
	return kv_conf_bad(opt, text, wanted);
}

static int kv_conf_backend(struct kv_conf *conf, const char *text)
{
	for (unsigned i = 0; i < KV_BACKENDS; i++)
		if (!strcmp(text, kv_backends[i])) {
			conf->backend = (enum kv_backend)i;
			return 0;
		}
	return kv_conf_bad('b', text, "delegation, meta, direct or mpi");
}

static int kv_conf_fate(struct kv_conf *conf, const char *text)
{
	if (strcmp(text, "stop") && strcmp(text, "kill"))
		return kv_conf_bad('x', text, "stop or kill");
	conf->fate = *text == 's' ? KV_STOPS : KV_DIES;
	conf->pinned = true;
	return 0;
}

static int kv_conf_value(struct kv_conf *conf, const char *text)
{
	uint64_t len = 0;
	int ret = kv_conf_number('v', text, KV_VALUE_MIN, KV_VALUE_MAX, &len);

	conf->value_len = (size_t)len;
	return ret;
}

static int kv_conf_option(struct kv_conf *conf, int opt, const char *arg)
{
	switch (opt) {
	case 'b': return kv_conf_backend(conf, arg);
	case 'K': return kv_conf_u32(opt, arg, 1, 64, &conf->daemons);
	case 'C': return kv_conf_u32(opt, arg, 1, 512, &conf->clients);
	case 'P': conf->processes = true; return 0;
	case 'q': return kv_conf_u32(opt, arg, 1, 1024, &conf->depth);
	case 'k': return kv_conf_number(opt, arg, 1, 1u << 26, &conf->keys);
	case 'v': return kv_conf_value(conf, arg);
	case 'r': return kv_conf_real(opt, arg, 0, 1, &conf->read_ratio);
	case 'z': return kv_conf_real(opt, arg, 0, 8, &conf->zipf);
	case 'R': conf->remote_only = true; return 0;
	case 'a': conf->pinned = true; return 0;
	case 'x': return kv_conf_fate(conf, arg);
	case 'd': return kv_conf_real(opt, arg, 0.01, 86400, &conf->duration);
	case 'n': return kv_conf_u32(opt, arg, 1, 1000, &conf->runs);
	case 's': return kv_conf_number(opt, arg, 0, UINT64_MAX, &conf->seed);
	case 'c': conf->cores = true; return 0;
	case 'S': return kv_conf_u32(opt, arg, 0, 1000000, &conf->spin_us);
	case 'p': conf->progress = true; return 0;
	case 'j': conf->output = KV_JSON; return 0;
	case 'h': fputs(kv_usage, stdout); return 1;
	default: fputs(kv_usage, stderr); return -EINVAL;
	}
}

int kv_conf_parse(struct kv_conf *conf, int argc, char **argv)
{
	int opt, ret = 0;

	*conf = (struct kv_conf){
		.daemons = 2,
		.clients = 4,
		.depth = 4,
		.keys = 1024,
		.value_len = 32,
		.read_ratio = 0.5,
		.duration = 1,
		.runs = 3,
		.seed = 1,
		.spin_us = 20,
	};
	optind = 1;
	while (!ret && (opt = getopt_long(argc, argv, "b:K:C:Pq:k:v:r:z:Rax:d:n:s:cS:pjh",
					  kv_options, NULL)) != -1)
		ret = kv_conf_option(conf, opt, optarg);
	if (!ret && optind < argc) {
		fprintf(stderr, "copyrpc_benchkv: %s: not an option\n%s", argv[optind], kv_usage);
		ret = -EINVAL;
	}
	if (!ret && conf->fate && (conf->backend == KV_MPI || conf->runs < 3)) {
		fprintf(stderr, "copyrpc_benchkv: -x needs 3 runs or more, and not -b mpi\n");
		ret = -EINVAL;
	}
	return ret;
}

size_t kv_conf_request_max(const struct kv_conf *conf)
{
	return sizeof(struct kv_request) + conf->value_len;
}

size_t kv_conf_response_max(const struct kv_conf *conf)
{
	return sizeof(struct kv_response) + conf->value_len;
}
