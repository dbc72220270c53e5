/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two datagram devices, back to back: see erpc_pipe.h. */
#include "erpc_pipe.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pipe_cell {
	_Alignas(64) uint8_t data[ERPC_PIPE_MTU];
};

/** One end. A cell is free, filled and in `ring`, or passed to the engine. */
struct pipe_end {
	struct dev_dgram base; /* first member */
	struct pipe_end *other;
	uint64_t number;
	struct pipe_cell *cells;
	uint32_t *len;
	uint32_t *ring;
	uint32_t head, tail;
	uint32_t *free;
	uint32_t free_cnt;
};

static struct pipe_end *pipe_of(struct dev_dgram *dg)
{
	return (struct pipe_end *)dg;
}

static void *pipe_alloc(size_t cnt, size_t len)
{
	void *mem = aligned_alloc(64, (cnt * len + 63) & ~(size_t)63);

	if (!mem) {
		fprintf(stderr, "erpc_pipe: out of memory\n");
		exit(EXIT_FAILURE);
	}
	memset(mem, 0, cnt * len);
	return mem;
}

static void pipe_close(struct dev_dgram *dg)
{
	struct pipe_end *end = pipe_of(dg);

	free(end->cells);
	free(end->len);
	free(end->ring);
	free(end->free);
	free(end);
}

static void pipe_forget(struct dev_dgram *dg, struct dev_dgram_ah *ah)
{
	free(ah);
}

static void pipe_put(struct pipe_end *to, const struct dev_dgram_out *out)
{
	uint32_t cell = to->free[--to->free_cnt];
	uint8_t *at = to->cells[cell].data;

	memcpy(at, out->base[0], out->len[0]);
	if (out->len[1])
		memcpy(at + out->len[0], out->base[1], out->len[1]);
	to->len[cell] = out->len[0] + out->len[1];
	to->ring[to->tail++ % to->base.rx_cnt] = cell;
}

static int pipe_send(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt)
{
	struct pipe_end *to = pipe_of(dg)->other;
	unsigned n;

	for (n = 0; n < cnt && to->free_cnt; n++)
		pipe_put(to, &out[n]);
	dg->tx_posted += n;
	dg->tx_done = dg->tx_posted;
	return n ? (int)n : -FI_EAGAIN;
}

static int pipe_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt)
{
	struct pipe_end *end = pipe_of(dg);
	unsigned n;

	for (n = 0; n < cnt && end->head != end->tail; n++) {
		uint32_t cell = end->ring[end->head++ % dg->rx_cnt];

		in[n] = (struct dev_dgram_in){ .data = end->cells[cell].data,
					       .len = end->len[cell],
					       .slot = cell,
					       .from.word[0] = end->other->number };
	}
	dg->rx_retained += n;
	return (int)n;
}

static void pipe_release(struct dev_dgram *dg, uint32_t slot)
{
	pipe_of(dg)->free[pipe_of(dg)->free_cnt++] = slot;
	dg->rx_retained--;
}

static const struct dev_dgram_ops pipe_ops = {
	.close = pipe_close,
	.forget = pipe_forget,
	.send = pipe_send,
	.poll = pipe_poll,
	.release = pipe_release,
};

static struct pipe_end *pipe_open(uint64_t number, uint32_t rx_cnt)
{
	struct pipe_end *end = pipe_alloc(1, sizeof(*end));

	end->base = (struct dev_dgram){ .ops = &pipe_ops,
					.mtu = ERPC_PIPE_MTU,
					.inline_max = ERPC_PIPE_MTU,
					.rx_cnt = rx_cnt };
	end->number = number;
	end->cells = pipe_alloc(rx_cnt, sizeof(*end->cells));
	end->len = pipe_alloc(rx_cnt, sizeof(*end->len));
	end->ring = pipe_alloc(rx_cnt, sizeof(*end->ring));
	end->free = pipe_alloc(rx_cnt, sizeof(*end->free));
	while (end->free_cnt < rx_cnt) {
		end->free[end->free_cnt] = end->free_cnt;
		end->free_cnt++;
	}
	return end;
}

void erpc_pipe_open(struct dev_dgram *ends[2], uint32_t rx_cnt)
{
	struct pipe_end *a = pipe_open(1, rx_cnt), *b = pipe_open(2, rx_cnt);

	a->other = b;
	b->other = a;
	ends[0] = &a->base;
	ends[1] = &b->base;
}

struct dev_dgram_ah *erpc_pipe_ah(struct dev_dgram *end)
{
	struct dev_dgram_ah *ah = pipe_alloc(1, sizeof(*ah));

	ah->id.word[0] = pipe_of(end)->other->number;
	ah->mtu = ERPC_PIPE_MTU;
	return ah;
}
