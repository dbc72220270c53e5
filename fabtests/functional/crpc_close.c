/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer closes its endpoint while operations are in flight: each of them ends exactly once, with
 * success or an error.
 *
 * Pages: fi_endpoint(3) (fi_close), fi_cq(3), fi_rma(3), fi_atomic(3).
 */
#include "common/ft_data.h"
#include "common/ft_mr.h"
#include "common/ft_msg.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>

#define OPS 48
#define LEN 70000 /* bytes: more than one step transfers */

enum kind { SEND, SEND_LONG, TSEND_LONG, DELIVER, MATCH, WRITE, READ, FETCH };

static uint8_t bytes[OPS][LEN];
static uint64_t numbers[OPS], olds[OPS];

static uint64_t caps_of(int kind)
{
	switch (kind) {
	case TSEND_LONG: return FI_TAGGED;
	case WRITE:
	case READ: return FI_MSG | FI_RMA;
	case FETCH: return FI_MSG | FI_ATOMIC;
	default: return FI_MSG;
	}
}

static ssize_t send_level(struct ft_fab *fab, int i, uint64_t level, void *context)
{
	struct iovec iov = { bytes[i], 100 };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = fab->addr[1], .context = context
	};

	return fi_sendmsg(fab->ep, &msg, level | FI_COMPLETION);
}

static ssize_t post(struct ft_fab *fab, int kind, int i, const struct ft_target *there,
		    void *context)
{
	uint64_t at = there->base + (uint64_t)i * sizeof(uint64_t);
	fi_addr_t to = fab->addr[1];
	struct fid_ep *ep = fab->ep;

	switch (kind) {
	case SEND: return fi_send(ep, bytes[i], 100, NULL, to, context);
	case SEND_LONG: return fi_send(ep, bytes[i], LEN, NULL, to, context);
	case TSEND_LONG: return fi_tsend(ep, bytes[i], LEN, NULL, to, 7, context);
	case DELIVER: return send_level(fab, i, FI_DELIVERY_COMPLETE, context);
	case MATCH: return send_level(fab, i, FI_MATCH_COMPLETE, context);
	case WRITE: return fi_write(ep, bytes[i], LEN, NULL, to, there->base, there->key, context);
	case READ: return fi_read(ep, bytes[i], LEN, NULL, to, there->base, there->key, context);
	default:
		return fi_fetch_atomic(ep, &numbers[i], 1, NULL, &olds[i], NULL, to, at, there->key,
				       FI_UINT64, FI_SUM, context);
	}
}

static bool reaches_memory(int kind)
{
	return kind == WRITE || kind == READ || kind == FETCH;
}

/* Posts all operations and notifies the other end, which closes. All of them end. */
static void run_initiator(struct ft_fab *fab, const struct ft_target *there)
{
	int kind = fab->ft->test->arg;
	struct ft_op *ops[OPS];
	char go = 1;

	for (int i = 0; i < OPS; i++) {
		ops[i] = ft_op_new(fab, FT_ONE);
		if (i == OPS / 2)
			ft_tell(fab->ft, 1, &go, 1);
		/* After the peer has closed, a call may also be refused and has no completion. */
		if (post(fab, kind, i, there, &ops[i]->context)) {
			ft_op_put(fab, ops[i]);
			ops[i] = NULL;
		}
	}
	for (int i = 0; i < OPS; i++) {
		if (!ops[i])
			continue;
		ft_wait(fab, ops[i]);
		ft_op_put(fab, ops[i]);
	}
	ft_quiet(fab, 0.05);
}

static void run_close(struct ft *ft)
{
	int kind = ft->test->arg;
	struct ft_region region = { 0 };
	struct ft_fab fab;
	char go;

	ft_fab_open(&fab, ft,
		    &(struct ft_want){ .caps = caps_of(kind),
				       .tx_flags = kind == MATCH ? FI_MATCH_COMPLETE : 0 });
	if (reaches_memory(kind)) {
		ft_region_open(&fab, &region, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 5);
		ft_region_swap(&fab, &region, !ft->rank);
	}
	/* Connects, and is not received. */
	ft_send_wait(&fab, kind == MATCH ? FT_INJECT : FT_PLAIN,
		     (struct ft_msg){ .tagged = kind == TSEND_LONG,
				      .buf = bytes[0],
				      .len = 1,
				      .rank = !ft->rank });
	if (ft->rank == 0) {
		run_initiator(&fab, &region.there);
	} else {
		ft_hear(ft, 0, &go, 1);
		FT_CLOSE(fab.ep);
	}
	ft_sync(ft);
	if (region.buf)
		ft_region_close(&region);
	ft_fab_close(&fab);
}

static const struct ft_case cases[] = {
	FT_CASE("send", run_close, "Short sends end once.", .arg = SEND),
	FT_CASE("send-long", run_close, "Long sends end once.", .arg = SEND_LONG),
	FT_CASE("tsend-long", run_close, "Long tagged sends end once.", .arg = TSEND_LONG),
	FT_CASE("deliver", run_close, "Sends that wait for delivery end once.", .arg = DELIVER),
	FT_CASE("match", run_close, "Sends that wait for a receive end once.", .arg = MATCH),
	FT_CASE("write", run_close, "Writes end once.", .arg = WRITE),
	FT_CASE("read", run_close, "Reads end once.", .arg = READ),
	FT_CASE("fetch", run_close, "Atomics that fetch end once.", .arg = FETCH),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "A peer closes in the midst of it.", cases, FT_CNT(cases));
}
