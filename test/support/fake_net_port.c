/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Port of the simulated network, behind dev/dgram.h: see fake_net.h. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake_fail.h"
#include "support/fake_net.h"

#define FAKE_NET_MAGIC 0x6E65746Bu
#define FAKE_REPORT    8u /* interval of reports of a NIC */

/** Datagram whose bytes the user must not change. */
struct fake_tx {
	uint64_t leaves_ns;
	uint64_t sum; /* checksum of the bytes at send; unused for copied datagrams */
	bool copied;
	bool reports;
	struct dev_dgram_out out;
};

struct fake_rx {
	uint8_t *data; /* NULL: free */
	uint32_t len;
	uint32_t from;
	bool out; /* returned by poll */
};

struct fake_net_desc {
	uint32_t magic;
	uint32_t number;
	uint32_t mtu;
};

struct fake_ah {
	struct dev_dgram_ah base; /* First member */
	uint32_t number;
};

static void fake_port_id(uint32_t number, struct dev_dgram_id *id)
{
	*id = (struct dev_dgram_id){ { FAKE_NET_MAGIC, number, ~(uint64_t)number } };
}

static bool fake_port_is_nic(const struct fake_port *port)
{
	return port->base.inline_max < port->base.mtu;
}

static void fake_port_number(struct fake_net *net, struct fake_port *port)
{
	uint32_t n = net->port_cnt++;

	if (!(n & (n - 1))) {
		net->ports = realloc(net->ports, (n ? 2 * n : 1) * sizeof(*net->ports));
		if (!net->ports)
			abort();
	}
	net->ports[n] = port;
	port->number = n;
}

static int fake_port_open(struct dev *dev, const struct dev_dgram_attr *attr, struct dev_dgram **dg)
{
	struct fake_net *net = (struct fake_net *)dev;
	struct fake_port *port = calloc(1, sizeof(*port));
	uint32_t i;

	if (!attr->rx_cnt || attr->rx_cnt > DEV_DGRAM_CNT_MAX || attr->tx_cnt < 8)
		fake_fail("opened with %u receive buffers, %u to send", attr->rx_cnt, attr->tx_cnt);
	if (!port)
		abort();
	port->base.ops = &fake_net_ops;
	port->base.mtu = net->mtu;
	port->base.rx_room = net->rx_room;
	port->base.inline_max = net->inline_max ? net->inline_max : net->mtu;
	port->base.rx_cnt = attr->rx_cnt;
	port->net = net;
	port->tx_cnt = attr->tx_cnt;
	port->tx = calloc(attr->tx_cnt, sizeof(*port->tx));
	port->rx = calloc(attr->rx_cnt, sizeof(*port->rx));
	port->order = calloc(attr->rx_cnt, sizeof(*port->order));
	port->free = calloc(attr->rx_cnt, sizeof(*port->free));
	if (!port->tx || !port->rx || !port->order || !port->free)
		abort();
	for (i = 0; i < attr->rx_cnt; i++)
		port->free[port->free_cnt++] = attr->rx_cnt - 1 - i;
	fake_port_number(net, port);
	*dg = &port->base;
	return 0;
}

static void fake_port_close(struct dev_dgram *dg)
{
	struct fake_port *port = fake_port_of(dg);
	uint32_t i;

	if (port->ah_cnt)
		fake_fail("port %u closes with %u addresses", port->number, port->ah_cnt);
	for (i = 0; i < dg->rx_cnt; i++)
		free(port->rx[i].data);
	port->net->ports[port->number] = NULL;
	free(port->tx);
	free(port->rx);
	free(port->order);
	free(port->free);
	free(port);
}

static int fake_port_describe(struct dev_dgram *dg, struct dev_desc *desc)
{
	struct fake_net_desc d = { FAKE_NET_MAGIC, fake_port_of(dg)->number, dg->mtu };

	memcpy(desc->bytes, &d, sizeof(d));
	desc->len = sizeof(d);
	desc->fd_cnt = 0;
	return 0;
}

static int fake_port_resolve(struct dev_dgram *dg, const struct dev_desc *peer,
			     struct dev_dgram_ah **out)
{
	struct fake_net_desc d;
	struct fake_ah *ah;

	if (peer->len != sizeof(d) || peer->fd_cnt)
		return -FI_EINVAL;
	memcpy(&d, peer->bytes, sizeof(d));
	if (d.magic != FAKE_NET_MAGIC)
		return -FI_EINVAL;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		abort();
	fake_port_id(d.number, &ah->base.id);
	ah->base.mtu = d.mtu < dg->mtu ? d.mtu : dg->mtu;
	ah->number = d.number;
	fake_port_of(dg)->ah_cnt++;
	*out = &ah->base;
	return 0;
}

static void fake_port_forget(struct dev_dgram *dg, struct dev_dgram_ah *ah)
{
	fake_port_of(dg)->ah_cnt--;
	free(ah);
}

/* ---- sending ---- */

static uint64_t fake_sum(const struct dev_dgram_out *out)
{
	uint64_t sum = 0xCBF29CE484222325ull;
	uint32_t i, k;

	for (i = 0; i < DEV_DGRAM_PIECES; i++)
		for (k = 0; k < out->len[i]; k++)
			sum = (sum ^ ((const uint8_t *)out->base[i])[k]) * 0x100000001B3ull;
	return sum;
}

static void fake_port_send_one(struct fake_port *port, const struct dev_dgram_out *out)
{
	struct fake_tx *tx = &port->tx[port->base.tx_posted % port->tx_cnt];
	uint32_t len = dev_dgram_out_len(out);

	if (len > out->to->mtu)
		fake_fail("port %u sends %u bytes, %u are allowed", port->number, len,
			  out->to->mtu);
	fake_net_send(port, ((const struct fake_ah *)out->to)->number, out);
	tx->leaves_ns = port->egress_free_ns;
	tx->copied = len <= port->base.inline_max;
	tx->sum = tx->copied ? 0 : fake_sum(out);
	tx->reports = (out->flags & DEV_DGRAM_REPORT) ||
		      port->base.tx_posted % FAKE_REPORT == FAKE_REPORT - 1;
	tx->out = *out;
	port->base.tx_posted++;
}

static int fake_port_send(struct dev_dgram *dg, const struct dev_dgram_out *out, unsigned cnt)
{
	struct fake_port *port = fake_port_of(dg);
	struct fake_net *net = port->net;
	unsigned n = 0;

	if (port->status)
		return port->status;
	if (!cnt)
		fake_fail("port %u sends nothing", port->number);
	if (net->busy_chance && rng_below(&net->rng, 1000000) < net->busy_chance)
		return -FI_EAGAIN;
	while (n < cnt && dg->tx_posted - dg->tx_done < port->tx_cnt) {
		fake_port_send_one(port, &out[n++]);
		if (!fake_port_is_nic(port))
			dg->tx_done = dg->tx_posted;
	}
	return n ? (int)n : -FI_EAGAIN;
}

/** Reports datagrams that have left, up to the last one with a report. */
static void fake_port_report(struct fake_port *port)
{
	struct dev_dgram *dg = &port->base;
	uint32_t n, end = dg->tx_done;
	struct fake_tx *tx;

	for (n = dg->tx_done; n != dg->tx_posted; n++) {
		tx = &port->tx[n % port->tx_cnt];
		if (tx->leaves_ns > port->net->now_ns)
			break;
		if (tx->reports)
			end = n + 1;
	}
	for (n = dg->tx_done; n != end; n++) {
		tx = &port->tx[n % port->tx_cnt];
		if (!tx->copied && tx->sum != fake_sum(&tx->out))
			fake_fail("port %u: bytes of datagram %u changed before tx_done",
				  port->number, n);
	}
	dg->tx_done = end;
}

/* ---- receiving ---- */

uint8_t *fake_port_take(struct fake_port *port, uint32_t from, uint32_t len)
{
	struct fake_rx *rx;
	uint32_t slot;
	void *data;

	if (!port->free_cnt)
		return NULL;
	slot = port->free[--port->free_cnt];
	rx = &port->rx[slot];
	if (posix_memalign(&data, 64, len ? len : 1))
		abort();
	*rx = (struct fake_rx){ .data = data, .len = len, .from = from };
	port->order[port->order_tail++ % port->base.rx_cnt] = slot;
	return data;
}

static int fake_port_poll(struct dev_dgram *dg, struct dev_dgram_in *in, unsigned cnt)
{
	struct fake_port *port = fake_port_of(dg);
	struct fake_rx *rx;
	unsigned n = 0;
	uint32_t slot;

	if (port->status)
		return port->status;
	if (!cnt)
		fake_fail("port %u polls for nothing", port->number);
	while (n < cnt && port->order_head != port->order_tail) {
		slot = port->order[port->order_head++ % dg->rx_cnt];
		rx = &port->rx[slot];
		rx->out = true;
		in[n] = (struct dev_dgram_in){ .data = rx->data, .len = rx->len, .slot = slot };
		fake_port_id(rx->from, &in[n++].from);
	}
	dg->rx_retained += n;
	if (port->order_head == port->order_tail)
		fake_port_report(port);
	return (int)n;
}

/* ---- poll_into ---- */

#define FAKE_INTO_MAX 5u
#define FAKE_SCRIBBLE 0xA5

/** Returns the n-th datagram that has arrived and was not returned by poll. */
static struct fake_rx *fake_port_nth(struct fake_port *port, uint32_t n)
{
	return &port->rx[port->order[(port->order_head + n) % port->base.rx_cnt]];
}

/** Returns the bytes of the target that datagram n could fill. */
static uint32_t fake_place_part(const struct dev_dgram_target *place, uint32_t n)
{
	uint32_t rest = place->len - n * place->part_len;

	return rest < place->part_len ? rest : place->part_len;
}

/** Returns the number of arrived datagrams whose heads and parts match the target. */
static uint32_t fake_port_fits(struct fake_port *port, const struct dev_dgram_target *place,
			       uint32_t max)
{
	uint32_t n, here = port->order_tail - port->order_head, part;
	const struct fake_rx *rx;

	for (n = 0; n < max && n < here && n * place->part_len < place->len; n++) {
		rx = fake_port_nth(port, n);
		part = fake_place_part(place, n);
		if (rx->len <= place->head_len || rx->len > place->head_len + part)
			break;
		if (rx->len < place->head_len + part)
			return n + 1; /* a shorter datagram is the last */
	}
	return n;
}

static void fake_port_into(struct fake_port *port, const struct dev_dgram_target *place, uint32_t n,
			   struct dev_dgram_in *in)
{
	uint32_t slot = port->order[port->order_head++ % port->base.rx_cnt];
	struct fake_rx *rx = &port->rx[slot];

	memcpy(place->base + n * place->part_len, rx->data + place->head_len,
	       rx->len - place->head_len);
	memset(rx->data + place->head_len, FAKE_SCRIBBLE, rx->len - place->head_len);
	rx->out = true;
	*in = (struct dev_dgram_in){ .data = rx->data, .len = rx->len, .slot = slot };
	fake_port_id(rx->from, &in->from);
}

static int fake_port_poll_into(struct dev_dgram *dg, const struct dev_dgram_target *place,
			       struct dev_dgram_in *in, unsigned cnt)
{
	struct fake_port *port = fake_port_of(dg);
	uint32_t turn = 1 + port->into_turn++ % FAKE_INTO_MAX, n, i;

	if (port->status || fake_port_is_nic(port))
		return port->status;
	if (port->order_head == port->order_tail)
		return -FI_EAGAIN;
	n = fake_port_fits(port, place, cnt < turn ? cnt : turn);
	if (!n)
		memset(place->base, FAKE_SCRIBBLE, place->len);
	for (i = 0; i < n; i++)
		fake_port_into(port, place, i, &in[i]);
	port->into_head = port->order_head;
	port->into_cnt = n;
	dg->rx_retained += n;
	return (int)n;
}

static void fake_port_put_back(struct dev_dgram *dg, const struct dev_dgram_target *place,
			       unsigned first)
{
	struct fake_port *port = fake_port_of(dg);
	struct fake_rx *rx;
	uint32_t n;

	if (first >= port->into_cnt || port->order_head != port->into_head)
		fake_fail("port %u: %u is put back, the last were %u", port->number, first,
			  port->into_cnt);
	for (n = port->into_cnt; n-- > first;) {
		port->order_head--;
		rx = fake_port_nth(port, 0);
		memcpy(rx->data + place->head_len, place->base + n * place->part_len,
		       rx->len - place->head_len);
		rx->out = false;
		dg->rx_retained--;
	}
	port->into_cnt = 0;
}

static void fake_port_release(struct dev_dgram *dg, uint32_t slot)
{
	struct fake_port *port = fake_port_of(dg);

	if (slot >= dg->rx_cnt || !port->rx[slot].data || !port->rx[slot].out)
		fake_fail("port %u: buffer %u is released, and was not held", port->number, slot);
	free(port->rx[slot].data);
	port->rx[slot].data = NULL;
	port->free[port->free_cnt++] = slot;
	dg->rx_retained--;
}

/* ---- wait: none in simulated time ---- */

static int fake_port_wait_fd(struct dev_dgram *dg)
{
	return -1;
}

static int fake_port_arm(struct dev_dgram *dg)
{
	struct fake_port *port = fake_port_of(dg);

	return port->status || port->order_head != port->order_tail ? -FI_EAGAIN : 0;
}

static void fake_port_disarm(struct dev_dgram *dg)
{
}

const struct dev_dgram_ops fake_net_ops = {
	.open = fake_port_open,
	.close = fake_port_close,
	.describe = fake_port_describe,
	.resolve = fake_port_resolve,
	.forget = fake_port_forget,
	.send = fake_port_send,
	.poll = fake_port_poll,
	.poll_into = fake_port_poll_into,
	.put_back = fake_port_put_back,
	.release = fake_port_release,
	.wait_fd = fake_port_wait_fd,
	.arm = fake_port_arm,
	.disarm = fake_port_disarm,
};
