/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options: defaults, each bound, and what is refused. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>

#include "benchkv/kv_conf.h"

static struct kv_conf conf;

static int parse(const char *a, const char *b)
{
	char *argv[] = { "copyrpc_benchkv", (char *)(uintptr_t)a, (char *)(uintptr_t)b, NULL };

	return kv_conf_parse(&conf, !a ? 1 : !b ? 2 : 3, argv);
}

TestSuite(kv_conf, .init = cr_redirect_stderr);

Test(kv_conf, defaults_are_those_of_the_manual_page)
{
	cr_assert_eq(parse(NULL, NULL), 0);
	cr_expect_eq(conf.backend, KV_DELEGATION);
	cr_expect_eq(conf.daemons, 2);
	cr_expect_eq(conf.clients, 4);
	cr_expect_eq(conf.depth, 4);
	cr_expect_eq(conf.keys, 1024);
	cr_expect_eq(conf.value_len, 32);
	cr_expect_eq(conf.runs, 3);
	cr_expect_eq(conf.spin_us, 20);
	cr_expect_not(conf.processes || conf.remote_only || conf.pinned || conf.cores);
}

Test(kv_conf, each_back_end_is_found_by_its_name)
{
	for (unsigned i = 0; i < KV_BACKENDS; i++) {
		cr_assert_eq(parse("-b", kv_backend_name((enum kv_backend)i)), 0);
		cr_expect_eq(conf.backend, i);
	}
	cr_expect_eq(parse("-b", "delegat"), -EINVAL);
}

Test(kv_conf, a_node_that_stops_or_dies_needs_runs_before_and_after)
{
	cr_expect_eq(parse("-xstop", NULL), 0);
	cr_expect(conf.fate == KV_STOPS && conf.pinned);
	cr_expect_eq(parse("-xkill", "-n4"), 0);
	cr_expect(conf.fate == KV_DIES && kv_conf_fatal_run(&conf) == 2);
	cr_expect_eq(parse("-xkill", "-n2"), -EINVAL);
	cr_expect_eq(parse("-xstop", "-bmpi"), -EINVAL);
	cr_expect_eq(parse("-x", "sleep"), -EINVAL);
}

Test(kv_conf, numbers_are_accepted_up_to_their_bounds)
{
	static const struct {
		const char *opt, *low, *high, *below, *above;
	} row[] = {
		{ "-K", "1", "64", "0", "65" },
		{ "-C", "1", "512", "0", "513" },
		{ "-q", "1", "1024", "0", "1025" },
		{ "-v", "32", "4096", "31", "4097" },
		{ "-r", "0", "1", "-0.1", "1.01" },
		{ "-n", "1", "1000", "0", "1001" },
		{ "-d", "0.01", "86400", "0", "86401" },
		{ "-S", "0", "1000000", "-1", "1000001" },
		{ "-k", "1", "67108864", "0", "67108865" },
	};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		cr_expect_eq(parse(row[i].opt, row[i].low), 0, "%s", row[i].opt);
		cr_expect_eq(parse(row[i].opt, row[i].high), 0, "%s", row[i].opt);
		cr_expect_eq(parse(row[i].opt, row[i].below), -EINVAL, "%s", row[i].opt);
		cr_expect_eq(parse(row[i].opt, row[i].above), -EINVAL, "%s", row[i].opt);
		cr_expect_eq(parse(row[i].opt, "x"), -EINVAL, "%s", row[i].opt);
		cr_expect_eq(parse(row[i].opt, "1x"), -EINVAL, "%s", row[i].opt);
		cr_expect_eq(parse(row[i].opt, ""), -EINVAL, "%s", row[i].opt);
	}
	cr_expect_eq(parse("-z", "nan"), -EINVAL);
}

Test(kv_conf, what_is_not_an_option_is_refused)
{
	cr_expect_eq(parse("fast", NULL), -EINVAL);
	cr_expect_eq(parse("-Q", NULL), -EINVAL);
	cr_expect_eq(parse("-K", NULL), -EINVAL);
	cr_expect_eq(parse("-R", "more"), -EINVAL);
}
