/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resizes a completion queue that holds completions, up and down, and reads every one of them:
 * libmlx5 moves what it finds in the old buffer, up to the adapter's resize CQE. Runs on the device
 * model, or on an adapter.
 */
#include <time.h>

#include "verbs_self.h"

#define SIZE  64
#define BATCH 3

/* A message to itself: two completions. */
static void send_one(struct self *loop, uint64_t id)
{
	struct ibv_sge from = { (uintptr_t)loop->buf, SIZE, loop->mr->lkey };
	struct ibv_sge to = { (uintptr_t)loop->buf + 2048, SIZE, loop->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = id, .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = id,
				    .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad_send;

	if (ibv_post_recv(loop->qp, &recv, &bad_recv) || ibv_post_send(loop->qp, &send, &bad_send))
		die("cannot post");
}

/* Reads 2 * BATCH completions: each identifier once of each kind. */
static void read_all(struct self *loop, uint64_t first)
{
	unsigned seen[2] = { 0, 0 };
	time_t start = time(NULL);
	struct ibv_wc wc;

	while (seen[0] != (1u << BATCH) - 1 || seen[1] != (1u << BATCH) - 1) {
		int got = ibv_poll_cq(loop->cq, 1, &wc);
		unsigned kind = got == 1 && wc.opcode == IBV_WC_RECV, bit;

		if (got < 0 || (got == 1 && wc.status != IBV_WC_SUCCESS))
			die("a completion with an error");
		if (!got && time(NULL) > start + 60)
			die("completions are missing");
		if (got != 1)
			continue;
		bit = 1u << (wc.wr_id - first);
		if (wc.wr_id < first || wc.wr_id >= first + BATCH || (seen[kind] & bit))
			die("a completion came twice, or of nothing");
		seen[kind] |= bit;
	}
}

int main(void)
{
	static const int sizes[] = { 10, 40, 7, 100, 16, 64, 7, 7, 200 };
	struct self loop;
	uint64_t id = 0;

	self_open(&loop, self_device(), 0);
	for (size_t lap = 0; lap < sizeof(sizes) / sizeof(sizes[0]); lap++, id += BATCH) {
		for (uint64_t i = 0; i < BATCH; i++)
			send_one(&loop, id + i);
		if (ibv_resize_cq(loop.cq, sizes[lap]) || loop.cq->cqe < sizes[lap])
			die("cannot resize");
		read_all(&loop, id);
	}
	self_close(&loop);
	printf("verbs_resize: ok, %zu times\n", sizeof(sizes) / sizeof(sizes[0]));
	return 0;
}
