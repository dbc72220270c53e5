/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Results of probes between hosts. test/integ/info/info-probe makes probes. */
#include "info/info_peer.h"

#include <errno.h>
#include <netdb.h>

#include "unit/info/info_tree.h"

struct peer_case {
	enum info_peer_stage stage;
	int error;
	const char *path;
	enum info_verdict verdict;
	const char *id, *mend;
};

static void peer_check(const struct peer_case *it)
{
	struct info_peer_result result = { .stage = it->stage,
					   .error = it->error,
					   .version = PACKAGE_VERSION,
					   .step = "fi_getinfo" };
	struct info_report report = { 0 };

	info_peer_judge(&report, "far", "47474", it->path, &result);
	cr_expect_eq(report.cnt, 1);
	info_expect(&report, it->verdict, it->id, it->mend);
	info_report_fini(&report);
}

Test(info_peer, each_stage_has_its_verdict)
{
	static const struct peer_case cases[] = {
		{ INFO_PEER_RESOLVE, EAI_NONAME, "udp", INFO_BROKEN, "probe-host", "getent" },
		{ INFO_PEER_CONNECT, -ECONNREFUSED, "udp", INFO_BROKEN, "probe-no-listener",
		  "--listen" },
		{ INFO_PEER_CONNECT, -ETIMEDOUT, "udp", INFO_BROKEN, "probe-tcp", "47474/tcp" },
		{ INFO_PEER_CONNECT, -EHOSTUNREACH, "udp", INFO_BROKEN, "probe-tcp", "ping far" },
		{ INFO_PEER_TALK, -EPROTO, "udp", INFO_BROKEN, "probe-no-listener", "--listen" },
		{ INFO_PEER_KEY, -EACCES, "udp", INFO_BROKEN, "probe-key", "JOB_KEY" },
		{ INFO_PEER_OPEN_HERE, -61, "udp", INFO_BROKEN, "probe-endpoint", "this host" },
		{ INFO_PEER_OPEN_THERE, -61, "udp", INFO_BROKEN, "probe-endpoint", "far" },
		{ INFO_PEER_OPEN_HERE, -61, "nic", INFO_NOTE, "probe-no-nic", NULL },
		{ INFO_PEER_OPEN_THERE, -61, "nic", INFO_NOTE, "probe-no-nic", NULL },
		{ INFO_PEER_PING, -ETIMEDOUT, "udp", INFO_BROKEN, "probe-blocked",
		  "FI_COPYRPC_PORTS" },
		{ INFO_PEER_PING, -EIO, "nic", INFO_SLOW, "probe-nic", "shm,udp" },
		{ INFO_PEER_DONE, 0, "udp", INFO_GOOD, "probe-udp", NULL },
		{ INFO_PEER_DONE, 0, "nic", INFO_GOOD, "probe-nic-works", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		peer_check(&cases[i]);
}

Test(info_peer, versions_and_mtus_that_differ_are_named)
{
	struct info_peer_result result = {
		.stage = INFO_PEER_DONE, .version = "9.8", .mtu = 4096, .mtu_there = 1024
	};
	struct info_report report = { 0 };

	info_peer_judge(&report, "far", "1", "udp", &result);
	info_peer_judge(&report, "far", "1", "nic", &result);
	info_expect(&report, INFO_SLOW, "probe-version", "install copyrpc " PACKAGE_VERSION);
	cr_expect(strstr(info_expect(&report, INFO_SLOW, "probe-mtu", "mtu 9000")->text,
			 "4096 and that of far 1024"));
	cr_expect_eq(report.cnt, 5); /* the version once */
	info_report_fini(&report);
}
