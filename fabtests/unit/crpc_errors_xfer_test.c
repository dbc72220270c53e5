/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors that the pages promise for each transfer, and for each call that reads a queue. A case is
 * a page, a line a rule (common/ft_rule.h). See crpc_errors_test.
 */
#include "common/ft_rule.h"
#include "common/ft_mr.h"
#include "util/fi_old.h"

#include <poll.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>

/* ---- fi_msg(3), fi_tagged(3) ---- */

static void run_msg(struct ft *ft)
{
	struct iovec iov[64] = { 0 };
	struct fi_msg msg = { 0 };
	char buf[64] = "more than fits", in[4];
	struct ft_fab fab;
	size_t inject, pieces;
	uint8_t *big;

	ft_rule_whole(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	inject = fab.info->tx_attr->inject_size;
	pieces = fab.info->tx_attr->iov_limit + 1;
	big = calloc(1, inject + 1);
	msg.addr = fab.addr[0];
	RULE("fi_copyrpc(7): longer than inject_size", fi_inject(fab.ep, big, inject + 1, msg.addr),
	     -FI_EMSGSIZE);
	REFUSED("more than iov_limit pieces",
		fi_sendv(fab.ep, iov, NULL, pieces, fab.addr[0], NULL));
	REFUSED("an unknown flag", fi_sendmsg(fab.ep, &msg, BAD_FLAG));
	REFUSED("an unknown flag of a receive", fi_recvmsg(fab.ep, &msg, BAD_FLAG));
	OURS("fi_copyrpc(7): an unknown flag", fi_sendmsg(fab.ep, &msg, BAD_FLAG), -FI_EBADFLAGS);
	OURS("fi_copyrpc(7): what is not offered", fi_sendmsg(fab.ep, &msg, FI_COMMIT_COMPLETE),
	     -FI_EBADFLAGS);
	OURS("fi_av(3): an address that is not there",
	     fi_send(fab.ep, buf, 1, NULL, fab.addr[0] + 1000, NULL), -FI_EINVAL);
	FT_POST(&fab, fi_inject(fab.ep, buf, 8, fab.addr[0]));
	RULE("fi_cq(3): a message that overruns its buffer",
	     ENDS(&fab, op, fi_recv(fab.ep, in, 4, NULL, FI_ADDR_UNSPEC, &op->context)), FI_ETRUNC);
	ft_quiet(&fab, 0.02);
	free(big);
	ft_fab_close(&fab);
}

static ssize_t peek(struct ft_fab *fab, struct ft_op *op, uint64_t flags)
{
	struct fi_msg_tagged msg = { .tag = 5, .addr = FI_ADDR_UNSPEC, .context = &op->context };

	return fi_trecvmsg(fab->ep, &msg, flags);
}

static void run_tagged(struct ft *ft)
{
	struct fi_msg_tagged msg = { 0 };
	char buf[8] = "message", in[4];
	struct ft_fab fab;

	ft_rule_whole(&fab, ft, (struct ft_want){ .caps = FI_TAGGED });
	msg.addr = fab.addr[0];
	RULE("a peek finds nothing", ENDS(&fab, op, peek(&fab, op, FI_PEEK)), FI_ENOMSG);
	RULE("a peek that would claim", ENDS(&fab, op, peek(&fab, op, FI_PEEK | FI_CLAIM)),
	     FI_ENOMSG);
	REFUSED("many messages with one tag", fi_trecvmsg(fab.ep, &msg, FI_MULTI_RECV));
	REFUSED("a claim of a send", fi_tsendmsg(fab.ep, &msg, FI_CLAIM));
	REFUSED("an unknown flag", fi_tsendmsg(fab.ep, &msg, BAD_FLAG));
	FT_POST(&fab, fi_tinject(fab.ep, buf, 8, fab.addr[0], 5));
	RULE("fi_cq(3): a message that overruns its buffer",
	     ENDS(&fab, op, fi_trecv(fab.ep, in, 4, NULL, FI_ADDR_UNSPEC, 5, 0, &op->context)),
	     FI_ETRUNC);
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

/* ---- fi_rma(3), fi_atomic(3) ---- */

/* Returns the error of a write of 8 bytes at this offset of the region. */
static int write_ends(struct ft_fab *fab, const struct ft_region *r, uint64_t key, uint64_t off)
{
	uint64_t word = 0;

	return ENDS(fab, op,
		    fi_write(fab->ep, &word, 8, NULL, fab->addr[0], r->here.base + off, key,
			     &op->context));
}

static int read_ends(struct ft_fab *fab, const struct ft_region *r, uint64_t off)
{
	uint64_t word = 0;

	return ENDS(fab, op,
		    fi_read(fab->ep, &word, 8, NULL, fab->addr[0], r->here.base + off, r->here.key,
			    &op->context));
}

static void run_rma(struct ft *ft)
{
	struct ft_region all, mute, gone;
	struct fi_msg_rma msg = { 0 };
	struct ft_fab fab;

	ft_rule_whole(&fab, ft, (struct ft_want){ .caps = FI_MSG | FI_RMA });
	ft_region_open(&fab, &all, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 11);
	ft_region_open(&fab, &mute, 64, FI_REMOTE_READ, 12);
	ft_region_open(&fab, &gone, 64, FI_REMOTE_WRITE, 13);
	RULE("an access within the region", write_ends(&fab, &all, all.here.key, 56), 0);
	FAILS("one byte beyond it", write_ends(&fab, &all, all.here.key, 57), FI_EINVAL);
	FAILS("far beyond it", read_ends(&fab, &all, 1ull << 40), FI_EINVAL);
	FAILS("a region that was never there", write_ends(&fab, &all, 999, 0), FI_EKEYREJECTED);
	FAILS("a right that was not given", write_ends(&fab, &mute, mute.here.key, 0), FI_EACCES);
	FAILS("another one", read_ends(&fab, &gone, 0), FI_EACCES);
	ft_region_close(&gone);
	FAILS("fi_mr(3): a closed region", write_ends(&fab, &gone, gone.here.key, 0),
	      FI_EKEYREJECTED);
	RULE("fi_mr(3): the endpoint is unaffected", read_ends(&fab, &mute, 0), 0);
	msg.addr = fab.addr[0];
	REFUSED("an unknown flag", fi_writemsg(fab.ep, &msg, BAD_FLAG));
	REFUSED("an unknown flag of a read", fi_readmsg(fab.ep, &msg, BAD_FLAG));
	ft_region_close(&all);
	ft_region_close(&mute);
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

static int add_ends(struct ft_fab *fab, const struct ft_region *r, uint64_t off)
{
	uint64_t word = 1;

	return ENDS(fab, op,
		    fi_atomic(fab->ep, &word, 1, NULL, fab->addr[0], r->here.base + off,
			      r->here.key, FI_UINT64, FI_SUM, &op->context));
}

static void run_atomic(struct ft *ft)
{
	struct ft_region all, mute;
	struct ft_fab fab;
	uint64_t word = 1, old, target;
	size_t count;

	ft_rule_whole(&fab, ft, (struct ft_want){ .caps = FI_MSG | FI_ATOMIC });
	ft_region_open(&fab, &all, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 11);
	ft_region_open(&fab, &mute, 64, FI_REMOTE_READ, 12);
	target = all.here.base;
	RULE("no such operation", fi_atomicvalid(fab.ep, FI_UINT64, 99, &count), -FI_EOPNOTSUPP);
	RULE("no such type", fi_atomicvalid(fab.ep, 99, FI_SUM, &count), -FI_EOPNOTSUPP);
	RULE("a float has no bits", fi_atomicvalid(fab.ep, FI_FLOAT, FI_BOR, &count),
	     -FI_EOPNOTSUPP);
	RULE("a read is not without result",
	     fi_atomicvalid(fab.ep, FI_UINT64, FI_ATOMIC_READ, &count), -FI_EOPNOTSUPP);
	RULE("a swap under a condition compares",
	     fi_fetch_atomicvalid(fab.ep, FI_UINT64, FI_CSWAP, &count), -FI_EOPNOTSUPP);
	FT_OK(fi_atomicvalid(fab.ep, FI_UINT64, FI_SUM, &count));
	RULE("one element too many", /* refused before it is read */
	     fi_atomic(fab.ep, &word, count + 1, NULL, fab.addr[0], target, all.here.key, FI_UINT64,
		       FI_SUM, NULL),
	     -FI_EMSGSIZE);
	RULE("an operation that is not supported",
	     fi_atomic(fab.ep, &word, 1, NULL, fab.addr[0], target, all.here.key, FI_FLOAT, FI_BOR,
		       NULL),
	     -FI_EOPNOTSUPP);
	RULE("a comparison that fetch-atomics have not",
	     fi_fetch_atomic(fab.ep, &word, 1, NULL, &old, NULL, fab.addr[0], target, all.here.key,
			     FI_UINT64, FI_CSWAP, NULL),
	     -FI_EOPNOTSUPP);
	RULE("an access within the region", add_ends(&fab, &all, 56), 0);
	FAILS("beyond it", add_ends(&fab, &all, 64), FI_EINVAL);
	FAILS("a right that was not given", add_ends(&fab, &mute, 0), FI_EACCES);
	OURS("fi_copyrpc(7): a target that is not aligned", add_ends(&fab, &all, 1), FI_EINVAL);
	ft_region_close(&all);
	ft_region_close(&mute);
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

/* ---- fi_cq(3), fi_eq(3), fi_cntr(3), fi_poll(3) ---- */

static void run_cq(struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG, .wait = FI_WAIT_FD };
	struct fi_cq_err_entry bad = { 0 };
	struct fi_cq_tagged_entry e;
	struct fid_cq *cq;
	struct ft_fab fab;
	fi_addr_t src;
	char in[4];

	ft_rule_whole(&fab, ft, want);
	RULE("nothing to read", fi_cq_read(fab.tx_cq, &e, 1), -FI_EAGAIN);
	RULE("nothing, from anybody", fi_cq_readfrom(fab.tx_cq, &e, 1, &src), -FI_EAGAIN);
	RULE("no error to read", fi_cq_readerr(fab.tx_cq, &bad, 0), -FI_EAGAIN);
	RULE("a time out", fi_cq_sread(fab.tx_cq, &e, 1, NULL, 1), -FI_EAGAIN);
	RULE("a time out, from anybody", fi_cq_sreadfrom(fab.tx_cq, &e, 1, &src, NULL, 1),
	     -FI_EAGAIN);
	RULE("an endpoint uses it", fi_close(&fab.tx_cq->fid), -FI_EBUSY);
	FT_OK(fi_recv(fab.ep, in, 1, NULL, FI_ADDR_UNSPEC, in));
	FT_POST(&fab, fi_inject(fab.ep, "abc", 3, fab.addr[0]));
	RULE("an error is the next one", fi_cq_sread(fab.tx_cq, &e, 1, NULL, 30000), -FI_EAVAIL);
	RULE("... until it is taken", fi_cq_read(fab.tx_cq, &e, 1), -FI_EAVAIL);
	RULE("one error is taken", fi_cq_readerr(fab.tx_cq, &bad, 0), 1);
	FT_OK(fi_cq_open(fab.domain, &(struct fi_cq_attr){ 0 }, &cq, NULL));
	REFUSED("no wait object: no sleep", fi_cq_sread(cq, &e, 1, NULL, 1));
	REFUSED("no wait object: no signal", fi_cq_signal(cq));
	FT_CLOSE(cq);
	REFUSED("an unknown format",
		fi_cq_open(fab.domain, &(struct fi_cq_attr){ .format = 99 }, &cq, NULL));
	REFUSED("a wait set that is not there",
		fi_cq_open(fab.domain, &(struct fi_cq_attr){ .wait_obj = FI_WAIT_SET }, &cq, NULL));
	ft_fab_close(&fab);
}

static void run_eq(struct ft *ft)
{
	struct fi_eq_attr waits = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };
	struct fi_eq_err_entry bad = { 0 };
	struct fi_eq_entry e = { 0 };
	struct ft_fab fab;
	struct fid_eq *eq;
	uint32_t event;

	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	FT_OK(fi_eq_open(fab.fabric, &waits, &eq, NULL));
	RULE("nothing to read", fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	RULE("no error to read", fi_eq_readerr(eq, &bad, 0), -FI_EAGAIN);
	RULE("a time out", fi_eq_sread(eq, &event, &e, sizeof(e), 1, 0), -FI_EAGAIN);
	RULE("what is written has its length", fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0),
	     sizeof(e));
	RULE("... when it is read", fi_eq_read(eq, &event, &e, sizeof(e), 0), sizeof(e));
	FT_OK(fi_domain_bind(fab.domain, &eq->fid, 0));
	RULE("a domain uses it", fi_close(&eq->fid), -FI_EBUSY);
	FT_CLOSE(fab.tx_cq);
	fab.tx_cq = fab.rx_cq = NULL;
	if (fab.av)
		FT_CLOSE(fab.av);
	FT_CLOSE(fab.domain);
	FT_CLOSE(eq);
	FT_OK(fi_eq_open(fab.fabric, &(struct fi_eq_attr){ .wait_obj = FI_WAIT_NONE }, &eq, NULL));
	REFUSED("not opened to be written", fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0));
	REFUSED("no wait object: no sleep", fi_eq_sread(eq, &event, &e, sizeof(e), 1, 0));
	FT_CLOSE(eq);
}

static void run_cntr(struct ft *ft)
{
	struct fi_cntr_attr waits = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr flags = { .flags = 1 };
	struct fid_cntr *cntr, *other;
	struct ft_fab fab;

	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	FT_OK(fi_cntr_open(fab.domain, &waits, &cntr, NULL));
	RULE("a time out", fi_cntr_wait(cntr, 1, 1), -FI_ETIMEDOUT);
	RULE("... which is no error of the counter", fi_cntr_readerr(cntr), 0);
	FT_OK(fi_cntr_add(cntr, 1));
	RULE("the threshold is reached", fi_cntr_wait(cntr, 1, 30000), 0);
	REFUSED("reserved flags", fi_cntr_open(fab.domain, &flags, &other, NULL));
	ft_fab_endpoint(&fab);
	FT_OK(fi_ep_bind(fab.ep, &cntr->fid, FI_SEND));
	RULE("an endpoint uses it", fi_close(&cntr->fid), -FI_EBUSY);
	FT_CLOSE(fab.ep);
	FT_CLOSE(cntr);
	ft_fab_close(&fab);
}

static int pollfd_of(struct fid *fid, size_t room)
{
	struct pollfd fds[16];
	struct fi_wait_pollfd all = { .nfds = room, .fd = fds };

	return fi_control(fid, FI_GETWAIT, &all);
}

static void run_poll(struct ft *ft)
{
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr in_set = { .wait_obj = FI_WAIT_SET }, fd = { .wait_obj = FI_WAIT_FD };
	struct fi_cq_attr pollfd = { .wait_obj = FI_WAIT_POLLFD };
	struct fid_poll *poll;
	struct fid_wait *set;
	struct fid_eq *eq;
	struct fi_eq_attr writes = { .wait_obj = FI_WAIT_FD, .flags = FI_WRITE };
	struct fid *fids[1];
	struct ft_fab fab;
	struct fid_cq *cq;
	void *context;

	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	FT_OK(fi_poll_open(fab.domain, &(struct fi_poll_attr){ 0 }, &poll));
	RULE("no member has an event", fi_poll(poll, &context, 1), 0);
	REFUSED("what is not polled", fi_poll_add(poll, &fab.domain->fid, 0));
	REFUSED("reserved flags", fi_poll_add(poll, &fab.tx_cq->fid, 1));
	REFUSED("what is not a member", fi_poll_del(poll, &fab.tx_cq->fid, 0));
	FT_OK(fi_poll_add(poll, &fab.tx_cq->fid, 0));
	RULE("a set has it", fi_close(&fab.tx_cq->fid), -FI_EBUSY);
	RULE("the set has a member", fi_close(&poll->fid), -FI_EBUSY);
	FT_OK(fi_poll_del(poll, &fab.tx_cq->fid, 0));
	FT_CLOSE(poll);
	FT_OK(fi_wait_open(fab.fabric, &wait_attr, &set));
	OURS("fi_copyrpc(7): a wait set's time out", fi_wait(set, 1), -FI_ETIMEDOUT);
	in_set.wait_set = set;
	FT_OK(fi_cq_open(fab.domain, &in_set, &cq, NULL));
	RULE("a queue is bound to the set", fi_close(&set->fid), -FI_EBUSY);
	FT_CLOSE(cq);
	FT_CLOSE(set);
	FT_OK(fi_eq_open(fab.fabric, &writes, &eq, NULL));
	fids[0] = &eq->fid;
	RULE("it is safe to sleep", fi_trywait(fab.fabric, fids, 1), 0);
	FT_RET(fi_eq_write(eq, FI_NOTIFY, &(struct fi_eq_entry){ 0 }, sizeof(struct fi_eq_entry),
			   0),
	       sizeof(struct fi_eq_entry));
	RULE("events are queued", fi_trywait(fab.fabric, fids, 1), -FI_EAGAIN);
	FT_CLOSE(eq);
	FT_OK(fi_cq_open(fab.domain, &pollfd, &cq, NULL));
	RULE("an array of descriptors has no room", pollfd_of(&cq->fid, 0), -FI_ETOOSMALL);
	RULE("an array of descriptors has room", pollfd_of(&cq->fid, 16), 0);
	FT_CLOSE(cq);
	FT_OK(fi_cq_open(fab.domain, &fd, &cq, NULL));
	FT_CLOSE(cq);
	ft_fab_close(&fab);
}

/* ---- fi_collective(3) ---- */

static void run_collective(struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG | FI_COLLECTIVE };
	struct fi_av_set_attr attr = { .count = 4,
				       .start_addr = FI_ADDR_NOTAVAIL,
				       .end_addr = FI_ADDR_NOTAVAIL,
				       .stride = 1 };
	struct fid_av_set *set;
	uint32_t in = 1, out;
	struct fid_mc *mc;
	struct ft_fab fab;

	ft_rule_whole(&fab, ft, want);
	FT_OK(fi_av_set(fab.av, &attr, &set, NULL));
	REFUSED("no group of that address", fi_barrier(fab.ep, 12345, NULL));
	REFUSED("an operation that no reduction has",
		fi_allreduce(fab.ep, &in, 1, NULL, &out, NULL, 12345, FI_UINT32, 99, 0, NULL));
	OURS("an operation that no reduction has",
	     fi_allreduce(fab.ep, &in, 1, NULL, &out, NULL, 12345, FI_UINT32, 99, 0, NULL),
	     -FI_EOPNOTSUPP);
	OURS("more than fits",
	     fi_allreduce(fab.ep, &in, SIZE_MAX / 8, NULL, &out, NULL, 12345, FI_UINT32, FI_SUM, 0,
			  NULL),
	     -FI_EMSGSIZE);
	OURS("no event queue to say that it joined",
	     fi_join_collective(fab.ep, FI_ADDR_NOTAVAIL, set, 0, &mc, NULL), -FI_ENOEQ);
	REFUSED("fi_av_set(3): an address that is not there", fi_av_set_insert(set, 12345));
	REFUSED("fi_av_set(3): not a member", fi_av_set_remove(set, fab.addr[0]));
	FT_CLOSE(set);
	ft_fab_close(&fab);
}

#define PAGE(name, function, sentence) FT_CASE(name, function, sentence, .procs = 1)

static const struct ft_case cases[] = {
	PAGE("fi_msg", run_msg, "Limits are limits, flags known, long messages cut."),
	PAGE("fi_tagged", run_tagged, "A peek that finds nothing ends with FI_ENOMSG."),
	PAGE("fi_rma", run_rma, "An access that was not granted ends with an error."),
	PAGE("fi_atomic", run_atomic, "What is not supported is -FI_EOPNOTSUPP."),
	PAGE("fi_cq", run_cq, "-FI_EAGAIN, -FI_EAVAIL and -FI_EBUSY where they are due."),
	PAGE("fi_eq", run_eq, "-FI_EAGAIN and -FI_EBUSY where they are due."),
	PAGE("fi_cntr", run_cntr, "A time out is -FI_ETIMEDOUT and no error."),
	PAGE("fi_poll", run_poll, "Members keep sets, and sets keep members, from closing."),
	PAGE("fi_collective", run_collective, "Groups, members and operations are known ones."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Every error that the pages of transfers and queues name.",
		       cases, FT_CNT(cases));
}
