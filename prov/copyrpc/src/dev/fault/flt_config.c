/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parser of FI_COPYRPC_FAULT (flt_config.h). */
#include "dev/fault/flt_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum flt_kind { FLT_CHANCE, FLT_TIME, FLT_NUMBER };

struct flt_word {
	const char *name;
	enum flt_kind kind;
	size_t offset; /* of the value in struct flt_config */
};

static const struct flt_word flt_words[] = {
	{ "drop", FLT_CHANCE, offsetof(struct flt_config, drop) },
	{ "dup", FLT_CHANCE, offsetof(struct flt_config, dup) },
	{ "reorder", FLT_CHANCE, offsetof(struct flt_config, reorder) },
	{ "corrupt", FLT_CHANCE, offsetof(struct flt_config, corrupt) },
	{ "delay", FLT_TIME, offsetof(struct flt_config, delay_ns) },
	{ "seed", FLT_NUMBER, offsetof(struct flt_config, seed) },
};

#define FLT_WORD_CNT (sizeof(flt_words) / sizeof(flt_words[0]))

static const char *const flt_forms[] = {
	[FLT_CHANCE] = "a chance from 0 to 1, such as 0.01",
	[FLT_TIME] = "a time up to 10s, such as 2ms or 50us",
	[FLT_NUMBER] = "a number, such as 7",
};

/** Parses a decimal number without sign or exponent. Returns its end, or NULL. */
static const char *flt_decimal(const char *text, double *value)
{
	const char *at = text;
	bool digits = false, point = false;

	for (; isdigit((unsigned char)*at) || (*at == '.' && !point); at++) {
		digits |= *at != '.';
		point |= *at == '.';
	}
	*value = 0;
	for (double unit = 0; digits && text < at; text++) {
		if (*text == '.')
			unit = 0.1;
		else if (unit > 0)
			*value += unit * (*text - '0'), unit /= 10;
		else
			*value = 10 * *value + (*text - '0');
	}
	return digits ? at : NULL;
}

static bool flt_read_chance(void *at, const char *text, const char *end)
{
	double value;

	if (flt_decimal(text, &value) != end || value > 1)
		return false;
	*(uint32_t *)at = (uint32_t)(value * FLT_MILLION + 0.5);
	return true;
}

static bool flt_read_time(void *at, const char *text, const char *end)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	double value;
	size_t i, len;

	text = flt_decimal(text, &value);
	for (i = 0; text && i < sizeof(units) / sizeof(units[0]); i++) {
		len = strlen(units[i].name);
		if ((size_t)(end - text) != len || memcmp(text, units[i].name, len))
			continue;
		if (value * units[i].ns > FLT_DELAY_MAX_NS)
			return false;
		*(uint64_t *)at = (uint64_t)(value * units[i].ns + 0.5);
		return true;
	}
	return false;
}

static bool flt_read_number(void *at, const char *text, const char *end)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*(uint64_t *)at = strtoull(text, &stop, 10);
	return stop == end && !errno;
}

static bool flt_read_value(struct flt_config *c, const struct flt_word *w, const char *text,
			   const char *end)
{
	void *at = (char *)c + w->offset;

	switch (w->kind) {
	case FLT_CHANCE: return flt_read_chance(at, text, end);
	case FLT_TIME: return flt_read_time(at, text, end);
	case FLT_NUMBER: return flt_read_number(at, text, end);
	}
	return false;
}

/** Returns the index of the keyword in front of '=', or FLT_WORD_CNT. */
static size_t flt_word_of(const char *text, const char *end)
{
	size_t i, len;

	for (i = 0; i < FLT_WORD_CNT; i++) {
		len = strlen(flt_words[i].name);
		if ((size_t)(end - text) > len && !memcmp(text, flt_words[i].name, len) &&
		    text[len] == '=')
			break;
	}
	return i;
}

bool flt_config_read(struct flt_config *c, const char *text, char *why, size_t len)
{
	unsigned seen = 0;
	const char *end, *value;
	size_t i;

	*c = (struct flt_config){ 0 };
	for (;; text = end + 1) {
		end = text + strcspn(text, ",");
		i = flt_word_of(text, end);
		if (i == FLT_WORD_CNT) {
			snprintf(why, len,
				 "\"%.*s\": write drop=, dup=, reorder=, corrupt=, delay= or seed= "
				 "there, with commas between them",
				 (int)(end - text), text);
			return false;
		}
		value = text + strlen(flt_words[i].name) + 1;
		if (seen & 1u << i || !flt_read_value(c, &flt_words[i], value, end)) {
			snprintf(why, len, "\"%.*s\": write %s= once, with %s", (int)(end - text),
				 text, flt_words[i].name, flt_forms[flt_words[i].kind]);
			return false;
		}
		seen |= 1u << i;
		c->has_seed |= flt_words[i].kind == FLT_NUMBER;
		if (!*end)
			return true;
	}
}
