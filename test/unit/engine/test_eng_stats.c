/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which rows of the statistics page an engine's objects have, and when. (engine/eng_stats.h) */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "engine/eng_stats.h"
#include "eng_fixture.h"
#include "util/event.h"
#include "util/job.h"
#include "util/stats.h"

Test(eng_stats, a_connection_has_a_row_with_path_and_address_while_it_is_up, .timeout = 200)
{
	struct copyrpc_stats_addr addr;
	struct copyrpc_stats_peer *row;
	struct util_job_name self;

	wholes_meet(&fake_transports_second, &fake_transports_second);
	row = wholes[0].chan->stats;
	util_stats_set_addr(&addr, (struct sockaddr *)&wholes[1].addr);
	cr_expect_eq(row->row.state, COPYRPC_STATS_LIVE);
	cr_expect_eq(memcmp(&row->addr, &addr, sizeof(addr)), 0);
	cr_expect_eq(row->path, COPYRPC_STATS_NIC);
	cr_expect_eq(row->endpoint, util_stats_index(COPYRPC_STATS_ENDPOINTS, wholes[0].ep.stats));
	cr_expect_neq(row, wholes[1].chan->stats);
	util_job_self(&self);
	cr_expect_eq(row->pid, self.pid);
	cr_expect_eq(row->rank, self.rank);
	cr_expect_str_eq(row->host, self.host);
	cr_expect_str_eq(wholes[0].chan->identity->host, self.host);
	cr_expect_eq(wholes[0].ep.stats->connects, 1);
	whole_close_chan(&wholes[0]);
	cr_expect_eq(row->row.state, COPYRPC_STATS_ENDED);
	wholes_until(&wholes[1].down);
	cr_expect_eq(wholes[1].ep.stats->closed, 1);
	wholes_close();
}

/** Returns the number of events of a kind; *last is the last of them. */
static unsigned events(uint32_t kind, struct copyrpc_stats_event *last)
{
	const struct copyrpc_stats_page *page = util_stats_page();
	const struct copyrpc_stats_event *rows =
		(const void *)((const char *)page + page->tables[COPYRPC_STATS_EVENTS].offset);
	struct copyrpc_stats_event event;
	unsigned cnt = 0;

	for (uint32_t i = 1; i < UTIL_STATS_EVENTS; i++)
		if (util_event_read(&rows[i], &event) && event.kind == kind) {
			*last = event;
			cnt++;
		}
	return cnt;
}

Test(eng_stats, the_life_of_a_connection_is_recorded, .timeout = 200)
{
	struct copyrpc_stats_event event;

	wholes_meet(&fake_transports_second, &fake_transports_second);
	cr_expect_geq(events(COPYRPC_STATS_CONNECTING, &event), 1);
	cr_expect_neq(event.peer.port, 0);
	cr_expect_eq(events(COPYRPC_STATS_CONNECTED, &event), 2, "both ends are in this process");
	cr_expect_eq(event.values[0], wholes[0].chan->stats->path);
	cr_expect_eq(event.values[1], 0, "no better path is offered");
	cr_expect_eq(events(COPYRPC_STATS_LOST, &event), 0);
	eng_conn_fail(eng_conn_of(wholes[0].chan), -FI_EIO);
	whole_progress(&wholes[0]);
	cr_expect_eq(events(COPYRPC_STATS_LOST, &event), 1);
	cr_expect_eq(event.values[1], FI_EIO);
	wholes_until(&wholes[1].down);
	wholes_close();
	cr_expect_eq(events(COPYRPC_STATS_CLOSED_HERE, &event), 0, "a lost one is not closed");
}

Test(eng_stats, a_failure_is_counted_by_its_kind, .timeout = 200)
{
	struct copyrpc_stats_peer *row;

	wholes_meet(&fake_transports_second, &fake_transports_second);
	row = wholes[0].chan->stats;
	eng_conn_fail(eng_conn_of(wholes[0].chan), -FI_EIO);
	whole_progress(&wholes[0]);
	cr_expect_eq(row->error, FI_EIO);
	cr_expect_eq(wholes[0].ep.stats->broken, 1);
	cr_expect_eq(wholes[0].ep.stats->closed, 0);
	wholes_until(&wholes[1].down);
	wholes_close();
}

Test(eng_stats, each_error_has_one_kind)
{
	struct copyrpc_stats_endpoint row = { .row.state = COPYRPC_STATS_LIVE };
	struct core_ep ep = { .stats = &row };
	struct core_engine_ep eep = { .ep = &ep };
	static const int errs[] = { FI_ESHUTDOWN,    FI_ECONNRESET, FI_ECONNABORTED, FI_ETIMEDOUT,
				    FI_ECONNREFUSED, FI_EACCES,     FI_EHOSTUNREACH, FI_EIO };

	struct sockaddr_in addr = { .sin_family = AF_INET };

	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++)
		eng_stats_failed(&eep, (const struct sockaddr *)&addr, -errs[i]);
	cr_expect_eq(row.closed, 1);
	cr_expect_eq(row.died, 2);
	cr_expect_eq(row.silent, 1);
	cr_expect_eq(row.refused, 2);
	cr_expect_eq(row.unreachable, 1);
	cr_expect_eq(row.broken, 1);
}

Test(eng_stats, gets_and_shortages_are_counted)
{
	struct copyrpc_stats_peer row = { .row.state = COPYRPC_STATS_LIVE };
	struct core_chan chan = { .stats = &row };
	struct core_get get = { .len = 100 };

	eng_stats_get(&chan, &get);
	get.status = -FI_EIO;
	eng_stats_get(&chan, &get);
	cr_expect_eq(row.gets, 1);
	cr_expect_eq(row.get_bytes, 100);
	cr_expect_eq(row.get_errors, 1);
	for (int i = CORE_SHORT_CREDIT; i < CORE_SHORT_CNT; i++) {
		chan.shortage = (enum core_shortage)i;
		eng_stats_shortage(&chan);
	}
	cr_expect_eq(row.no_credit, 1);
	cr_expect_eq(row.no_space, 1);
	cr_expect_eq(row.no_queue, 1);
	cr_expect_eq(row.no_memory, 1);
}
