/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of datagram endpoints (FI_EP_DGRAM): datagrams of any length and source must end the
 * right receives.
 *
 * Runs on the simulated network. The input selects which datagrams arrive, from which port, and
 * which receives are posted and cancelled: of one or several buffers, or of many datagrams. Each
 * buffer is memory of its own, freed when its receive has ended.
 *
 * Checks besides the sanitizers, against a model: datagrams end receives in the order of both, with
 * their bytes; too long ones are cut and reported as such; the sender is reported where its address
 * is in the vector; no datagram that found a buffer is lost.
 */
#include <rdma/fi_errno.h>

#include "dgram/dgram_ep.h"
#include "script.h"
#include "support/fake_net.h"

#define RECEIVES 64u
#define WAITING  1024u
#define PIECE    600u
#define LEN_MAX  2000u
#define STRANGER 77u

/** Posted receive. */
struct receive {
	uint8_t *piece[DGRAM_IOV_MAX]; /* piece[0] NULL: free */
	struct iovec iov[DGRAM_IOV_MAX];
	size_t cnt;
	bool is_multi;
};

/** Datagram that has arrived. */
struct come {
	uint32_t number, len, from;
};

static struct script script;
static struct fake_net net;
static struct dgram_engine engine;
static struct dgram_av *av;
static struct core_cq cq;
static struct core_comp rx = { .cq = &cq };
static struct dgram_ep *ep;
static uint64_t number; /* address number of the endpoint itself, the only address in the vector */
static size_t min_multi_recv;
static struct receive receives[RECEIVES];
static struct come waiting[WAITING];
static uint32_t first, last; /* indices into `waiting` */

static uint64_t take(unsigned bytes)
{
	return script_take(&script, bytes);
}

static uint8_t byte_of(uint32_t nth, uint32_t at)
{
	return (uint8_t)(nth * 31 + at);
}

/* ---- receives ---- */

static void post(uint8_t how)
{
	struct receive *r = receives;
	struct dgram_post p = { .iov = r->iov, .iov_cnt = 1 + (how & 3) };
	size_t i;

	while (r->piece[0])
		if (++r == receives + RECEIVES)
			return;
	r->is_multi = how & 4;
	r->cnt = r->is_multi ? 1 : p.iov_cnt;
	for (i = 0; i < r->cnt; i++) {
		size_t len = take(2) % (r->is_multi ? 3 * PIECE : PIECE);

		r->piece[i] = malloc(len ? len : 1);
		CHECK(r->piece[i]);
		r->iov[i] = (struct iovec){ r->piece[i], len };
	}
	p = (struct dgram_post){ .iov = r->iov,
				 .iov_cnt = r->cnt,
				 .context = r,
				 .flags = FI_COMPLETION | (r->is_multi ? FI_MULTI_RECV : 0) };
	CHECK(!dgram_rx_post(ep, &p));
}

static void end(struct receive *r)
{
	size_t i;

	for (i = 0; i < r->cnt; i++)
		free(r->piece[i]);
	r->piece[0] = NULL;
}

/* ---- completions ---- */

static void check_bytes(const struct come *c, const uint8_t *at, size_t from, size_t len)
{
	while (len--)
		CHECK(at[len] == byte_of(c->number, (uint32_t)(from + len)));
}

/** Checks the oldest datagram: `len` bytes of it are in `r`, `cut` more are lost. */
static void check_come(const struct receive *r, const uint8_t *buf, size_t len, size_t cut,
		       uint64_t src)
{
	const struct come *c = &waiting[first++ % WAITING];
	size_t at = 0, i, part;

	CHECK(first <= last && c->len == len + cut);
	CHECK(src == (c->from == fake_port_of(ep->dg)->number ? number : DGRAM_NONE));
	if (r->is_multi) {
		check_bytes(c, buf, 0, len);
		return;
	}
	for (i = 0; i < r->cnt; at += part, i++) {
		part = r->iov[i].iov_len < len - at ? r->iov[i].iov_len : len - at;
		check_bytes(c, r->piece[i], at, part);
	}
	CHECK(at == len);
}

static void check_completions(void)
{
	struct fi_cq_err_entry bad;
	struct core_cqe *cqe;

	while ((cqe = core_cq_front(&cq))) {
		struct fi_cq_tagged_entry e = cqe->e;
		struct receive *r = e.op_context;
		uint64_t src = cqe->src;
		size_t cut = 0;

		CHECK(r >= receives && r < receives + RECEIVES && r->piece[0]);
		if (cqe->err) {
			CHECK(core_cq_read_err(&cq, &bad) == 1);
			CHECK(bad.err == FI_ETRUNC || bad.err == FI_ECANCELED);
			cut = bad.olen;
			e.flags = bad.err == FI_ETRUNC ? bad.flags : FI_MULTI_RECV;
			e.buf = bad.buf;
			e.len = bad.len;
		} else {
			cq.head++;
		}
		if (e.flags & FI_RECV)
			check_come(r, e.buf, e.len, cut, src);
		if (!r->is_multi || (e.flags & FI_MULTI_RECV))
			end(r);
	}
}

/* ---- arrivals ---- */

static void come(uint8_t how)
{
	struct come c = { .number = last, .len = (uint32_t)(take(2) % LEN_MAX) };
	uint64_t before = net.cnt.delivered;
	uint8_t bytes[LEN_MAX];
	uint32_t i;

	c.from = how & 1 ? STRANGER : fake_port_of(ep->dg)->number;
	for (i = 0; i < c.len; i++)
		bytes[i] = byte_of(c.number, i);
	fake_net_forge(&net, c.from, fake_port_of(ep->dg)->number, bytes, c.len, 0);
	fake_net_run(&net, net.now_ns);
	if (net.cnt.delivered != before)
		waiting[last++ % WAITING] = c;
}

static void progress(void)
{
	dgram_engine_progress(&engine.base);
	check_completions();
}

static void cancel(struct receive *r)
{
	bool there = r->piece[0];

	CHECK(dgram_rx_cancel(ep, r) == (there ? 0 : -FI_ENOENT));
	check_completions();
	CHECK(!r->piece[0]);
}

static void step(void)
{
	uint8_t what = (uint8_t)take(1);

	switch (what % 8) {
	case 0:
	case 1:
	case 2: come(what >> 3); break;
	case 3:
	case 4: post(what >> 3); break;
	case 5: cancel(&receives[what >> 3]); break;
	default: progress(); break;
	}
	check_completions();
	CHECK(ep->dg->rx_retained <= ep->dg->rx_cnt);
}

/** Matches waiting datagrams with posted receives. */
static void drain(void)
{
	unsigned rounds = 0;

	while (first != last) {
		CHECK(rounds++ < 4 * WAITING);
		post(0);
		progress();
	}
	CHECK(!ep->dg->rx_retained);
}

/* ---- open and close ---- */

static size_t export_addr(const struct dev_desc *desc, struct sockaddr_storage *addr)
{
	memcpy(addr, desc->bytes, desc->len);
	return desc->len;
}

static const struct dgram_over over = { .name = "net",
					.ops = &fake_net_ops,
					.export = export_addr };

static void open_all(void)
{
	struct dgram_conf conf = {
		.tx = &rx, .rx = &rx, .min_multi_recv = &min_multi_recv, .source = true
	};
	struct dev_desc desc;

	fake_net_init(&net, 1);
	engine = (struct dgram_engine){ .over = &over, .dev = fake_net_dev(&net) };
	util_list_init(&engine.eps);
	av = dgram_av_open();
	conf.av = av;
	min_multi_recv = take(1);
	CHECK(av && !core_cq_init(&cq, 0));
	CHECK(!dgram_ep_open(&engine, &conf, &ep));
	CHECK(!fake_net_ops.describe(ep->dg, &desc));
	CHECK(!dgram_av_insert(av, &desc, &number));
	CHECK(!dgram_ep_inserted(ep, number));
	first = last = 0;
}

static void close_all(void)
{
	unsigned i;

	dgram_ep_close(ep);
	core_cq_fini(&cq);
	dgram_av_close(av);
	fake_net_fini(&net);
	for (i = 0; i < RECEIVES; i++)
		if (receives[i].piece[0])
			end(&receives[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	script = (struct script){ data, data + size };
	open_all();
	while (!script_is_over(&script))
		step();
	drain();
	close_all();
	return 0;
}
