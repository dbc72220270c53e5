/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A listener and connecting endpoints: see msg_fixture.h. */
#include "unit/cm/msg/msg_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

static int dial_on_asked(void *ctx, struct cm_connreq *connreq, const struct cm_connreq_info *info)
{
	struct dial_house *h = ctx;
	int ret;

	pthread_mutex_lock(&h->lock);
	ret = h->asked < DIAL_CALLS ? h->asked_ret : -1;
	if (!ret)
		h->calls[h->asked] = connreq;
	if (info->data_len)
		memcpy(h->said, info->data, info->data_len);
	h->said[info->data_len] = '\0';
	h->asked += !ret;
	pthread_mutex_unlock(&h->lock);
	return ret;
}

void dial_house_open(struct dial_house *h, const char *key, int timeout_ms, int backlog)
{
	union cm_addr addr;

	memset(h, 0, sizeof(*h));
	pthread_mutex_init(&h->lock, NULL);
	h->node = cm_test_node(key, timeout_ms);
	cm_test_addr("127.0.0.1", 0, &addr);
	cr_assert_eq(cm_listener_open(h->node, &addr.sa, backlog, dial_on_asked, h, &h->listener),
		     0);
	cm_listener_addr(h->listener, &h->addr);
	for (int i = 0; i < DIAL_ENDS; i++) {
		cm_end_open(&h->callers[i], h->node, "127.0.0.1", 0);
		cm_end_open(&h->hosts[i], h->node, "127.0.0.1", 0);
		cm_ep_make_private(h->callers[i].cep);
		cm_ep_make_private(h->hosts[i].cep);
	}
}

void dial_house_close(struct dial_house *h)
{
	if (h->listener)
		cm_listener_close(h->listener);
	while (h->taken < h->asked)
		cm_connreq_reject(h->calls[h->taken++], -1, NULL, 0);
	for (int i = 0; i < DIAL_ENDS; i++) {
		cm_end_close(&h->callers[i]);
		cm_end_close(&h->hosts[i]);
	}
	cm_node_close(h->node);
	pthread_mutex_destroy(&h->lock);
}

int dial_call(struct dial_house *h, int caller, const char *text)
{
	return cm_msg_connect(h->callers[caller].cep, (struct sockaddr *)&h->addr, text,
			      strlen(text));
}

struct cm_connreq *dial_take(struct dial_house *h, int ms)
{
	struct cm_connreq *connreq = NULL;

	for (int i = 0; !connreq && i <= ms; i++) {
		pthread_mutex_lock(&h->lock);
		if (h->taken < h->asked)
			connreq = h->calls[h->taken++];
		pthread_mutex_unlock(&h->lock);
		if (!connreq)
			cm_test_sleep_ms(1);
	}
	return connreq;
}
