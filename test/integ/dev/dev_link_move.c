/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Moves of links between a queue pair and DC: see dev_link.h. */
#include <infiniband/verbs.h>
#include <rdma/fi_errno.h>

#include "dev/mlx5/m5.h"
#include "dev/mlx5/m5_link.h"
#include "dev_link.h"

#define WRITES_PER_MOVE 100u

static uint32_t begun, refused_here;

/* The peer moves the other way at any time, so the result depends on where both are. */
void move_now_and_then(struct end *end)
{
	int ret;

	if (end->sent % WRITES_PER_MOVE)
		return;
	ret = end->link->ops->move(end->link, end->link->caps & DEV_CAP_DC);
	begun += !ret;
	refused_here += ret == -FI_ENOSPC;
	CHECK(ret == 0 || ret == -FI_EALREADY || ret == -FI_EAGAIN || ret == -FI_ENOSPC);
}

/* The READ behind it makes sure that it is this link which finds its way broken. */
void move_break(struct end *end)
{
	const struct m5_link *link = (struct m5_link *)end->link;
	const struct m5_dci *dci = link->dc.pool.dci;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	bool by_dc = link->move.state == M5_MOVE_ON_DC;
	uint64_t value;

	if (end->reading || (by_dc && (!dci || !m5_sq_has_room(&dci->sq, M5_WQE_MAX_BB))) ||
	    (!by_dc && (link->move.state != M5_MOVE_ON_RC || !m5_sq_has_room(&link->sq, 1))))
		return;
	CHECK(!ibv_modify_qp(by_dc ? dci->qp : link->ib.qp, &attr, IBV_QP_STATE));
	CHECK(!end->link->ops->read_consumer(end->link, &value));
	end->reading = true;
	printf("side %d: link %u is broken: its %s\n", side, (unsigned)(end - ends),
	       by_dc ? "initiator" : "queue pair");
}

/* A move takes a few round trips, in which both ends go on to send. */
void move_check(uint32_t msgs)
{
	uint64_t cnt = 0;
	unsigned i;

	for (i = is_broken ? BREAKS : 0; i < links; i++) {
		const struct m5_link *link = (struct m5_link *)ends[i].link;

		printf("side %d: link %u moved %u times\n", side, i, link->move.cnt);
		cnt += link->move.cnt;
	}
	printf("side %d: %llu moves, of which this side began %u; %u had no queue pair here\n",
	       side, (unsigned long long)cnt, begun, refused_here);
	CHECK(cnt >= (uint64_t)msgs / WRITES_PER_MOVE / 4);
}
