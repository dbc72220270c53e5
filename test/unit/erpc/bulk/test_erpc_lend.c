/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that is taken back while it is fetched: from then on none of it leaves, and who fetches is told. */
#include "erpc/bulk/erpc_lend.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "support/erpc_pair.h"

#define US    1000u
#define MTU   1024u
#define PARTS 40u

static struct erpc_pair p;
static unsigned parts, refused; /* that the lender says */

static void look(struct fake_net *net, struct fake_pkt *pkt, void *arg)
{
	struct wire_erpc_hdr h = { 0 };

	(void)net;
	(void)arg;
	cr_assert(wire_erpc_get(&h, pkt->data, pkt->len));
	if (h.kind != WIRE_ERPC_RESP || h.req_num % ERPC_SLOTS != ERPC_GET_SLOT)
		return;
	parts += pkt->len > WIRE_ERPC_HDR_LEN;
	refused += h.req_type == WIRE_ERPC_REFUSED;
}

static void take_back(struct pair_get *g)
{
	g->loan.chan->ops->unlend(g->loan.chan, &g->loan);
	g->loan.chan = NULL;
}

/** The lender takes it back when so many parts have left. */
static void revoked_behind(unsigned cnt)
{
	struct pair_get *g = &p.end[0].gets[0];
	unsigned rounds;

	parts = refused = 0;
	erpc_pair_init(&p, 1);
	p.net.mtu = MTU;
	p.net.bytes_per_s = 1e9;
	erpc_pair_open(&p);
	p.net.hook = look;
	p.end[0].get_exact = PARTS * p.end[0].s->payload;
	cr_assert(pair_get(&p.end[0]));
	for (rounds = 0; parts < cnt; rounds++) {
		erpc_pair_run(&p, US);
		cr_assert_lt(rounds, 100000);
	}
	cr_assert(g->open);
	take_back(g);
	memset(p.end[1].memory, 0xEE, PAIR_GET_LEN);
	parts = 0;
	for (rounds = 0; g->open; rounds++) {
		erpc_pair_run(&p, US);
		cr_assert_lt(rounds, 100000, "who fetches is not told");
	}
	cr_expect_eq(parts, 0, "behind %u", cnt);
	cr_expect_gt(refused, 0);
	cr_expect_eq(g->get.status, -FI_EACCES);
	cr_expect_eq(memchr(g->buf, 0xEE, 1), NULL);
	cr_expect_eq(p.end[1].port->lent.used_cnt, 0);
	cr_assert(pair_get(&p.end[0]), "the session goes on");
	erpc_pair_settle(&p);
	cr_expect_eq(p.end[0].gets_done, 1);
	erpc_pair_fini(&p);
}

Test(erpc_lend, what_is_taken_back_leaves_no_more)
{
	unsigned cnt;

	for (cnt = 1; cnt < PARTS / 2; cnt++)
		revoked_behind(cnt);
}
