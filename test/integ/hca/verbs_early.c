/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device model exposes a driver that reuses too early what the adapter may still read.
 *
 * usage: verbs_early seen|unseen
 *
 * Messages of a queue pair to itself, one at a time. As soon as each is posted, its bytes are
 * changed where the adapter may look for them: in the user's buffer, or, where they are carried
 * inline, in the send queue. The poll mode of the device model must deliver the changed bytes of
 * each kind now and then ("seen"); in its trap mode everything is done when the post
 * returns ("unseen"). Needs MLX5_SHUT_UP_BF=1: the adapter does not read again what BlueFlame has
 * carried.
 */
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "verbs_self.h"

#define SIZE   24   /* with 16 of control and 4 of length: one block of a send queue */
#define ROUNDS 4000 /* half of a kind; at most, where the change must be seen */
#define AT     2048 /* in the buffer: where it is received */
#define BLOCK  64u

static struct self self;
static struct mlx5dv_qp dv;
static unsigned posted;

static char *wqe(void)
{
	return (char *)dv.sq.buf + (posted & (dv.sq.wqe_cnt - 1)) * BLOCK;
}

static void post(bool in_wqe)
{
	struct ibv_sge from = { (uintptr_t)self.buf, SIZE, self.mr->lkey };
	struct ibv_sge to = { (uintptr_t)self.buf + AT, SIZE, self.mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags =
					    IBV_SEND_SIGNALED | (in_wqe ? IBV_SEND_INLINE : 0) },
			   *bad_send;

	memset(self.buf, 'a', SIZE);
	memset(self.buf + AT, 0, SIZE);
	if (ibv_post_recv(self.qp, &recv, &bad_recv) || ibv_post_send(self.qp, &send, &bad_send))
		die("cannot post");
}

/* Control and length stay as they are: 20 bytes. */
static void change(bool in_wqe)
{
	if (in_wqe && memcmp(wqe() + 20, self.buf, SIZE))
		die("the send queue is not where it is looked for");
	memset(in_wqe ? wqe() + 20 : self.buf, 'b', SIZE);
}

static void wait_both(void)
{
	time_t start = time(NULL);
	struct ibv_wc wc;
	int left = 2, got;

	while (left) {
		got = ibv_poll_cq(self.cq, 1, &wc);
		if (got < 0 || (got && wc.status != IBV_WC_SUCCESS))
			die("a completion with an error");
		left -= got;
		if (!got && time(NULL) > start + 60)
			die("completions are missing");
	}
}

/* One message: did the change arrive? */
static bool is_seen(bool in_wqe)
{
	post(in_wqe);
	change(in_wqe);
	wait_both();
	posted++;
	return memchr(self.buf + AT, 'b', SIZE) != NULL;
}

int main(int argc, char **argv)
{
	struct mlx5dv_obj objs = { .qp = { .out = &dv } };
	bool wanted = argc == 2 && !strcmp(argv[1], "seen");
	unsigned seen[2] = { 0, 0 };

	if (argc != 2 || (!wanted && strcmp(argv[1], "unseen")))
		return 2;
	self_open(&self, self_device(), SIZE);
	objs.qp.in = self.qp;
	if (mlx5dv_init_obj(&objs, MLX5DV_OBJ_QP) || dv.sq.stride != BLOCK)
		die("no direct verbs");
	for (unsigned i = 0; i < 2 * ROUNDS && !(wanted && seen[0] && seen[1]); i++)
		seen[i & 1] += is_seen(i & 1);
	self_close(&self);
	printf("changed bytes arrived: %u times from the buffer, %u from the send queue\n", seen[0],
	       seen[1]);
	return wanted ? !(seen[0] && seen[1]) : seen[0] || seen[1];
}
