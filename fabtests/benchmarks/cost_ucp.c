/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two ends of cost.h as workers of UCX: ucp_tag, one context. UCX_TLS selects the transport.
 * Built only if UCX's headers are installed. UCX is the peer of comparison.
 *
 * Accesses are ucp_put and ucp_get with registered memory. A put ends when its buffer may be used
 * again. UCP_COST_FLUSH in the environment ends each window when the server's memory has all of it.
 */
#include "cost.h"

#include <ucp/api/ucp.h>

#include <stdlib.h>

#define COST_TAG 1

const char *const cost_transport = "ucp_cost_bench";

struct cost_ucp_end {
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_address_t *addr;
	size_t addr_len;
	ucp_mem_h memh;
	char *mem;
	ucp_rkey_h rkey; /* of the peer's memory */
};

struct cost_ucp {
	struct cost_pair pair;
	ucp_context_h context;
	struct cost_ucp_end end[COST_ENDS];
};

static void must(const char *what, ucs_status_t status)
{
	if (status != UCS_OK)
		cost_die(what, ucs_status_string(status));
}

static void cost_ucp_sent(void *request, ucs_status_t status, void *user)
{
	must("a send", status);
	((struct cost_end *)user)->sent++;
	ucp_request_free(request);
}

static void cost_ucp_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
			      void *user)
{
	must("a receive", status);
	((struct cost_end *)user)->received++;
	ucp_request_free(request);
}

static void cost_ucp_open(struct cost_ucp *ucp, bool accesses)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
				.features = UCP_FEATURE_TAG | (accesses ? UCP_FEATURE_RMA : 0) };
	ucp_worker_params_t worker = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				       .thread_mode = UCS_THREAD_MODE_SINGLE };

	must("ucp_init", ucp_init(&params, NULL, &ucp->context));
	for (int i = 0; i < COST_ENDS; i++) {
		struct cost_ucp_end *e = &ucp->end[i];

		must("ucp_worker_create", ucp_worker_create(ucp->context, &worker, &e->worker));
		must("ucp_worker_get_address",
		     ucp_worker_get_address(e->worker, &e->addr, &e->addr_len));
	}
}

struct cost_pair *cost_pair_open(const char *name, int window, bool accesses)
{
	struct cost_ucp *ucp = calloc(1, sizeof(*ucp));

	if (!ucp)
		cost_die("a pair of ends", "out of memory");
	if (name)
		cost_die(name, "UCX_TLS chooses what carries the messages");
	cost_ucp_open(ucp, accesses);
	for (int i = 0; i < COST_ENDS; i++) {
		ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
					   .address = ucp->end[!i].addr };

		must("ucp_ep_create", ucp_ep_create(ucp->end[i].worker, &params, &ucp->end[i].ep));
	}
	return &ucp->pair;
}

static void cost_ucp_close_ep(struct cost_ucp *ucp, ucp_ep_h ep, ucp_worker_h worker)
{
	ucp_request_param_t param = { 0 };
	ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &param);

	if (!UCS_PTR_IS_PTR(request))
		return;
	while (ucp_request_check_status(request) == UCS_INPROGRESS) {
		ucp_worker_progress(worker);
		cost_progress(&ucp->pair, COST_CLIENT);
		cost_progress(&ucp->pair, COST_SERVER);
	}
	ucp_request_free(request);
}

void cost_pair_close(struct cost_pair *pair)
{
	struct cost_ucp *ucp = (struct cost_ucp *)pair;

	for (int i = 0; i < COST_ENDS; i++)
		cost_ucp_close_ep(ucp, ucp->end[i].ep, ucp->end[i].worker);
	for (int i = 0; i < COST_ENDS; i++) {
		ucp_worker_release_address(ucp->end[i].worker, ucp->end[i].addr);
		ucp_worker_destroy(ucp->end[i].worker);
	}
	ucp_cleanup(ucp->context);
	free(ucp);
}

bool cost_send(struct cost_pair *pair, int end, const void *buf, size_t len, int slot)
{
	struct cost_ucp *ucp = (struct cost_ucp *)pair;
	ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						      UCP_OP_ATTR_FIELD_USER_DATA,
				      .cb.send = cost_ucp_sent,
				      .user_data = &pair->end[end] };
	ucs_status_ptr_t request = ucp_tag_send_nbx(ucp->end[end].ep, buf, len, COST_TAG, &param);

	if (UCS_PTR_IS_ERR(request))
		must("ucp_tag_send_nbx", UCS_PTR_STATUS(request));
	if (!request)
		pair->end[end].sent++;
	return true;
}

void cost_recv(struct cost_pair *pair, int end, void *buf, size_t len, int slot)
{
	struct cost_ucp *ucp = (struct cost_ucp *)pair;
	ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						      UCP_OP_ATTR_FIELD_USER_DATA |
						      UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
				      .cb.recv = cost_ucp_received,
				      .user_data = &pair->end[end] };
	ucs_status_ptr_t request =
		ucp_tag_recv_nbx(ucp->end[end].worker, buf, len, COST_TAG, UINT64_MAX, &param);

	if (UCS_PTR_IS_ERR(request))
		must("ucp_tag_recv_nbx", UCS_PTR_STATUS(request));
}

void cost_progress(struct cost_pair *pair, int end)
{
	ucp_worker_progress(((struct cost_ucp *)pair)->end[end].worker);
}

static void cost_ucp_map(struct cost_ucp *ucp, int end, void *mem, size_t len)
{
	ucp_mem_map_params_t params = { .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
					.address = mem,
					.length = len };

	must("ucp_mem_map", ucp_mem_map(ucp->context, &params, &ucp->end[end].memh));
	ucp->end[end].mem = mem;
}

static void cost_ucp_access_open(struct cost_pair *pair, void *local, void *remote, size_t len)
{
	struct cost_ucp *ucp = (struct cost_ucp *)pair;
	size_t packed_len;
	void *packed;

	cost_ucp_map(ucp, COST_CLIENT, local, len);
	cost_ucp_map(ucp, COST_SERVER, remote, len);
	must("ucp_rkey_pack",
	     ucp_rkey_pack(ucp->context, ucp->end[COST_SERVER].memh, &packed, &packed_len));
	must("ucp_ep_rkey_unpack",
	     ucp_ep_rkey_unpack(ucp->end[COST_CLIENT].ep, packed, &ucp->end[COST_CLIENT].rkey));
	ucp_rkey_buffer_release(packed);
}

static void cost_ucp_access_close(struct cost_pair *pair)
{
	struct cost_ucp *ucp = (struct cost_ucp *)pair;

	ucp_rkey_destroy(ucp->end[COST_CLIENT].rkey);
	for (int i = 0; i < COST_ENDS; i++)
		must("ucp_mem_unmap", ucp_mem_unmap(ucp->context, ucp->end[i].memh));
}

static void cost_ucp_accessed(void *request, ucs_status_t status, void *user)
{
	must("an access", status);
	((struct cost_end *)user)->accessed++;
	ucp_request_free(request);
}

static bool cost_ucp_access(struct cost_pair *pair, bool put, size_t off, size_t len, int slot,
			    bool more)
{
	struct cost_ucp *ucp = (struct cost_ucp *)pair;
	struct cost_ucp_end *e = &ucp->end[COST_CLIENT];
	ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						      UCP_OP_ATTR_FIELD_USER_DATA |
						      UCP_OP_ATTR_FIELD_MEMH,
				      .cb.send = cost_ucp_accessed,
				      .user_data = &pair->end[COST_CLIENT],
				      .memh = e->memh };
	uint64_t remote = (uintptr_t)ucp->end[COST_SERVER].mem + off;
	ucs_status_ptr_t request =
		put ? ucp_put_nbx(e->ep, e->mem + off, len, remote, e->rkey, &param)
		    : ucp_get_nbx(e->ep, e->mem + off, len, remote, e->rkey, &param);

	if (UCS_PTR_IS_ERR(request))
		must("an access", UCS_PTR_STATUS(request));
	if (!request)
		pair->end[COST_CLIENT].accessed++;
	return true;
}

/* Waits until all puts are in the server's memory. */
static void cost_ucp_finish(struct cost_pair *pair)
{
	static int flushes = -1;
	struct cost_ucp_end *e = &((struct cost_ucp *)pair)->end[COST_CLIENT];
	ucp_request_param_t param = { 0 };
	ucs_status_ptr_t request;

	if (flushes < 0)
		flushes = getenv("UCP_COST_FLUSH") != NULL;
	if (!flushes)
		return;
	request = ucp_ep_flush_nbx(e->ep, &param);
	if (UCS_PTR_IS_ERR(request))
		must("ucp_ep_flush_nbx", UCS_PTR_STATUS(request));
	if (!request)
		return;
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		cost_progress(pair, COST_CLIENT);
	ucp_request_free(request);
}

static const struct cost_access_ops cost_ucp_accesses = {
	.open = cost_ucp_access_open,
	.close = cost_ucp_access_close,
	.start = cost_ucp_access,
	.finish = cost_ucp_finish,
};

const struct cost_access_ops *const cost_accesses = &cost_ucp_accesses;
