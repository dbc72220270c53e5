/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Caller and callee: see rpc_pair.h. */
#include "functional/rpc_pair.h"

#include "common/ft_data.h"

#define BATCH 64 /* requests that are taken at once */

uint32_t rpc_roll(struct rpc *r, uint32_t below)
{
	r->rng = r->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(r->rng >> 33) % below;
}

void rpc_begin(struct rpc *r, struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG };

	*r = (struct rpc){ .rng = ft->opts->seed + (uint64_t)ft->rank };
	ft_fab_open(&r->fab, ft, &want);
	if (fi_copyrpc_open(&r->fab.ep->fid, &r->ops))
		ft_notrun("no remote procedure calls");
	ft_sync(ft);
}

void rpc_end(struct rpc *r)
{
	ft_quiet(&r->fab, 0.02);
	FT_CHECK(!ft_open_ops(&r->fab), "%u calls never ended", ft_open_ops(&r->fab));
	ft_sync(r->fab.ft);
	ft_fab_close(&r->fab);
}

/* ---- caller ---- */

ssize_t rpc_call_try(struct rpc *r, struct rpc_call *c, size_t len, uint64_t flags)
{
	uint8_t *buf = ft_buf_new(len);
	ssize_t ret;

	ft_fill(buf, len, c->q.key);
	memcpy(buf, &c->q, sizeof(c->q));
	c->op = ft_op_new(&r->fab, FT_ONE);
	ret = fi_copyrpc_call(r->ops, r->fab.ep, buf, len,
			      flags & FI_COPYRPC_RETAIN ? NULL : c->resp, c->resp_max,
			      r->fab.addr[!r->fab.ft->rank], &c->op->context, flags);
	ft_buf_free(buf); /* free on return */
	FT_CHECK(!ret || ret == -FI_EAGAIN, "a call returns %zd (%s)", ret, ft_err_name(ret));
	if (ret)
		ft_op_put(&r->fab, c->op);
	return ret;
}

void rpc_call_init(struct rpc_call *c, uint32_t key, size_t resp_len, size_t resp_max)
{
	c->q = (struct rpc_question){ key, (uint32_t)resp_len };
	c->resp_max = resp_max;
	c->resp = ft_buf_new(resp_max);
}

void rpc_call_start(struct rpc *r, struct rpc_call *c, uint32_t key, size_t len, size_t resp_len,
		    size_t resp_max)
{
	double deadline = ft_deadline(&r->fab);

	rpc_call_init(c, key, resp_len, resp_max);
	while (rpc_call_try(r, c, len, 0)) {
		rpc_serve(r);
		ft_again(&r->fab, deadline);
	}
}

void rpc_call_finish(struct rpc *r, struct rpc_call *c)
{
	double deadline = ft_deadline(&r->fab);

	while (!c->op->seen) {
		rpc_serve(r);
		ft_turn(r->fab.ft, ft_poll(&r->fab));
		FT_CHECK(ft_now() < deadline, "a call has no response");
	}
	FT_CHECK(!c->op->err, "a call ended with %s", ft_err_name(c->op->err));
	FT_CHECK(c->op->flags & FI_COPYRPC_CALL, "flags %#llx", (unsigned long long)c->op->flags);
	FT_CHECK(c->op->len == c->q.resp_len, "a response of %zu bytes, expected %u", c->op->len,
		 c->q.resp_len);
	FT_CHECK(ft_wrong(c->resp, c->op->len, ~c->q.key) < 0, "another call's response");
	ft_buf_check(c->resp, c->resp_max, c->op->len);
	ft_op_put(&r->fab, c->op);
	ft_buf_free(c->resp);
}

/* ---- callee ---- */

struct rpc_question rpc_read_request(const struct fi_copyrpc_request *req)
{
	struct rpc_question q;

	FT_CHECK(req->len >= RPC_LEAST, "a request of %zu bytes", req->len);
	memcpy(&q, req->data, sizeof(q));
	FT_CHECK(ft_wrong_from((const uint8_t *)req->data + RPC_LEAST, req->len - RPC_LEAST, q.key,
			       RPC_LEAST) < 0,
		 "a request's bytes are wrong");
	FT_CHECK(q.resp_len <= req->resp_max, "a maximum response of %zu, expected at least %u",
		 req->resp_max, q.resp_len);
	return q;
}

void rpc_reply(struct rpc *r, const struct fi_copyrpc_request *req, struct rpc_question q,
	       uint64_t flags)
{
	uint8_t *buf = ft_buf_new(q.resp_len);

	ft_fill(buf, q.resp_len, ~q.key);
	FT_OK(fi_copyrpc_reply(r->ops, r->fab.ep, req, buf, q.resp_len, flags));
	ft_buf_free(buf);
	r->served++;
}

void rpc_serve(struct rpc *r)
{
	struct fi_copyrpc_request reqs[BATCH];
	ssize_t cnt = fi_copyrpc_recv(r->ops, r->fab.ep, reqs, BATCH, 0);

	FT_CHECK(cnt > 0 || cnt == -FI_EAGAIN, "fi_copyrpc_recv: %zd", cnt);
	while (cnt > 0) {
		ssize_t at = (ssize_t)rpc_roll(r, (uint32_t)cnt);
		struct rpc_question q = rpc_read_request(&reqs[at]);

		if (!rpc_roll(r, 4))
			FT_OK(fi_copyrpc_release(r->ops, r->fab.ep, &reqs[at]));
		rpc_reply(r, &reqs[at], q, 0);
		reqs[at] = reqs[--cnt];
	}
}

void rpc_serve_until(struct rpc *r, unsigned cnt)
{
	double deadline = ft_deadline(&r->fab);

	while (r->served < cnt) {
		rpc_serve(r);
		FT_CHECK(ft_now() < deadline, "%u of %u requests came", r->served, cnt);
	}
}

size_t rpc_take_all(struct rpc *r, struct fi_copyrpc_request *reqs, size_t cnt)
{
	double deadline = ft_deadline(&r->fab);
	size_t have = 0;

	while (have < cnt) {
		ssize_t got = fi_copyrpc_recv(r->ops, r->fab.ep, reqs + have, cnt - have, 0);

		FT_CHECK(got > 0 || got == -FI_EAGAIN, "fi_copyrpc_recv: %zd", got);
		have += got > 0 ? (size_t)got : 0;
		FT_CHECK(ft_now() < deadline, "%zu of %zu requests came", have, cnt);
	}
	return have;
}
