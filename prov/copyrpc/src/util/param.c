/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Definition, reading and checking of all FI_COPYRPC_* parameters: see param.h.
 *
 * Values come from libfabric (fi_param_get), with two exceptions. Numbers are read as text, because
 * libfabric's own parser reads "12x" as 12 and accepts no suffix. The job key is read from
 * `environ`, because libfabric logs every text value that it reads.
 */
#include "util/param.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/job.h"

#define UTIL_PARAM_PREFIX   "FI_COPYRPC_"
#define UTIL_PARAM_NAME_MAX 64 /* longer names are compared up to this length */
#define UTIL_PARAM_PART_MIN 3  /* shorter names are no parts of another */

#define UTIL_KIB (1ull << 10)
#define UTIL_MIB (1ull << 20)
#define UTIL_TIB (1ull << 40)

enum util_param_kind {
	UTIL_PARAM_SIZE,   /* size_t: a number with an optional K, M or G */
	UTIL_PARAM_INT,    /* int: a number */
	UTIL_PARAM_BOOL,   /* int: 0, 1, or libfabric's words for them */
	UTIL_PARAM_STR,    /* const char *: any text; empty: not set */
	UTIL_PARAM_SECRET, /* const char *: any text, never logged; empty: not set */
};

struct util_param {
	const char *name; /* upper case, without the prefix */
	enum util_param_kind kind;
	size_t offset; /* offset of the value in struct util_params */
	uint64_t def;
	uint64_t min; /* 0 is also allowed if zero_ok */
	uint64_t max;
	bool zero_ok;
	const char *str_def;
	const char *unit;
	const char *help;
};

#define UTIL_PARAM_FIELD(field) offsetof(struct util_params, field)

static const struct util_param util_param_table[] = {
	{ .name = "JOB_KEY",
	  .kind = UTIL_PARAM_SECRET,
	  .offset = UTIL_PARAM_FIELD(job_key),
	  .unit = "text",
	  .help = "Secret that all processes of a job must share; peers with another key, or "
		  "none, are refused" },
	{ .name = "PATHS",
	  .kind = UTIL_PARAM_STR,
	  .offset = UTIL_PARAM_FIELD(paths),
	  .str_def = "shm,nic,udp",
	  .unit = "comma-separated list",
	  .help = "Ways to reach a peer, best first: shm (shared memory of this host), nic (RDMA "
		  "device), udp (sockets)" },
	{ .name = "ENDPOINT",
	  .kind = UTIL_PARAM_STR,
	  .offset = UTIL_PARAM_FIELD(endpoint),
	  .unit = "rc or ud",
	  .help = "Reliable endpoints to offer: rc (rings) or ud (datagrams); unset: both" },
	{ .name = "DEVICE",
	  .kind = UTIL_PARAM_STR,
	  .offset = UTIL_PARAM_FIELD(device),
	  .unit = "name or name:port",
	  .help = "RDMA device to use, a name from ibv_devices; unset: the fastest active port" },
	{ .name = "IFACE",
	  .kind = UTIL_PARAM_STR,
	  .offset = UTIL_PARAM_FIELD(iface),
	  .unit = "comma-separated list",
	  .help = "Network interfaces whose addresses are published, best first: names, patterns "
		  "(ib*), networks (10.1.0.0/16), RDMA devices; ! excludes one, ^ in front all; "
		  "unset: every one, the fastest first" },
	{ .name = "PORTS",
	  .kind = UTIL_PARAM_STR,
	  .offset = UTIL_PARAM_FIELD(ports),
	  .unit = "port or first-last",
	  .help = "Ports for UDP sockets and TCP listeners, for firewalls; unset: any" },
	{ .name = "GID_INDEX",
	  .kind = UTIL_PARAM_STR,
	  .offset = UTIL_PARAM_FIELD(gid_index),
	  .unit = "number",
	  .help = "Index of the GID to use; unset: RoCE v2 with an IPv4 address is preferred" },
	{ .name = "MEM",
	  .kind = UTIL_PARAM_SIZE,
	  .offset = UTIL_PARAM_FIELD(mem),
	  .def = 256 * UTIL_MIB,
	  .min = UTIL_MIB,
	  .max = UTIL_TIB,
	  .unit = "bytes",
	  .help = "Maximum memory for the rings of one domain" },
	{ .name = "RING_SIZE",
	  .kind = UTIL_PARAM_SIZE,
	  .offset = UTIL_PARAM_FIELD(ring_size),
	  .def = 0,
	  .min = 4 * UTIL_KIB,
	  .max = 1024 * UTIL_MIB,
	  .zero_ok = true,
	  .unit = "bytes",
	  .help = "Size of each ring; 0: derived from FI_COPYRPC_MEM and the number of peers" },
	{ .name = "GRANT_MAX",
	  .kind = UTIL_PARAM_SIZE,
	  .offset = UTIL_PARAM_FIELD(grant_max),
	  .def = 0,
	  .min = 64,
	  .max = 256 * UTIL_MIB,
	  .zero_ok = true,
	  .unit = "bytes",
	  .help = "Space for responses that a peer's calls may reserve, at most a quarter of the "
		  "ring; bounds the calls in progress; 0: 32K, at most an eighth" },
	{ .name = "EAGER_MAX",
	  .kind = UTIL_PARAM_SIZE,
	  .offset = UTIL_PARAM_FIELD(eager_max),
	  .def = 8 * UTIL_KIB,
	  .min = 64,
	  .max = UTIL_MIB,
	  .unit = "bytes",
	  .help = "Largest message that is sent eagerly, in one piece" },
	{ .name = "SINGLE_COPY_MIN",
	  .kind = UTIL_PARAM_SIZE,
	  .offset = UTIL_PARAM_FIELD(single_copy_min),
	  .def = 32 * UTIL_KIB,
	  .min = UTIL_KIB,
	  .max = UTIL_TIB,
	  .zero_ok = true,
	  .unit = "bytes",
	  .help = "Smallest message that the kernel copies from process to process; 0: none" },
	{ .name = "RNDV_MIN",
	  .kind = UTIL_PARAM_SIZE,
	  .offset = UTIL_PARAM_FIELD(rndv_min),
	  .def = 64 * UTIL_KIB,
	  .min = UTIL_KIB,
	  .max = UTIL_TIB,
	  .unit = "bytes",
	  .help = "Smallest message that a peer behind the RDMA device reads from the sender's "
		  "memory (rendezvous), which is registered for it" },
	{ .name = "UNEXPECTED_MEM",
	  .kind = UTIL_PARAM_SIZE,
	  .offset = UTIL_PARAM_FIELD(unexpected_mem),
	  .def = 256 * UTIL_MIB,
	  .min = 0,
	  .max = UTIL_TIB,
	  .unit = "bytes",
	  .help = "Memory per domain for messages that arrive before their receive is posted; when "
		  "it is full, they wait in the ring and their sender waits" },
	{ .name = "PEER_TIMEOUT",
	  .kind = UTIL_PARAM_INT,
	  .offset = UTIL_PARAM_FIELD(peer_timeout_ms),
	  .def = 30000,
	  .min = 100,
	  .max = 3600000,
	  .unit = "ms",
	  .help = "Operations to a peer that does not respond for this time fail" },
	{ .name = "NIC_RMA",
	  .kind = UTIL_PARAM_INT,
	  .offset = UTIL_PARAM_FIELD(nic_rma),
	  .def = 1,
	  .min = 0,
	  .max = 2,
	  .unit = "number",
	  .help = "Remote memory access by the RDMA devices alone: 0: never; 1: to regions of "
		  "domains with FI_MR_ALLOCATED; 2: to all regions, whose memory the application "
		  "then keeps mapped" },
	{ .name = "DCI_COUNT",
	  .kind = UTIL_PARAM_INT,
	  .offset = UTIL_PARAM_FIELD(dci_count),
	  .def = 8,
	  .min = 1,
	  .max = 64,
	  .unit = "number",
	  .help = "Queue pairs by which a ConnectX adapter reaches the peers beyond RC_MAX; so "
		  "many of them can be served at the same time" },
	{ .name = "RC_MAX",
	  .kind = UTIL_PARAM_INT,
	  .offset = UTIL_PARAM_FIELD(rc_max),
	  .def = 256,
	  .min = 0,
	  .max = 1000000,
	  .unit = "number",
	  .help = "Peers of a progress domain with a queue pair of their own (RC); ConnectX "
		  "adapters reach the others by a few queue pairs that all share (DC)" },
	{ .name = "RC_INTERVAL",
	  .kind = UTIL_PARAM_INT,
	  .offset = UTIL_PARAM_FIELD(rc_interval_ms),
	  .def = 1000,
	  .min = 1,
	  .max = 86400000,
	  .zero_ok = true,
	  .unit = "milliseconds",
	  .help = "Time after which peers with much traffic take the queue pairs of peers with "
		  "little, where there are more peers than RC_MAX; 0: never" },
	{ .name = "REVOKE_TIMEOUT",
	  .kind = UTIL_PARAM_INT,
	  .offset = UTIL_PARAM_FIELD(revoke_timeout_ms),
	  .def = 1000,
	  .min = 1,
	  .max = 3600000,
	  .unit = "ms",
	  .help = "Time for which fi_close of a memory region waits for peers whose devices have "
		  "accessed it; a later access of one that did not respond ends its connection" },
	{ .name = "SINGLE_COPY",
	  .kind = UTIL_PARAM_BOOL,
	  .offset = UTIL_PARAM_FIELD(single_copy),
	  .def = 1,
	  .min = 0,
	  .max = 1,
	  .unit = "boolean",
	  .help = "Let the kernel copy large messages between processes where it is permitted" },
	{ .name = "HOLD",
	  .kind = UTIL_PARAM_BOOL,
	  .offset = UTIL_PARAM_FIELD(hold),
	  .def = 1,
	  .min = 0,
	  .max = 1,
	  .unit = "boolean",
	  .help = "1: while messages are in flight, new ones wait for the next read of a "
		  "completion queue, to leave together; 0: send at once, for programs that send "
		  "and then compute" },
	{ .name = "LINK_RATE",
	  .kind = UTIL_PARAM_INT,
	  .offset = UTIL_PARAM_FIELD(link_rate),
	  .def = 0,
	  .min = 1,
	  .max = 1000000,
	  .zero_ok = true,
	  .unit = "Mbit/s",
	  .help = "Maximum rate of each datagram session, paced by its round-trip times; 0: 25000 "
		  "over RDMA devices, not paced over UDP" },
	{ .name = "UDP_EAGER_MAX",
	  .kind = UTIL_PARAM_SIZE,
	  .offset = UTIL_PARAM_FIELD(udp_eager_max),
	  .def = 32 * UTIL_KIB,
	  .min = 64,
	  .max = UTIL_MIB,
	  .unit = "bytes",
	  .help = "Largest message that is sent eagerly over UDP, where it exceeds EAGER_MAX; at "
		  "most 65 KiB" },
	{ .name = "UDP_PLAIN",
	  .kind = UTIL_PARAM_BOOL,
	  .offset = UTIL_PARAM_FIELD(udp_plain),
	  .def = 0,
	  .min = 0,
	  .max = 1,
	  .unit = "boolean",
	  .help = "1: turn off segmentation and coalescing of UDP datagrams by the kernel (GSO, "
		  "GRO), for network drivers that do it badly" },
	{ .name = "STATS",
	  .kind = UTIL_PARAM_STR,
	  .offset = UTIL_PARAM_FIELD(stats),
	  .unit = "text",
	  .help = "Report at the end: stderr, or a file, as JSON if its name ends in .json; %r in "
		  "the name stands for the rank, %h for the host, %p for the process id" },
	{ .name = "WATCH",
	  .kind = UTIL_PARAM_INT,
	  .offset = UTIL_PARAM_FIELD(watch_s),
	  .def = 10,
	  .min = 1,
	  .max = 86400,
	  .zero_ok = true,
	  .unit = "seconds",
	  .help = "Log an operation that waits for a peer longer than this, at most once a "
		  "minute; 0: never" },
	{ .name = "FAULT",
	  .kind = UTIL_PARAM_STR,
	  .offset = UTIL_PARAM_FIELD(fault),
	  .unit = "list",
	  .help = "For tests: faults injected into received datagrams, for example "
		  "drop=0.01,dup=0.01,reorder=0.05,delay=2ms,corrupt=0.001,seed=7" },
	{ .name = "LAYERING",
	  .kind = UTIL_PARAM_BOOL,
	  .offset = UTIL_PARAM_FIELD(layering),
	  .def = 0,
	  .min = 0,
	  .max = 1,
	  .unit = "boolean",
	  .help = "Let libfabric stack its utility providers (ofi_rxm) over this one" },
};

#define UTIL_PARAM_CNT (sizeof(util_param_table) / sizeof(util_param_table[0]))

struct util_params util_params;

/* Prints powers of 1024 with a suffix, the way a user would write them. */
static void util_param_print(char *buf, size_t len, const struct util_param *p, uint64_t v)
{
	static const char suffix[] = { 0, 'K', 'M', 'G', 'T' };
	size_t i = 0;

	while (p->kind == UTIL_PARAM_SIZE && v && v % 1024 == 0 && i + 1 < sizeof(suffix)) {
		v /= 1024;
		i++;
	}
	snprintf(buf, len, "%" PRIu64 "%.1s", v, i ? &suffix[i] : "");
}

static void util_param_define_number(struct fi_provider *prov, const struct util_param *p)
{
	char def[32], min[32], max[32];

	util_param_print(def, sizeof(def), p, p->def);
	util_param_print(min, sizeof(min), p, p->min);
	util_param_print(max, sizeof(max), p, p->max);
	fi_param_define(prov, p->name, FI_PARAM_STRING, "%s (%s%s; %s%s to %s; default %s)",
			p->help, p->unit,
			p->kind == UTIL_PARAM_SIZE ? ", K, M or G may follow" : "",
			p->zero_ok ? "0 or " : "", min, max, def);
}

void util_param_define(struct fi_provider *prov)
{
	for (size_t i = 0; i < UTIL_PARAM_CNT; i++) {
		const struct util_param *p = &util_param_table[i];

		if (p->kind == UTIL_PARAM_SIZE || p->kind == UTIL_PARAM_INT)
			util_param_define_number(prov, p);
		else if (p->kind == UTIL_PARAM_BOOL)
			fi_param_define(prov, p->name, FI_PARAM_BOOL, "%s (%s; default %d)",
					p->help, p->unit, (int)p->def);
		else
			fi_param_define(prov, p->name, FI_PARAM_STRING, "%s (%s; default %s)",
					p->help, p->unit, p->str_def ? p->str_def : "none");
	}
}

/* Returns the address of the value of `p`. */
static void *util_param_at(struct util_params *params, const struct util_param *p)
{
	return (char *)params + p->offset;
}

static void util_param_store(struct util_params *params, const struct util_param *p, uint64_t v)
{
	if (p->kind == UTIL_PARAM_SIZE)
		*(size_t *)util_param_at(params, p) = v;
	else
		*(int *)util_param_at(params, p) = (int)v;
}

static bool util_param_scale(char suffix, unsigned *shift)
{
	static const char suffixes[] = "KMG";
	const char *at = strchr(suffixes, toupper((unsigned char)suffix));

	if (!suffix || !at)
		return false;
	*shift = 10 * (unsigned)(at - suffixes + 1);
	return true;
}

/* Parses a number. One that does not fit saturates: out of bounds, not unreadable. */
static bool util_param_parse(const struct util_param *p, const char *text, uint64_t *v)
{
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*v = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	if (errno == ERANGE)
		*v = UINT64_MAX;
	if (p->kind == UTIL_PARAM_SIZE && util_param_scale(*end, &shift))
		end++;
	*v = *v > UINT64_MAX >> shift ? UINT64_MAX : *v << shift;
	return !*end;
}

static uint64_t util_param_clamp(const struct util_param *p, const char *text, uint64_t v)
{
	uint64_t bound = v < p->min ? p->min : v > p->max ? p->max : v;
	char used[32];

	if (bound == v || (!v && p->zero_ok))
		return v;
	util_param_print(used, sizeof(used), p, bound);
	UTIL_WARN_HOST(FABRIC, UTIL_PARAM_PREFIX "%s=%s is out of bounds: using %s (%s)\n", p->name,
		       text, used, p->unit);
	return bound;
}

static void util_param_warn_unreadable(const struct util_param *p, const char *text)
{
	char def[32];

	util_param_print(def, sizeof(def), p, p->def);
	UTIL_WARN_HOST(FABRIC,
		       UTIL_PARAM_PREFIX "%s=%s cannot be read as %s: using the default, %s\n",
		       p->name, text, p->unit, def);
}

static void util_param_load_number(struct fi_provider *prov, const struct util_param *p)
{
	uint64_t v = p->def;
	char *text;

	if (!fi_param_get_str(prov, p->name, &text)) {
		if (util_param_parse(p, text, &v)) {
			v = util_param_clamp(p, text, v);
		} else {
			util_param_warn_unreadable(p, text);
			v = p->def;
		}
	}
	util_param_store(&util_params, p, v);
}

static void util_param_load_bool(struct fi_provider *prov, const struct util_param *p)
{
	int v = (int)p->def;

	if (fi_param_get_bool(prov, p->name, &v) == -FI_EINVAL) {
		UTIL_WARN_HOST(FABRIC,
			       UTIL_PARAM_PREFIX "%s is neither 0 nor 1: using the default, %d\n",
			       p->name, (int)p->def);
		v = (int)p->def;
	}
	util_param_store(&util_params, p, (uint64_t)v);
}

static void util_param_load_str(struct fi_provider *prov, const struct util_param *p)
{
	const char **value = util_param_at(&util_params, p);
	char *text;

	*value = fi_param_get_str(prov, p->name, &text) || !*text ? p->str_def : text;
}

static void util_param_load_one(struct fi_provider *prov, const struct util_param *p)
{
	switch (p->kind) {
	case UTIL_PARAM_SIZE:
	case UTIL_PARAM_INT: util_param_load_number(prov, p); break;
	case UTIL_PARAM_BOOL: util_param_load_bool(prov, p); break;
	case UTIL_PARAM_STR: util_param_load_str(prov, p); break;
	case UTIL_PARAM_SECRET: *(const char **)util_param_at(&util_params, p) = NULL; break;
	}
}

static size_t util_param_min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Levenshtein distance between `a`, `a_len` characters long, and `b`. */
static size_t util_param_distance(const char *a, size_t a_len, const char *b)
{
	size_t row[UTIL_PARAM_NAME_MAX + 1];
	size_t b_len = strnlen(b, UTIL_PARAM_NAME_MAX);

	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diag = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t up = row[j];

			row[j] = util_param_min3(up + 1, row[j - 1] + 1,
						 diag + (a[i - 1] != b[j - 1]));
			diag = up;
		}
	}
	return row[b_len];
}

/** Returns the distance of a name, in any case, from a parameter's; 1 if one contains the other. */
static size_t util_param_unlikeness(const char *name, size_t len, const char *known)
{
	char text[UTIL_PARAM_NAME_MAX + 1] = "";
	size_t distance;

	for (size_t i = 0; i < len; i++)
		text[i] = (char)toupper((unsigned char)name[i]);
	distance = util_param_distance(text, len, known);
	if (len >= UTIL_PARAM_PART_MIN && (strstr(known, text) || strstr(text, known)))
		return distance < 1 ? distance : 1;
	return distance;
}

/** Returns the parameter that is probably meant, or NULL: a third of the letters may be wrong. */
static const struct util_param *util_param_nearest(const char *name, size_t len)
{
	const struct util_param *best = NULL;
	size_t best_distance;

	if (len > UTIL_PARAM_NAME_MAX)
		len = UTIL_PARAM_NAME_MAX;
	best_distance = len / 3 + 1;
	for (size_t i = 0; i < UTIL_PARAM_CNT; i++) {
		size_t d = util_param_unlikeness(name, len, util_param_table[i].name);

		if (d < best_distance) {
			best_distance = d;
			best = &util_param_table[i];
		}
	}
	return best;
}

static const struct util_param *util_param_find(const char *name, size_t len)
{
	for (size_t i = 0; i < UTIL_PARAM_CNT; i++) {
		const struct util_param *p = &util_param_table[i];

		if (strlen(p->name) == len && !memcmp(p->name, name, len))
			return p;
	}
	return NULL;
}

bool util_param_is_known(const char *name, size_t len, const char **near)
{
	const struct util_param *best;

	*near = NULL;
	if (util_param_find(name, len))
		return true;
	best = util_param_nearest(name, len);
	if (best)
		*near = best->name;
	return false;
}

static void util_param_warn_unknown(const char *name, size_t len)
{
	const char *near;

	if (!util_param_is_known(name, len, &near) && near)
		UTIL_WARN_HOST(FABRIC,
			       UTIL_PARAM_PREFIX "%.*s is not a parameter and has no effect: did "
						 "you mean " UTIL_PARAM_PREFIX "%s?\n",
			       (int)len, name, near);
	else
		UTIL_WARN_HOST(FABRIC,
			       UTIL_PARAM_PREFIX "%.*s is not a parameter and has no effect\n",
			       (int)len, name);
}

/* One FI_COPYRPC_* from the environment: `name` behind the prefix, with "=value". */
static void util_param_scan_one(const char *name)
{
	size_t len = strcspn(name, "=");
	const struct util_param *p = util_param_find(name, len);

	if (!p) {
		util_param_warn_unknown(name, len);
	} else if (p->kind == UTIL_PARAM_SECRET && name[len] && name[len + 1]) {
		*(const char **)util_param_at(&util_params, p) = &name[len + 1];
	}
}

void util_param_load(struct fi_provider *prov)
{
	size_t prefix_len = strlen(UTIL_PARAM_PREFIX);

	for (size_t i = 0; i < UTIL_PARAM_CNT; i++)
		util_param_load_one(prov, &util_param_table[i]);
	for (char **env = environ; env && *env; env++) {
		if (!strncmp(*env, UTIL_PARAM_PREFIX, prefix_len))
			util_param_scan_one(*env + prefix_len);
	}
}
