/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event channels of a device context survive the end of another context. On the device model.
 *
 * libibverbs closes the descriptor of the device first, and that of the asynchronous events after
 * it. The second close must not touch what another thread opens in between. This test holds that
 * moment: a completion channel is made in it, and must get its events although the rest of the
 * first context goes and a third one is opened.
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void need(const char *what, int fine)
{
	if (fine)
		return;
	fprintf(stderr, "%s: failed\n", what);
	exit(1);
}

static struct ibv_context *open_device(void)
{
	int cnt;
	struct ibv_device **list = ibv_get_device_list(&cnt);
	struct ibv_context *ctx = list && cnt ? ibv_open_device(list[0]) : NULL;

	need("a device", ctx != NULL);
	ibv_free_device_list(list);
	return ctx;
}

/* A queue pair in error completes what is posted to it. */
static void complete_one(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;

	need("a queue pair in INIT",
	     !ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	need("a receive", !ibv_post_recv(qp, &wr, &bad));
	attr.qp_state = IBV_QPS_ERR;
	need("a queue pair in error", !ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

static void hear_of_one(struct ibv_context *ctx, struct ibv_comp_channel *chan)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 15, NULL, chan, 0), *of = NULL;
	struct ibv_qp_init_attr attr = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { .max_recv_wr = 4, .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_UD };
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &attr) : NULL;
	struct pollfd wait = { .fd = chan->fd, .events = POLLIN };
	void *context;

	need("a queue pair", qp != NULL);
	need("an armed queue", !ibv_req_notify_cq(cq, 0));
	complete_one(qp);
	need("the event of the queue", poll(&wait, 1, 30000) == 1);
	need("its queue", !ibv_get_cq_event(chan, &of, &context) && of == cq);
	ibv_ack_cq_events(cq, 1);
	need("the end of all", !ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
}

int main(void)
{
	struct ibv_context *first = open_device(), *second = open_device(), *third;
	int async = first->async_fd;
	struct ibv_comp_channel *chan;

	first->async_fd = -1; /* so that only the device's descriptor is closed */
	ibv_close_device(first);
	chan = ibv_create_comp_channel(second);
	need("a completion channel", chan != NULL);
	close(async);
	third = open_device();
	hear_of_one(second, chan);
	need("the end of the channel", !ibv_destroy_comp_channel(chan));
	ibv_close_device(second);
	ibv_close_device(third);
	puts("a channel outlives the end of another's context");
	return 0;
}
