/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Definition, reading and checking of all parameters of param_table.c: see param.h.
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
#include "util/param_table.h"

#define UTIL_PARAM_PREFIX   "FI_COPYRPC_"
#define UTIL_PARAM_SUFFIXES "KMGT"
#define UTIL_PARAM_NAME_MAX 64 /* longer names are compared up to this length */
#define UTIL_PARAM_PART_MIN 3  /* shorter names are no parts of another */

struct util_params util_params;

/* Prints powers of 1024 with a suffix, the way a user would write them. */
static void util_param_print(char *buf, size_t len, const struct util_param *p, uint64_t v)
{
	static const char suffix[] = UTIL_PARAM_SUFFIXES;
	size_t i = 0;

	while (p->kind == UTIL_PARAM_SIZE && v && v % 1024 == 0 && suffix[i]) {
		v /= 1024;
		i++;
	}
	snprintf(buf, len, "%" PRIu64 "%.1s", v, i ? &suffix[i - 1] : "");
}

static const char *util_param_suffix_help(const struct util_param *p)
{
	return p->kind == UTIL_PARAM_SIZE ? ", K, M, G or T may follow" : "";
}

static void util_param_define_number(struct fi_provider *prov, const struct util_param *p)
{
	char def[32], min[32], max[32];

	util_param_print(def, sizeof(def), p, p->def);
	util_param_print(min, sizeof(min), p, p->min);
	util_param_print(max, sizeof(max), p, p->max);
	fi_param_define(prov, p->name, FI_PARAM_STRING, "%s (%s%s; %s%s to %s; default %s)",
			p->help, p->unit, util_param_suffix_help(p), p->zero_ok ? "0 or " : "", min,
			max, def);
}

void util_param_define(struct fi_provider *prov)
{
	for (size_t i = 0; i < util_param_cnt; i++) {
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
	static const char suffixes[] = UTIL_PARAM_SUFFIXES;
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
		       UTIL_PARAM_PREFIX "%s=%s is not a number (%s%s): using the default, %s\n",
		       p->name, text, p->unit, util_param_suffix_help(p), def);
}

static void util_param_load_number(struct fi_provider *prov, const struct util_param *p)
{
	uint64_t v = p->def;
	char *text;

	if (!fi_param_get_str(prov, p->name, &text) && *text) {
		if (util_param_parse(p, text, &v)) {
			v = util_param_clamp(p, text, v);
		} else {
			util_param_warn_unreadable(p, text);
			v = p->def;
		}
	}
	util_param_store(&util_params, p, v);
}

/* Returns true if the value is empty, which libfabric refuses. */
static bool util_param_is_empty(const struct util_param *p)
{
	char name[sizeof(UTIL_PARAM_PREFIX) + UTIL_PARAM_NAME_MAX];
	const char *value;

	snprintf(name, sizeof(name), UTIL_PARAM_PREFIX "%s", p->name);
	value = getenv(name);
	return value && !*value;
}

static void util_param_load_bool(struct fi_provider *prov, const struct util_param *p)
{
	int v = (int)p->def;

	if (!util_param_is_empty(p) && fi_param_get_bool(prov, p->name, &v) == -FI_EINVAL) {
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
	for (size_t i = 0; i < util_param_cnt; i++) {
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
	for (size_t i = 0; i < util_param_cnt; i++) {
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

	for (size_t i = 0; i < util_param_cnt; i++)
		util_param_load_one(prov, &util_param_table[i]);
	for (char **env = environ; env && *env; env++) {
		if (!strncmp(*env, UTIL_PARAM_PREFIX, prefix_len))
			util_param_scan_one(*env + prefix_len);
	}
}
