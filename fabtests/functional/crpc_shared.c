/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints of rank 0 share a receive and a transmit context: each message matches one receive,
 * in the order of the receives, at whichever endpoint it arrives, and contexts are closed last.
 *
 * Pages: fi_endpoint(3) (shared contexts, fi_stx_context, fi_srx_context), fi_getinfo(3).
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"

#include <rdma/fi_tagged.h>
#include <stdlib.h>

#define MSGS 40
#define LEN  3000

struct shared {
	struct ft_fab fab; /* includes the first endpoint */
	struct fid_ep *second;
	struct fid_ep *srx;
	struct fid_stx *stx;
	fi_addr_t addr[2]; /* of rank 0's endpoints */
};

static uint8_t bytes[MSGS][LEN];

static struct fid_ep *open_endpoint(struct shared *s)
{
	struct ft_fab *fab = &s->fab;
	struct fid_ep *ep;

	FT_OK(fi_endpoint(fab->domain, fab->info, &ep, NULL));
	FT_OK(fi_ep_bind(ep, &fab->av->fid, 0));
	FT_OK(fi_ep_bind(ep, &fab->tx_cq->fid, FI_TRANSMIT | FI_RECV));
	FT_OK(fi_ep_bind(ep, &s->stx->fid, 0));
	FT_OK(fi_ep_bind(ep, &s->srx->fid, 0));
	FT_OK(fi_enable(ep));
	return ep;
}

static void meet(struct shared *s)
{
	struct fid_ep *eps[2] = { s->fab.ep, s->second };
	uint8_t mine[FT_NAME_LEN] = { 0 }, theirs[FT_NAME_LEN];
	struct ft *ft = s->fab.ft;
	size_t len;

	for (int i = 0; i < 2; i++) {
		len = sizeof(mine);
		FT_OK(fi_getname(&eps[i]->fid, mine, &len));
		ft_swap(ft, !ft->rank, mine, theirs, sizeof(mine));
		FT_RET(fi_av_insert(s->fab.av, ft->rank ? theirs : mine, 1, &s->addr[i], 0, NULL),
		       1);
	}
}

static void begin(struct shared *s, struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG | FI_TAGGED, .alone = true, .shared = true };

	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("this case is about endpoints without connections");
	ft_fab_find(&s->fab, ft, &want);
	FT_CHECK(s->fab.info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT &&
			 s->fab.info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT,
		 "fi_getinfo met the hints with endpoints that share nothing");
	FT_CHECK(s->fab.info->domain_attr->max_ep_srx_ctx &&
			 s->fab.info->domain_attr->max_ep_stx_ctx,
		 "fi_getinfo offers shared contexts, and none of them");
	/* Another port for each endpoint. */
	ft_fab_domain(&s->fab);
	ft_fab_queues(&s->fab);
	s->fab.ops = ft_ops_open();
	FT_OK(fi_stx_context(s->fab.domain, s->fab.info->tx_attr, &s->stx, NULL));
	FT_OK(fi_srx_context(s->fab.domain, s->fab.info->rx_attr, &s->srx, NULL));
	s->fab.ep = open_endpoint(s);
	s->second = open_endpoint(s);
	ft->fab = &s->fab;
	meet(s);
}

static void end(struct shared *s)
{
	ft_quiet(&s->fab, 0.02);
	FT_CHECK(!ft_open_ops(&s->fab), "%u operations never completed", ft_open_ops(&s->fab));
	ft_sync(s->fab.ft);
	FT_RET(fi_close(&s->srx->fid), -FI_EBUSY);
	FT_RET(fi_close(&s->stx->fid), -FI_EBUSY);
	s->fab.ft->fab = NULL;
	FT_CLOSE(s->fab.ep);
	FT_CLOSE(s->second);
	FT_CLOSE(s->srx);
	FT_CLOSE(s->stx);
	ft_fab_close(&s->fab);
}

static struct ft_op *receive(struct shared *s, bool tagged, int i)
{
	struct ft_op *op = ft_op_new(&s->fab, FT_ONE);

	if (tagged)
		FT_POST(&s->fab, fi_trecv(s->srx, bytes[i], LEN, NULL, FI_ADDR_UNSPEC, (uint64_t)i,
					  0, &op->context));
	else
		FT_POST(&s->fab,
			fi_recv(s->srx, bytes[i], LEN, NULL, FI_ADDR_UNSPEC, &op->context));
	return op;
}

static void send(struct shared *s, bool tagged, int i)
{
	size_t len = i % 3 ? LEN : 8;
	struct ft_op *op = ft_op_new(&s->fab, FT_ONE);
	struct fid_ep *ep = i % 5 ? s->fab.ep : s->second;
	fi_addr_t to = s->addr[i % 2];

	ft_fill(bytes[i], len, (uint32_t)i);
	if (tagged)
		FT_POST(&s->fab, fi_tsend(ep, bytes[i], len, NULL, to, (uint64_t)i, &op->context));
	else
		FT_POST(&s->fab, fi_send(ep, bytes[i], len, NULL, to, &op->context));
	ft_wait_good(&s->fab, op);
}

static void check(struct ft_op *op, int i)
{
	size_t len = i % 3 ? LEN : 8;

	FT_CHECK(op->len == len && ft_wrong(bytes[i], len, (uint32_t)i) < 0,
		 "receive %d has another message", i);
}

/* Exchanges messages; `early`: before their receives are posted. */
static void exchange(struct ft *ft, bool tagged, bool early)
{
	struct ft_op *ops[MSGS];
	struct shared s = { 0 };

	begin(&s, ft);
	if (early)
		ft_sync(ft);
	for (int i = 0; ft->rank == 0 && !early && i < MSGS; i++)
		ops[i] = receive(&s, tagged, i);
	if (!early)
		ft_sync(ft);
	/* One at a time: between two endpoints there is no order. */
	for (int i = 0; i < MSGS; i++) {
		if (ft->rank)
			send(&s, tagged, i);
		if (early)
			ft_sync(ft);
		if (ft->rank == 0 && early)
			ops[i] = receive(&s, tagged, i);
		if (ft->rank == 0) {
			ft_wait(&s.fab, ops[i]);
			check(ops[i], i);
			ft_op_put(&s.fab, ops[i]);
		}
		ft_sync(ft);
	}
	end(&s);
}

static void run_posted(struct ft *ft)
{
	exchange(ft, ft->test->arg, false);
}

static void run_early(struct ft *ft)
{
	exchange(ft, ft->test->arg, true);
}

static void run_cancel(struct ft *ft)
{
	struct shared s = { 0 };
	struct ft_op *op, *kept = NULL;

	begin(&s, ft);
	if (ft->rank == 0) {
		op = receive(&s, false, 1);
		kept = receive(&s, false, 0);
		FT_OK(fi_cancel(&s.srx->fid, &op->context));
		ft_wait_bad(&s.fab, op, FI_ECANCELED);
		FT_REFUSED(fi_recv(s.fab.ep, bytes[2], LEN, NULL, FI_ADDR_UNSPEC, NULL));
	}
	ft_sync(ft);
	if (ft->rank) {
		send(&s, false, 0);
	} else {
		ft_wait(&s.fab, kept);
		check(kept, 0);
		ft_op_put(&s.fab, kept);
	}
	end(&s);
}

static const struct ft_case cases[] = {
	FT_CASE("posted", run_posted, "Messages to any endpoint take receives in order."),
	FT_CASE("posted-tagged", run_posted, "... tagged ones by their tag.", .arg = true),
	FT_CASE("early", run_early, "Receives take what has come already."),
	FT_CASE("early-tagged", run_early, "... tagged ones by their tag.", .arg = true),
	FT_CASE("cancel", run_cancel, "A receive of the context is cancelled there, once."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Shared contexts.", cases, FT_CNT(cases));
}
