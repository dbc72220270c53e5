/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Verdicts on times of messages. Scripts of test/integ/info measure such times. */
#include "info/info_pace.h"

#include "unit/info/info_tree.h"

static const struct info_pace_path near_path = { "trial", "fine", "late", 100000, false };
static const struct info_pace_path far_path = { "probe", "fine", "late", 100000, true };

/* Judges it, and expects this finding alone. Returns its text, which lasts until the next call. */
static const char *pace_check(const struct info_pace_path *path, struct info_pace pace,
			      enum info_verdict verdict, const char *mend)
{
	static struct info_report report;
	const struct info_finding *it;

	info_report_fini(&report);
	memset(&report, 0, sizeof(report));
	info_pace_judge(&report, path, "over it", &pace);
	cr_expect_eq(report.cnt, 1);
	it = info_expect(&report, verdict, verdict == INFO_GOOD ? "fine" : "late", mend);
	cr_expect_str_eq(it->topic, path->topic);
	return it->text;
}

Test(info_pace, a_time_within_the_bound_is_good)
{
	struct info_pace pace = { .short_ns = 100000, .long_ns = 1048576, .best_ns = 300 };

	cr_expect_str_eq(
		pace_check(&near_path, pace, INFO_GOOD, NULL),
		"over it: 100.00 us one way for 8 bytes (the fastest: 0.30 us), 1000 MB/s with "
		"1 MiB");
}

Test(info_pace, preemption_without_delay_is_good)
{
	struct info_pace pace = { .short_ns = 400, .long_ns = 1, .shared = 1000 };

	pace_check(&near_path, pace, INFO_GOOD, NULL);
}

Test(info_pace, on_a_shared_processor_the_machine_is_busy)
{
	struct info_pace pace = {
		.short_ns = 2500000, .long_ns = 1, .best_ns = 300, .shared = INFO_PACE_ROUNDS
	};
	const char *text = pace_check(&near_path, pace, INFO_SLOW, "leave a processor");

	cr_expect(strstr(text, "2500.00 us one way for 8 bytes (the fastest: 0.30 us)"));
	cr_expect(strstr(text, "others had this one 200 times"));
	pace_check(&far_path, pace, INFO_SLOW, "leave a processor");
}

Test(info_pace, on_processors_of_their_own_the_path_is_slow)
{
	struct info_pace pace = { .short_ns = 100001, .long_ns = 1, .best_ns = 90000, .shared = 2 };

	cr_expect(!strstr(pace_check(&near_path, pace, INFO_SLOW, "--only processor"), "load"));
	pace_check(&far_path, pace, INFO_SLOW, "FI_COPYRPC_IFACE");
}

Test(info_pace, times_of_zero_are_printed)
{
	struct info_pace pace = { 0 };

	cr_expect(strstr(pace_check(&near_path, pace, INFO_GOOD, NULL), "MB/s"));
}
