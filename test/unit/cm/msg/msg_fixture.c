/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A listener and connecting endpoints: see msg_fixture.h. */
#include "unit/cm/msg/msg_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

static int msg_on_request(void *ctx, struct cm_connreq *connreq, const struct cm_connreq_info *info)
{
	struct msg_fixture *h = ctx;
	int ret;

	pthread_mutex_lock(&h->lock);
	ret = h->reported < MSG_REQUESTS_MAX ? h->report_ret : -1;
	if (!ret)
		h->requests[h->reported] = connreq;
	if (info->data_len)
		memcpy(h->data, info->data, info->data_len);
	h->data[info->data_len] = '\0';
	h->reported += !ret;
	pthread_mutex_unlock(&h->lock);
	return ret;
}

void msg_fixture_open(struct msg_fixture *h, const char *key, int timeout_ms, int backlog)
{
	union cm_addr addr;

	memset(h, 0, sizeof(*h));
	pthread_mutex_init(&h->lock, NULL);
	h->node = cm_test_node(key, timeout_ms);
	cm_test_addr("127.0.0.1", 0, &addr);
	cr_assert_eq(cm_listener_open(h->node, &addr.sa, backlog, msg_on_request, h, &h->listener),
		     0);
	cm_listener_addr(h->listener, &h->addr);
	for (int i = 0; i < MSG_ENDS; i++) {
		cm_end_open(&h->active[i], h->node, "127.0.0.1", 0);
		cm_end_open(&h->passive[i], h->node, "127.0.0.1", 0);
		cm_ep_make_private(h->active[i].cep);
		cm_ep_make_private(h->passive[i].cep);
	}
}

void msg_fixture_close(struct msg_fixture *h)
{
	if (h->listener)
		cm_listener_close(h->listener);
	while (h->taken < h->reported)
		cm_connreq_reject(h->requests[h->taken++], -1, NULL, 0);
	for (int i = 0; i < MSG_ENDS; i++) {
		cm_end_close(&h->active[i]);
		cm_end_close(&h->passive[i]);
	}
	cm_node_close(h->node);
	pthread_mutex_destroy(&h->lock);
}

int msg_request(struct msg_fixture *h, int caller, const char *text)
{
	return cm_msg_connect(h->active[caller].cep, (struct sockaddr *)&h->addr, text,
			      strlen(text));
}

struct cm_connreq *msg_take_request(struct msg_fixture *h, int ms)
{
	struct cm_connreq *connreq = NULL;

	for (int i = 0; !connreq && i <= ms; i++) {
		pthread_mutex_lock(&h->lock);
		if (h->taken < h->reported)
			connreq = h->requests[h->taken++];
		pthread_mutex_unlock(&h->lock);
		if (!connreq)
			cm_test_sleep_ms(1);
	}
	return connreq;
}
