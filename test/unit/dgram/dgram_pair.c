/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two datagram endpoints on the simulated network: see dgram_pair.h. */
#include "unit/dgram/dgram_pair.h"

#include <string.h>

static size_t pair_export(const struct dev_desc *desc, struct sockaddr_storage *addr)
{
	memcpy(addr, desc->bytes, desc->len);
	return desc->len;
}

static const struct dgram_over pair_over = { .name = "net",
					     .ops = &fake_net_ops,
					     .export = pair_export };

static void pair_open_one(struct dgram_pair *p, int i)
{
	struct dgram_conf conf = { .av = p->av,
				   .tx = &p->tx[i],
				   .rx = &p->rx[i],
				   .min_multi_recv = &p->min_multi_recv,
				   .prefix = p->prefix,
				   .source = true };
	struct dev_desc desc;

	cr_assert_eq(core_cq_init(&p->cq[i], 0), 0);
	p->tx[i] = (struct core_comp){ .cq = &p->cq[i], .cntr = &p->sent[i] };
	p->rx[i] = (struct core_comp){ .cq = &p->cq[i], .cntr = &p->received[i] };
	cr_assert_eq(dgram_ep_open(&p->engine, &conf, &p->ep[i]), 0);
	cr_assert_eq(fake_net_ops.describe(p->ep[i]->dg, &desc), 0);
	cr_assert_eq(dgram_av_insert(p->av, &desc, &p->number[i]), 0);
}

void dgram_pair_open(struct dgram_pair *p)
{
	p->engine = (struct dgram_engine){ .over = &pair_over,
					   .dev = fake_net_dev(&p->net),
					   .timer_fd = -1 };
	util_list_init(&p->engine.eps);
	p->av = dgram_av_open();
	cr_assert_not_null(p->av);
	for (int i = 0; i < 2; i++)
		pair_open_one(p, i);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			cr_assert_eq(dgram_ep_inserted(p->ep[i], p->number[k]), 0);
}

void dgram_pair_close(struct dgram_pair *p)
{
	for (int i = 0; i < 2; i++) {
		dgram_ep_close(p->ep[i]);
		core_cq_fini(&p->cq[i]);
	}
	dgram_av_close(p->av);
	fake_net_fini(&p->net);
}

void dgram_pair_run(struct dgram_pair *p)
{
	do {
		dgram_engine_progress(&p->engine.base);
		fake_net_run(&p->net, p->net.now_ns + 100000);
		dgram_engine_progress(&p->engine.base);
	} while (!fake_net_is_idle(&p->net) || p->ep[0]->burst_cnt || p->ep[1]->burst_cnt);
	for (int i = 0; i < 40; i++) /* DGRAM_RX_CNT buffers, DGRAM_BURST per poll */
		dgram_engine_progress(&p->engine.base);
}

int dgram_pair_send(struct dgram_pair *p, const void *buf, size_t len, uint64_t flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct dgram_send s = { .dest = p->number[1],
				.iov = &iov,
				.iov_cnt = 1,
				.len = len,
				.context = (void *)(uintptr_t)buf,
				.flags = flags };

	return dgram_tx_send(p->ep[0], &s);
}

void dgram_pair_recv(struct dgram_pair *p, void *buf, size_t len, uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct dgram_post post = { .iov = &iov, .iov_cnt = 1, .context = buf, .flags = flags };

	cr_assert_eq(dgram_rx_post(p->ep[1], &post), 0);
}

struct fi_cq_tagged_entry dgram_pair_take(struct dgram_pair *p, int i, int err)
{
	struct core_cqe *cqe = core_cq_front(&p->cq[i]);
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad;

	cr_assert_not_null(cqe);
	e = cqe->e;
	cr_assert_eq(!cqe->err, !err);
	if (err) {
		cr_assert_eq(core_cq_read_err(&p->cq[i], &bad), 1);
		cr_expect_eq(bad.err, err);
		e.data = bad.olen; /* For tests that check the missing length */
	} else {
		e.data = cqe->src;
		p->cq[i].head++;
	}
	return e;
}

uint64_t dgram_pair_left(const struct dgram_pair *p, int i)
{
	return p->cq[i].tail - p->cq[i].head;
}
