/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements erpc_body.h. */
#include "erpc/base/erpc_body.h"

#include <stdlib.h>
#include <string.h>

#include "erpc/base/erpc_ep.h"
#include "erpc/base/erpc_session.h"
#include "util/bits.h"
#include "wire/wire_erpc.h"

static inline struct erpc_body *erpc_body_make(struct erpc_session *s, uint32_t len)
{
	struct erpc_body *body = util_pool_alloc(&s->ep->bodies);

	if (!body)
		return NULL;
	body->session = s;
	body->heap = NULL;
	body->len = len;
	body->refs = 1;
	body->delivered = false;
	util_list_push_back(&s->bodies, &body->link);
	return body;
}

struct erpc_body *erpc_body_new(struct erpc_session *s, uint32_t len)
{
	uint8_t *heap = malloc(len ? len : 1);
	struct erpc_body *body = heap ? erpc_body_make(s, len) : NULL;

	if (!body) {
		free(heap);
		return NULL;
	}
	body->heap = heap;
	body->data = heap;
	return body;
}

static struct erpc_body *__attribute__((noinline))
erpc_body_copy_cold(struct erpc_session *s, const uint8_t *data, uint32_t len)
{
	struct erpc_body *body = erpc_body_new(s, len);

	if (body)
		memcpy(body->heap, data, len);
	return body;
}

struct erpc_body *erpc_body_of(struct erpc_session *s, const struct dev_dgram_in *in, bool *kept)
{
	const struct dev_dgram *dg = s->ep->dg;
	const uint8_t *data = in->data + WIRE_ERPC_HDR_LEN;
	uint32_t len = in->len - WIRE_ERPC_HDR_LEN;
	struct erpc_body *body;

	if (UTIL_UNLIKELY(dg->rx_retained > dg->rx_cnt / 2))
		return erpc_body_copy_cold(s, data, len);
	body = erpc_body_make(s, len);
	if (!body)
		return NULL;
	body->data = data;
	body->slot = in->slot;
	*kept = true;
	return body;
}

void erpc_body_free(struct erpc_body *body)
{
	struct erpc_session *s = body->session;

	if (body->delivered)
		s->resp.retained_len -= body->len;
	if (UTIL_LIKELY(!body->heap))
		s->ep->dg->ops->release(s->ep->dg, body->slot);
	else
		free(body->heap);
	util_list_remove(&body->link);
	util_pool_release(&s->ep->bodies, body);
}
