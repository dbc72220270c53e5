/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Caller and callee for the cases of crpc_rpc: calls whose requests name the response they want.
 * The callee replies with what a request names, and the caller checks that its call ends with this
 * response. Any end may be both; it serves while it waits.
 */
#ifndef FT_RPC_PAIR_H
#define FT_RPC_PAIR_H

#include <rdma/fi_ext_copyrpc.h>

#include "common/ft_op.h"

struct rpc {
	struct ft_fab fab;
	struct fi_copyrpc_ops *ops;
	uint64_t rng;
	unsigned served;
};

/* Contents of a request: key and length of the wanted response, then the key's bytes. */
struct rpc_question {
	uint32_t key, resp_len;
};

#define RPC_LEAST sizeof(struct rpc_question)

struct rpc_call {
	struct ft_op *op;
	uint8_t *resp;
	size_t resp_max;
	struct rpc_question q;
};

/* Opens an endpoint at each rank. Ends the case with notrun where there are no calls. */
void rpc_begin(struct rpc *r, struct ft *ft);
/* Checks that every call has ended, and closes the endpoint. */
void rpc_end(struct rpc *r);
/* Returns a random number. */
uint32_t rpc_roll(struct rpc *r, uint32_t below);

/* Sets up a call that is not started. */
void rpc_call_init(struct rpc_call *c, uint32_t key, size_t resp_len, size_t resp_max);
/* Starts a call. Returns 0 or -FI_EAGAIN. */
ssize_t rpc_call_try(struct rpc *r, struct rpc_call *c, size_t len, uint64_t flags);
/* Sets up a call and starts it as soon as there is room. */
void rpc_call_start(struct rpc *r, struct rpc_call *c, uint32_t key, size_t len, size_t resp_len,
		    size_t resp_max);
/* Waits for the response, checks and frees it. */
void rpc_call_finish(struct rpc *r, struct rpc_call *c);

/* Checks a request. */
struct rpc_question rpc_read_request(const struct fi_copyrpc_request *req);
void rpc_reply(struct rpc *r, const struct fi_copyrpc_request *req, struct rpc_question q,
	       uint64_t flags);
/* Takes the requests that are there, and replies in any order. */
void rpc_serve(struct rpc *r);
/* Serves until `cnt` requests have been replied to since rpc_begin. */
void rpc_serve_until(struct rpc *r, unsigned cnt);
/* Waits for `cnt` requests. Returns cnt. */
size_t rpc_take_all(struct rpc *r, struct fi_copyrpc_request *reqs, size_t cnt);

#endif
