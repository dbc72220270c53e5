/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_COPYRPC_FAULT: valid settings, and the error texts for others. */
#include "dev/fault/flt_config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct flt_config c;
static char why[256];

static bool reads(const char *text)
{
	why[0] = 0;
	return flt_config_read(&c, text, why, sizeof(why));
}

Test(flt_config, a_full_setting_is_parsed)
{
	cr_assert(reads("drop=0.01,dup=0.02,reorder=0.05,delay=2ms,corrupt=0.001,seed=7"), "%s",
		  why);
	cr_expect_eq(c.drop, 10000);
	cr_expect_eq(c.dup, 20000);
	cr_expect_eq(c.reorder, 50000);
	cr_expect_eq(c.corrupt, 1000);
	cr_expect_eq(c.delay_ns, 2000000);
	cr_expect_eq(c.seed, 7);
	cr_expect(c.has_seed);
}

Test(flt_config, one_word_is_enough_and_the_order_is_free)
{
	cr_assert(reads("drop=0.000001"));
	cr_expect_eq(c.drop, 1);
	cr_expect_not(c.has_seed);
	cr_assert(reads("seed=18446744073709551615,drop=1"));
	cr_expect_eq(c.drop, FLT_MILLION);
	cr_expect_eq(c.seed, UINT64_MAX);
	cr_assert(reads("dup=.5,drop=0"));
	cr_expect_eq(c.dup, 500000);
}

Test(flt_config, times_have_units)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = { { "delay=1ns", 1 },
		      { "delay=1.5us", 1500 },
		      { "delay=0ms", 0 },
		      { "delay=10s", FLT_DELAY_MAX_NS } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert(reads(cases[i].text), "%s", cases[i].text);
		cr_expect_eq(c.delay_ns, cases[i].ns, "%s", cases[i].text);
	}
}

/* The error text quotes the wrong part and names the remedy. */
Test(flt_config, a_malformed_setting_is_refused_with_its_remedy)
{
	static const char *const cases[][3] = {
		{ "", "\"\"", "drop=" },
		{ "drop", "\"drop\"", "drop=" },
		{ "drop=", "\"drop=\"", "0.01" },
		{ "drop=1.1", "\"drop=1.1\"", "from 0 to 1" },
		{ "drop=-1", "\"drop=-1\"", "from 0 to 1" },
		{ "drop=1%", "\"drop=1%\"", "0.01" },
		{ "drop=nan", "\"drop=nan\"", "0.01" },
		{ "drop=0x1", "\"drop=0x1\"", "0.01" },
		{ "drop=0.0.1", "\"drop=0.0.1\"", "0.01" },
		{ "drop=.", "\"drop=.\"", "0.01" },
		{ "drop=0.1,", "\"\"", "commas" },
		{ "drop=0.1 dup=0.1", "\"drop=0.1 dup=0.1\"", "0.01" },
		{ "drop=0.1,drop=0.2", "\"drop=0.2\"", "once" },
		{ "loss=0.1", "\"loss=0.1\"", "drop=" },
		{ "Drop=0.1", "\"Drop=0.1\"", "drop=" },
		{ "delay=2", "\"delay=2\"", "2ms" },
		{ "delay=11s", "\"delay=11s\"", "10s" },
		{ "delay=2 ms", "\"delay=2 ms\"", "2ms" },
		{ "delay=ms", "\"delay=ms\"", "2ms" },
		{ "delay=99999999999999999999999999999s", "\"delay=9", "10s" },
		{ "seed=", "\"seed=\"", "7" },
		{ "seed=-7", "\"seed=-7\"", "7" },
		{ "seed=18446744073709551616", "\"seed=1", "7" },
		{ "seed=7x", "\"seed=7x\"", "7" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_expect_not(reads(cases[i][0]), "%s", cases[i][0]);
		cr_expect_not_null(strstr(why, cases[i][1]), "%s: %s", cases[i][0], why);
		cr_expect_not_null(strstr(why, cases[i][2]), "%s: %s", cases[i][0], why);
	}
}

Test(flt_config, a_setting_of_any_length_fits_the_error_text)
{
	char lengthy[1000], small[8];

	memset(lengthy, 'x', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = 0;
	cr_expect_not(reads(lengthy));
	cr_expect_lt(strlen(why), sizeof(why));
	cr_expect_not(flt_config_read(&c, lengthy, small, sizeof(small)));
	cr_expect_eq(strlen(small), sizeof(small) - 1);
}
