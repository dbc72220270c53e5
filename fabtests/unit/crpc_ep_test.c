/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors of calls on an endpoint. Every row is a sentence of a page; where the page names the
 * error, that one is required, else any refusal.
 *
 * Pages: fi_endpoint(3) (fi_ep_bind, fi_enable, fi_getopt, ERRORS), fi_msg(3), fi_tagged(3),
 * fi_cm(3) (fi_getname), and fi_copyrpc(7) DIAGNOSTICS where the provider is copyrpc.
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"

#include <rdma/fi_tagged.h>

#define WANT                                                                                       \
	{                                                                                          \
		.caps = FI_MSG | FI_TAGGED, .alone = true                                          \
	}

static bool is_ours(const struct ft *ft)
{
	return !strcmp(ft->opts->provider, "copyrpc");
}

/* Opens everything but an enabled endpoint. */
static void half(struct ft_fab *fab, struct ft *ft)
{
	struct ft_want want = WANT;

	ft_fab_find(fab, ft, &want);
	ft_fab_domain(fab);
	ft_fab_queues(fab);
	fab->ops = ft_ops_open();
}

static void whole(struct ft_fab *fab, struct ft *ft)
{
	struct ft_want want = WANT;

	ft_fab_open(fab, ft, &want);
	if (fab->av)
		ft_fab_meet(fab);
}

/* ---- before it is enabled ---- */

static void run_not_enabled(struct ft *ft)
{
	struct ft_fab fab;
	char buf[8] = { 0 };

	half(&fab, ft);
	ft_fab_endpoint(&fab);
	FT_ROW(fi_recv(fab.ep, buf, 8, NULL, FI_ADDR_UNSPEC, buf), -FI_EOPBADSTATE);
	FT_ROW(fi_send(fab.ep, buf, 8, NULL, 0, buf), -FI_EOPBADSTATE);
	FT_ROW(fi_inject(fab.ep, buf, 8, 0), -FI_EOPBADSTATE);
	FT_ROW(fi_trecv(fab.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 0, 0, buf), -FI_EOPBADSTATE);
	FT_ROW(fi_tsend(fab.ep, buf, 8, NULL, 0, 0, buf), -FI_EOPBADSTATE);
	FT_ROW(fi_tinject(fab.ep, buf, 8, 0, 0), -FI_EOPBADSTATE);
	ft_fab_close(&fab);
}

static void run_enable_unbound(struct ft *ft)
{
	struct ft_fab fab;

	half(&fab, ft);
	FT_OK(fi_endpoint(fab.domain, fab.info, &fab.ep, NULL));
	if (fab.av)
		FT_OK(fi_ep_bind(fab.ep, &fab.av->fid, 0));
	if (fab.eq)
		FT_OK(fi_ep_bind(fab.ep, &fab.eq->fid, 0));
	FT_ROW(fi_enable(fab.ep), -FI_ENOCQ);
	FT_OK(fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_TRANSMIT));
	FT_ROW(fi_enable(fab.ep), -FI_ENOCQ); /* no queue for the completions of receives */
	FT_OK(fi_ep_bind(fab.ep, &fab.rx_cq->fid, FI_RECV));
	FT_ROW(fi_enable(fab.ep), 0); /* a refused call changes nothing */
	ft_fab_close(&fab);
}

static void run_enable_without_av(struct ft *ft)
{
	struct ft_fab fab;

	half(&fab, ft);
	if (!fab.av)
		ft_notrun("a connected endpoint needs no address vector");
	FT_OK(fi_endpoint(fab.domain, fab.info, &fab.ep, NULL));
	FT_OK(fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_TRANSMIT | FI_RECV));
	if (is_ours(ft))
		FT_ROW(fi_enable(fab.ep), -FI_ENOAV);
	else
		FT_REFUSED(fi_enable(fab.ep));
	ft_fab_close(&fab);
}

static void run_enable_twice(struct ft *ft)
{
	struct ft_fab fab;

	whole(&fab, ft);
	if (is_ours(ft))
		FT_ROW(fi_enable(fab.ep), -FI_EOPBADSTATE);
	ft_fab_close(&fab);
}

/* ---- binding ---- */

static void run_bind(struct ft *ft)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr, *other;
	struct ft_fab fab;

	half(&fab, ft);
	FT_OK(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	FT_OK(fi_cntr_open(fab.domain, &attr, &other, NULL));
	FT_OK(fi_endpoint(fab.domain, fab.info, &fab.ep, NULL));
	FT_REFUSED(fi_ep_bind(fab.ep, &fab.tx_cq->fid, 0)); /* without a direction */
	FT_REFUSED(fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_SELECTIVE_COMPLETION));
	FT_REFUSED(fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_TRANSMIT | 1ull << 62));
	FT_OK(fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_TRANSMIT));
	FT_REFUSED(fi_ep_bind(fab.ep, &fab.rx_cq->fid, FI_TRANSMIT)); /* one for each direction */
	FT_REFUSED(fi_ep_bind(fab.ep, &fab.rx_cq->fid, FI_TRANSMIT | FI_RECV));
	FT_OK(fi_ep_bind(fab.ep, &fab.rx_cq->fid, FI_RECV));
	FT_OK(fi_ep_bind(fab.ep, &cntr->fid, FI_SEND));
	FT_REFUSED(fi_ep_bind(fab.ep, &other->fid, FI_SEND)); /* one for each kind of operation */
	FT_OK(fi_ep_bind(fab.ep, &other->fid, FI_RECV));
	FT_REFUSED(fi_ep_bind(fab.ep, &fab.domain->fid, 0));
	FT_CLOSE(fab.ep);
	FT_CLOSE(cntr);
	FT_CLOSE(other);
	ft_fab_close(&fab);
}

static void run_bind_late(struct ft *ft)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;
	struct ft_fab fab;

	whole(&fab, ft);
	FT_OK(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	FT_REFUSED(fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_TRANSMIT | FI_RECV));
	FT_REFUSED(fi_ep_bind(fab.ep, &cntr->fid, FI_SEND));
	FT_CLOSE(cntr);
	ft_fab_close(&fab);
}

/* Objects of one domain cannot be bound to an endpoint of another. */
static void run_bind_foreign(struct ft *ft)
{
	struct ft_fab fab, other;

	half(&fab, ft);
	half(&other, ft);
	FT_OK(fi_endpoint(fab.domain, fab.info, &fab.ep, NULL));
	FT_REFUSED(fi_ep_bind(fab.ep, &other.tx_cq->fid, FI_TRANSMIT | FI_RECV));
	if (fab.av)
		FT_REFUSED(fi_ep_bind(fab.ep, &other.av->fid, 0));
	ft_fab_close(&fab);
	ft_fab_close(&other);
}

/* ---- closing what is in use ---- */

static void run_busy(struct ft *ft)
{
	struct ft_fab fab;
	char buf[8] = "message", in[8];
	struct ft_op *op;

	whole(&fab, ft);
	FT_ROW(fi_close(&fab.tx_cq->fid), -FI_EBUSY);
	if (fab.av)
		FT_ROW(fi_close(&fab.av->fid), -FI_EBUSY);
	if (fab.eq)
		FT_ROW(fi_close(&fab.eq->fid), -FI_EBUSY);
	FT_ROW(fi_close(&fab.domain->fid), -FI_EBUSY);
	FT_ROW(fi_close(&fab.fabric->fid), -FI_EBUSY);
	if (fab.av) { /* everything still works */
		op = ft_recv_post(&fab, true, 1, in, 8);
		ft_send_wait(&fab, FT_PLAIN,
			     (struct ft_msg){ .tagged = true, .tag = 1, .buf = buf, .len = 8 });
		ft_wait_good(&fab, op);
		FT_CHECK(!memcmp(in, buf, 8), "the message is wrong");
	}
	ft_fab_close(&fab);
}

static void run_busy_counter(struct ft *ft)
{
	struct fi_cntr_attr attr = { 0 };
	struct fid_cntr *cntr;
	struct ft_fab fab;

	half(&fab, ft);
	FT_OK(fi_cntr_open(fab.domain, &attr, &cntr, NULL));
	ft_fab_endpoint(&fab);
	FT_OK(fi_ep_bind(fab.ep, &cntr->fid, FI_SEND));
	ft_fab_enable(&fab);
	FT_ROW(fi_close(&cntr->fid), -FI_EBUSY);
	FT_CLOSE(fab.ep);
	FT_CLOSE(cntr);
	ft_fab_close(&fab);
}

/* ---- sending and receiving ---- */

static void run_too_long(struct ft *ft)
{
	struct ft_fab fab;
	size_t inject, most;
	char *buf;

	whole(&fab, ft);
	if (!fab.av)
		ft_notrun("not connected");
	inject = fab.info->tx_attr->inject_size;
	most = fab.info->ep_attr->max_msg_size;
	buf = calloc(1, inject + 1);
	FT_ROW(fi_inject(fab.ep, buf, inject + 1, fab.addr[0]), -FI_EMSGSIZE);
	FT_ROW(fi_tinject(fab.ep, buf, inject + 1, fab.addr[0], 0), -FI_EMSGSIZE);
	FT_ROW(fi_injectdata(fab.ep, buf, inject + 1, 0, fab.addr[0]), -FI_EMSGSIZE);
	if (most < SIZE_MAX) {
		FT_REFUSED(fi_send(fab.ep, buf, most + 1, NULL, fab.addr[0], buf));
		FT_REFUSED(fi_tsend(fab.ep, buf, most + 1, NULL, fab.addr[0], 0, buf));
	}
	ft_quiet(&fab, 0.02); /* a refused call has no completion */
	free(buf);
	ft_fab_close(&fab);
}

static void run_too_many_pieces(struct ft *ft)
{
	struct iovec iov[64];
	struct ft_fab fab;
	size_t tx, rx;
	char byte = 0;

	whole(&fab, ft);
	tx = fab.info->tx_attr->iov_limit + 1;
	rx = fab.info->rx_attr->iov_limit + 1;
	if (!fab.av || tx > 64 || rx > 64)
		ft_notrun("this suite has fewer pieces");
	for (int i = 0; i < 64; i++)
		iov[i] = (struct iovec){ .iov_base = &byte, .iov_len = 1 };
	FT_REFUSED(fi_sendv(fab.ep, iov, NULL, tx, fab.addr[0], iov));
	FT_REFUSED(fi_tsendv(fab.ep, iov, NULL, tx, fab.addr[0], 0, iov));
	FT_REFUSED(fi_recvv(fab.ep, iov, NULL, rx, FI_ADDR_UNSPEC, iov));
	FT_REFUSED(fi_trecvv(fab.ep, iov, NULL, rx, FI_ADDR_UNSPEC, 0, 0, iov));
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

static void run_bad_flags(struct ft *ft)
{
	struct fi_msg msg = { 0 };
	struct fi_msg_tagged tagged = { 0 };
	struct ft_fab fab;

	whole(&fab, ft);
	if (!fab.av)
		ft_notrun("not connected");
	msg.addr = tagged.addr = fab.addr[0];
	FT_REFUSED(fi_sendmsg(fab.ep, &msg, 1ull << 62));
	FT_REFUSED(fi_tsendmsg(fab.ep, &tagged, 1ull << 62));
	FT_REFUSED(fi_sendmsg(fab.ep, &msg, FI_PEEK));
	FT_REFUSED(fi_tsendmsg(fab.ep, &tagged, FI_CLAIM));
	FT_REFUSED(fi_recvmsg(fab.ep, &msg, 1ull << 62));
	FT_REFUSED(fi_trecvmsg(fab.ep, &tagged, 1ull << 62));
	FT_REFUSED(fi_trecvmsg(fab.ep, &tagged, FI_MULTI_RECV)); /* untagged receives only */
	if (is_ours(ft)) {                                       /* fi_copyrpc(7): not offered */
		FT_REFUSED(fi_sendmsg(fab.ep, &msg, FI_COMMIT_COMPLETE));
		FT_REFUSED(fi_sendmsg(fab.ep, &msg, FI_MULTICAST));
		FT_REFUSED(fi_trecvmsg(fab.ep, &tagged, FI_MATCH_COMPLETE));
	}
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

static void run_bad_address(struct ft *ft)
{
	struct ft_fab fab;
	fi_addr_t gone;

	whole(&fab, ft);
	if (!fab.av)
		ft_notrun("a connected endpoint ignores addresses");
	if (!is_ours(ft))
		ft_notrun("other providers are free to trust their callers");
	gone = fab.addr[0];
	FT_REFUSED(fi_send(fab.ep, NULL, 0, NULL, 12345, NULL));
	FT_REFUSED(fi_inject(fab.ep, NULL, 0, FI_ADDR_UNSPEC));
	FT_REFUSED(fi_tinject(fab.ep, NULL, 0, FI_ADDR_NOTAVAIL, 0));
	FT_OK(fi_av_remove(fab.av, &gone, 1, 0));
	FT_REFUSED(fi_send(fab.ep, NULL, 0, NULL, gone, NULL));
	FT_REFUSED(fi_tinject(fab.ep, NULL, 0, gone, 0));
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

/* Calls that need capabilities that the endpoint was not opened with. */
static void run_not_asked_for(struct ft *ft)
{
	struct ft_want want = { .caps = FI_TAGGED, .alone = true };
	struct ft_fab fab;
	char buf[8] = { 0 };

	ft_fab_open(&fab, ft, &want);
	if (!fab.av || !is_ours(ft))
		ft_notrun("not connected, or a provider that serves what was not asked for");
	ft_fab_meet(&fab);
	if (!(fab.info->caps & FI_MSG)) {
		FT_REFUSED(fi_send(fab.ep, buf, 8, NULL, fab.addr[0], buf));
		FT_REFUSED(fi_recv(fab.ep, buf, 8, NULL, FI_ADDR_UNSPEC, buf));
	}
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

/* ---- options, name, control ---- */

static void run_options(struct ft *ft)
{
	struct ft_fab fab;
	size_t value = 0, len = sizeof(value);
	char small;

	whole(&fab, ft);
	FT_ROW(fi_getopt(&fab.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len), 0);
	FT_ROW(len, sizeof(size_t));
	value = 100;
	FT_ROW(fi_setopt(&fab.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value,
			 sizeof(value)),
	       0);
	value = 0;
	len = sizeof(value);
	FT_ROW(fi_getopt(&fab.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len), 0);
	FT_ROW(value, 100);
	len = 1;
	FT_REFUSED(fi_getopt(&fab.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &small, &len));
	len = sizeof(value);
	FT_REFUSED(fi_getopt(&fab.ep->fid, FI_OPT_ENDPOINT, 9999, &value, &len));
	FT_REFUSED(fi_getopt(&fab.ep->fid, 77, FI_OPT_MIN_MULTI_RECV, &value, &len));
	FT_REFUSED(fi_setopt(&fab.ep->fid, FI_OPT_ENDPOINT, 9999, &value, sizeof(value)));
	FT_REFUSED(fi_setopt(&fab.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value,
			     sizeof(value))); /* read only */
	ft_fab_close(&fab);
}

static void run_name(struct ft *ft)
{
	char name[FT_NAME_LEN] = { 0 }, part[FT_NAME_LEN];
	size_t len = sizeof(name), short_len = 4;
	struct ft_fab fab;

	whole(&fab, ft);
	FT_OK(fi_getname(&fab.ep->fid, name, &len));
	memset(part, 0xEE, sizeof(part));
	FT_ROW(fi_getname(&fab.ep->fid, part, &short_len), -FI_ETOOSMALL);
	FT_ROW(short_len, len);
	FT_CHECK(!memcmp(part, name, 4) && (uint8_t)part[4] == 0xEE, "not cut at the length given");
	short_len = 0;
	FT_ROW(fi_getname(&fab.ep->fid, NULL, &short_len), -FI_ETOOSMALL);
	FT_ROW(short_len, len);
	ft_fab_close(&fab);
}

static void run_op_flags(struct ft *ft)
{
	struct ft_fab fab;
	uint64_t flags = FI_TRANSMIT;

	whole(&fab, ft);
	FT_ROW(fi_control(&fab.ep->fid, FI_GETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	FT_ROW(fi_control(&fab.ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT;
	FT_ROW(fi_control(&fab.ep->fid, FI_GETOPSFLAG, &flags), 0);
	FT_CHECK(flags & FI_DELIVERY_COMPLETE, "flags %#llx", (unsigned long long)flags);
	flags = FI_TRANSMIT | FI_RECV; /* not both */
	FT_REFUSED(fi_control(&fab.ep->fid, FI_GETOPSFLAG, &flags));
	flags = FI_DELIVERY_COMPLETE; /* neither */
	FT_REFUSED(fi_control(&fab.ep->fid, FI_SETOPSFLAG, &flags));
	FT_REFUSED(fi_control(&fab.ep->fid, 9999, &flags));
	ft_fab_close(&fab);
}

static void run_alias(struct ft *ft)
{
	struct ft_fab fab;
	struct fid_ep *alias = NULL;
	int err;

	whole(&fab, ft);
	err = fi_ep_alias(fab.ep, &alias, FI_TRANSMIT | FI_COMPLETION);
	if (err == -FI_ENOSYS) {
		ft_fab_close(&fab);
		ft_notrun("no aliases");
	}
	FT_OK(err);
	FT_ROW(fi_close(&fab.ep->fid), -FI_EBUSY); /* all aliases are closed first */
	FT_CLOSE(alias);
	FT_REFUSED(fi_ep_alias(fab.ep, &alias, FI_TRANSMIT | FI_RECV));
	ft_fab_close(&fab);
}

/* Cancelling an unknown context changes nothing. */
static void run_cancel_unknown(struct ft *ft)
{
	struct ft_fab fab;
	char nothing;

	whole(&fab, ft);
	fi_cancel(&fab.ep->fid, &nothing);
	fi_cancel(&fab.ep->fid, NULL);
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

#define ROW(name, function, sentence) FT_CASE(name, function, sentence, .procs = 1)

static const struct ft_case cases[] = {
	ROW("not-enabled", run_not_enabled, "A disabled endpoint takes no transfers."),
	ROW("enable-unbound", run_enable_unbound,
	    "Without queues for all that completes, fi_enable says -FI_ENOCQ."),
	ROW("enable-without-av", run_enable_without_av,
	    "A connectionless endpoint must be bound to an address vector."),
	ROW("enable-twice", run_enable_twice, "An enabled endpoint is not enabled again."),
	ROW("bind", run_bind, "One queue, one counter for each type of operation; known flags."),
	ROW("bind-late", run_bind_late, "Queues and counters are bound before fi_enable."),
	ROW("bind-foreign", run_bind_foreign, "Objects of another domain cannot be bound."),
	ROW("busy", run_busy, "What others use is not closed: -FI_EBUSY, and it still works."),
	ROW("busy-counter", run_busy_counter, "A bound counter is not closed: -FI_EBUSY."),
	ROW("too-long", run_too_long, "inject_size and max_msg_size are limits."),
	ROW("too-many-pieces", run_too_many_pieces, "iov_limit is a limit."),
	ROW("bad-flags", run_bad_flags, "Flags that a call does not know are refused."),
	ROW("bad-address", run_bad_address, "An address that is not in the vector is refused."),
	ROW("not-asked-for", run_not_asked_for, "Capabilities not asked for are not there."),
	ROW("options", run_options, "fi_getopt and fi_setopt know their options and sizes."),
	ROW("name", run_name, "A short buffer is filled and -FI_ETOOSMALL tells the length."),
	ROW("op-flags", run_op_flags, "FI_GETOPSFLAG and FI_SETOPSFLAG take one direction."),
	ROW("alias", run_alias, "An endpoint with an alias is not closed."),
	ROW("cancel-unknown", run_cancel_unknown, "Cancelling nothing completes nothing."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "What calls on an endpoint say when they are used wrongly.",
		       cases, FT_CNT(cases));
}
