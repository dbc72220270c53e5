/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection requests of connected endpoints (FI_EP_MSG). Called by core through core_engine_ops,
 * and by cm's up-calls.
 *
 * cm_msg.h pairs two CM endpoints; the usual handshake then makes the connection. Events from the
 * control thread use the same queue as all others, so that "accepted" comes before "up".
 */
#include <string.h>

#include "cm/msg/cm_msg.h"
#include "core/core_engine.h"
#include "engine/eng_event.h"

int eng_connreq(struct core_engine_ep *eep, const struct sockaddr *addr, const void *data,
		size_t len)
{
	return cm_msg_connect(eep->cep, addr, data, len);
}

int eng_accept(struct core_engine_ep *eep, struct cm_connreq *connreq, const void *data, size_t len)
{
	return cm_connreq_accept(connreq, eep->cep, data, len);
}

static void eng_connreq_push(struct core_engine_ep *eep, struct eng_event *ev, const void *data,
			     size_t len)
{
	ev->eep = eep;
	ev->data_len = (uint32_t)len;
	if (len)
		memcpy(ev->data, data, len);
	eng_event_push(eep->engine, ev);
}

void eng_connreq_accepted(void *ctx, const struct sockaddr *addr, const void *data, size_t len)
{
	struct eng_event ev = { .kind = ENG_EVENT_ACCEPTED };

	eng_event_set_addr(&ev, addr);
	eng_connreq_push(ctx, &ev, data, len);
}

void eng_connreq_refused(void *ctx, int err, const void *data, size_t len)
{
	struct eng_event ev = { .kind = ENG_EVENT_REFUSED, .err = err };

	eng_connreq_push(ctx, &ev, data, len);
}

void eng_connreq_event(const struct eng_event *ev)
{
	struct core_engine_ep *eep = ev->eep;
	const struct core_upcalls *up = eep->engine->up;

	if (ev->kind == ENG_EVENT_ACCEPTED)
		up->on_accepted(eep->ep, (const struct sockaddr *)&ev->addr, ev->data,
				ev->data_len);
	else
		up->on_refused(eep->ep, ev->err, ev->data, ev->data_len);
}
