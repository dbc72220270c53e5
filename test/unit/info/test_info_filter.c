/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Values of FI_PROVIDER, and warnings among other lines of a log. */
#include <criterion/criterion.h>
#include <string.h>

#include "info/info_filter.h"

Test(info_filter, follows_the_rules_of_libfabric)
{
	static const char *const good[] = {
		NULL,      "^",    "copyrpc", "tcp,copyrpc", "copyrpc;ofi_rxm", "ofi_rxm;copyrpc",
		"COPYRPC", "^tcp", "^tcp,shm"
	};
	static const char *const bad[] = { "",         "tcp",          "copyrpcx",   "copyrp",
					   "^copyrpc", "^tcp,copyrpc", "tcp;ofi_rxm" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect(info_filter_permits(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(info_filter_permits(bad[i]), "%s", bad[i]);
}

Test(info_filter, finds_the_warnings_of_copyrpc_alone)
{
	const char *log = "libfabric:1:2::core:core:f():3<warn> of the core\n"
			  "libfabric:1:2::copyrpc:fabric:f():3<info> no warning\n"
			  "noise\n"
			  "libfabric:1:2::copyrpc:fabric:f():3<warn> first: a <warn> in it\n"
			  "libfabric:1:2:copyrpc:ep_ctrl:f():3<warn> second";
	size_t len;
	const char *text = info_log_warning(&log, &len);

	cr_assert(text && len == strlen("first: a <warn> in it"));
	cr_expect(!strncmp(text, "first: a <warn> in it", len));
	text = info_log_warning(&log, &len);
	cr_assert(text && len == strlen("second"));
	cr_expect(!strncmp(text, "second", len));
	cr_expect_null(info_log_warning(&log, &len));
	cr_expect_null(info_log_warning(&log, &len));
}
