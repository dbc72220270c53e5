/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions behind core_chan.h: all operations exist, accepted messages leave, stop and close end.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "support/erpc_pair.h"

static struct erpc_pair p;

static const struct core_chan_ops *ops(void)
{
	return p.end[0].s->conn.chan.ops;
}

static struct core_chan *chan(void)
{
	return &p.end[0].s->conn.chan;
}

static void setup(void)
{
	erpc_pair_start(&p, 1, PAIR_MTU);
}

/* Operations that only rings have: devices do not access memory of sessions by themselves. */
static bool is_of_rings(unsigned entry)
{
	static const size_t offsets[] = {
		offsetof(struct core_chan_ops, direct),
		offsetof(struct core_chan_ops, access),
		offsetof(struct core_chan_ops, undirect),
		offsetof(struct core_chan_ops, reg),
		offsetof(struct core_chan_ops, withdraw),
		offsetof(struct core_chan_ops, resize),
		offsetof(struct core_chan_ops, tags_open),
		offsetof(struct core_chan_ops, positions),
	};

	for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		if (entry == offsets[i] / sizeof(void *))
			return true;
	return false;
}

/* Operations that only sessions of an engine with several transports have. */
static bool is_of_engines(unsigned entry)
{
	return entry == offsetof(struct core_chan_ops, drain) / sizeof(void *) ||
	       entry == offsetof(struct core_chan_ops, fail) / sizeof(void *) ||
	       entry == offsetof(struct core_chan_ops, better) / sizeof(void *);
}

Test(erpc_chan, every_operation_is_set)
{
	const struct core_chan_ops *both[] = { &erpc_chan_ops, &erpc_chan_eng_ops };
	struct core_chan_ops same;
	void *entries[sizeof(same) / sizeof(void *)];
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		memcpy(entries, both[i], sizeof(entries));
		for (k = 0; k < sizeof(entries) / sizeof(entries[0]); k++)
			if (is_of_rings(k))
				cr_expect_null(entries[k], "entry %u", k);
			else if (!is_of_engines(k))
				cr_expect_neq(entries[k], NULL, "entry %u", k);
	}
	same = erpc_chan_eng_ops;
	cr_expect_null(erpc_chan_ops.drain, "a session delivers at once");
	cr_expect_not_null(erpc_chan_eng_ops.drain);
	cr_expect_null(erpc_chan_ops.better, "there is one path");
	cr_expect_not_null(erpc_chan_eng_ops.better);
	cr_expect_null(erpc_chan_ops.fail, "there is no engine");
	cr_expect_not_null(erpc_chan_eng_ops.fail);
	same.drain = erpc_chan_ops.drain;
	same.fail = erpc_chan_ops.fail;
	same.better = erpc_chan_ops.better;
	same.stop = erpc_chan_ops.stop;
	same.close = erpc_chan_ops.close;
	cr_expect(!memcmp(&same, &erpc_chan_ops, sizeof(same)), "all other operations are equal");
	cr_expect_neq(erpc_chan_ops.stop, erpc_chan_eng_ops.stop);
	cr_expect_neq(erpc_chan_ops.close, erpc_chan_eng_ops.close);
}

Test(erpc_chan, is_busy_until_everything_is_acknowledged, .init = setup)
{
	cr_expect_not(ops()->is_busy(chan()));
	cr_assert_eq(pair_send(&p.end[0], CORE_SEND_MORE), 0);
	cr_expect(ops()->is_busy(chan()), "the message is in the open batch");
	ops()->flush(chan());
	cr_expect_eq(p.net.cnt.sent, 1);
	cr_expect(ops()->is_busy(chan()), "the message is in flight");
	erpc_pair_settle(&p);
	cr_expect_not(ops()->is_busy(chan()));
	ops()->await(chan());
	cr_expect_eq(p.net.cnt.sent, 2, "await sends nothing");
	erpc_pair_fini(&p);
}

Test(erpc_chan, stop_sends_accepted_messages, .init = setup)
{
	struct erpc_session *s = p.end[0].s;

	cr_assert_eq(pair_send(&p.end[0], CORE_SEND_MORE), 0);
	ops()->stop(chan());
	cr_expect_eq(p.end[0].ep->sessions[s->num], NULL, "packets do not find the session");
	cr_expect_eq(p.end[0].ep->bufs.used_cnt, 0);
	cr_expect_not(ops()->is_busy(chan()));
	cr_expect_neq(pair_send(&p.end[0], 0), 0, "sends are refused");
	erpc_pair_run(&p, 20000);
	cr_expect_eq(p.end[1].received, 1);
	cr_expect_eq(p.end[0].ep->stats->rx_no_session, 1, "the response to the message");
	erpc_pair_fini(&p);
}

Test(erpc_chan, retained_bytes_outlive_a_stop, .init = setup)
{
	p.end[0].retain_chance = 100;
	cr_assert_eq(pair_send(&p.end[1], 0), 0);
	erpc_pair_run(&p, 20000);
	cr_assert_eq(p.end[0].retained_cnt, 1);
	ops()->stop(chan());
	cr_expect_eq(p.end[0].ep->dg->rx_retained, 1);
	cr_assert(pair_release(&p.end[0]), "the bytes are unchanged");
	cr_expect_eq(p.end[0].ep->dg->rx_retained, 0);
	erpc_pair_fini(&p);
}
