/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A daemon of the key-value benchmark: see kv_daemon.h. */
#include "kv_daemon.h"

#include <errno.h>
#include <string.h>

#include "kv_insn.h"

#define KV_TAKE 64 /* requests or responses in one go */

uint32_t kv_daemon_caller(const struct kv_conf *conf, uint32_t rank)
{
	return conf->backend == KV_META ? rank % conf->daemons : 0;
}

int kv_daemon_init(struct kv_daemon *d)
{
	const struct kv_conf *conf = d->conf;

	d->pool.unused = NULL;
	d->waiting = 0;
	d->sent = 0;
	d->idle = (struct kv_idle){ .spin_ns = (uint64_t)conf->spin_us * 1000 };
	d->to_member = calloc(conf->daemons, sizeof(*d->to_member));
	d->to_node = calloc(d->board->ranks, sizeof(*d->to_node));
	if (!d->to_member || !d->to_node)
		return -ENOMEM;
	return kv_store_init(&d->store, d->board->rank, d->id, conf->daemons, conf->keys,
			     conf->value_len);
}

void kv_daemon_fini(struct kv_daemon *d)
{
	kv_pending_pool_fini(&d->pool);
	kv_store_fini(&d->store);
	free(d->to_member);
	free(d->to_node);
}

/* Sends a response back the way its request came. The requester may be gone: it needs none then. */
static void kv_daemon_respond(struct kv_daemon *d, const struct kv_pending *pending,
			      const void *data, size_t len)
{
	switch (pending->source) {
	case KV_FROM_RING: crl_server_reply(d->ring, pending->handle, data, len); break;
	case KV_FROM_IPC: crl_server_reply(d->ipc, pending->handle, data, len); break;
	case KV_FROM_MEMBER: crl_member_reply(d->member, pending->handle, data, len); break;
	case KV_FROM_NET: d->net->ops->reply(d->net, &pending->net, data, len); break;
	}
}

static void kv_daemon_refuse(struct kv_daemon *d, const struct kv_pending *pending,
			     enum kv_status status)
{
	struct kv_response response;

	kv_put_response(&response, status);
	kv_daemon_respond(d, pending, &response, sizeof(response));
}

/* Ends a request that was forwarded, with the response of its destination. */
static void kv_daemon_finish(struct kv_daemon *d, struct kv_pending *pending, int status,
			     const void *data, size_t len)
{
	if (status || len < sizeof(struct kv_response))
		kv_daemon_refuse(d, pending, KV_UNREACHABLE);
	else
		kv_daemon_respond(d, pending, data, len);
	kv_pending_release(&d->pool, pending);
}

/* Hands a request to another daemon. Returns false if it has to wait for room. */
static bool kv_daemon_to_member(struct kv_daemon *d, uint32_t member, struct kv_pending *pending)
{
	int ret =
		crl_member_call(d->member, member, pending->data, pending->len, pending, CRL_MORE);

	if (ret == -EAGAIN)
		return false;
	if (ret)
		kv_daemon_finish(d, pending, ret, NULL, 0);
	else
		kv_count(&d->tally->forwarded, 1);
	return true;
}

/* Sends a request to another node. Returns false if it has to wait for room. */
static bool kv_daemon_to_node(struct kv_daemon *d, uint32_t rank, struct kv_pending *pending)
{
	int ret = d->net->ops->call(d->net, rank, pending->data, pending->len, pending);

	if (ret == -EAGAIN)
		return false;
	if (ret)
		kv_daemon_finish(d, pending, ret, NULL, 0);
	else
		d->sent++;
	return true;
}

typedef bool (*kv_send)(struct kv_daemon *d, uint32_t index, struct kv_pending *pending);

/* Sends a request, behind those that wait for the same destination. */
static void kv_daemon_forward(struct kv_daemon *d, struct kv_pending_queue *queues, uint32_t index,
			      const struct kv_pending *from, kv_send send)
{
	struct kv_pending *pending = kv_pending_alloc(&d->pool, from);

	if (!pending) {
		kv_daemon_refuse(d, from, KV_UNREACHABLE);
		return;
	}
	if (!queues[index].first && send(d, index, pending))
		return;
	kv_pending_push(&queues[index], pending);
	d->waiting++;
	kv_count(&d->tally->waited, 1);
}

/* Sends what has room by now, in order. */
static void kv_daemon_retry(struct kv_daemon *d, struct kv_pending_queue *queues, uint32_t count,
			    kv_send send)
{
	for (uint32_t i = 0; i < count && d->waiting; i++)
		while (queues[i].first) {
			struct kv_pending *pending = kv_pending_pop(&queues[i]);
			struct kv_pending *rest = queues[i].first;

			if (!send(d, i, pending)) {
				pending->next = rest;
				queues[i].last = rest ? queues[i].last : pending;
				queues[i].first = pending;
				break;
			}
			d->waiting--;
		}
}

static void kv_daemon_execute(struct kv_daemon *d, const struct kv_pending *from)
{
	uint8_t response[sizeof(struct kv_response) + KV_VALUE_MAX];
	size_t len = kv_store_execute(&d->store, from->data, from->len, response);

	kv_daemon_respond(d, from, response, len);
	kv_count(&d->tally->executed, 1);
}

/* Executes or forwards a request. `from` may be on the stack of the caller. */
static void kv_daemon_route(struct kv_daemon *d, const struct kv_pending *from)
{
	struct kv_request head;
	uint32_t to;

	if (from->len < sizeof(head)) {
		kv_daemon_refuse(d, from, KV_BAD);
		return;
	}
	memcpy(&head, from->data, sizeof(head));
	if (head.rank >= d->board->ranks ||
	    (head.rank != d->board->rank && from->source == KV_FROM_NET)) {
		kv_daemon_refuse(d, from, KV_BAD);
		return;
	}
	to = head.rank == d->board->rank ? (uint32_t)(head.key % d->conf->daemons)
					 : kv_daemon_caller(d->conf, head.rank);
	if (to != d->id)
		kv_daemon_forward(d, d->to_member, to, from, kv_daemon_to_member);
	else if (head.rank == d->board->rank)
		kv_daemon_execute(d, from);
	else
		kv_daemon_forward(d, d->to_node, head.rank, from, kv_daemon_to_node);
}

static void kv_daemon_route_taken(struct kv_daemon *d, enum kv_source source,
				  const struct crl_request *requests, int n)
{
	struct kv_pending from = { .source = source };

	for (int i = 0; i < n; i++) {
		from.handle = requests[i].handle;
		from.data = requests[i].data;
		from.len = requests[i].len;
		kv_daemon_route(d, &from);
	}
}

/* Processes the requests of clients. Returns their number. */
static int kv_daemon_serve(struct kv_daemon *d, struct crl_server *server, enum kv_source source)
{
	struct crl_request requests[KV_TAKE];
	int n = server ? crl_server_take(server, requests, KV_TAKE) : 0;

	kv_daemon_route_taken(d, source, requests, n);
	return n > 0 ? n : 0;
}

/* Processes responses and requests of the other daemons. Returns their number. */
static int kv_daemon_members(struct kv_daemon *d)
{
	struct crl_response responses[KV_TAKE];
	struct crl_request requests[KV_TAKE];
	int ends = crl_member_poll(d->member, responses, KV_TAKE), n;

	for (int i = 0; i < ends; i++)
		kv_daemon_finish(d, responses[i].context, responses[i].status, responses[i].data,
				 responses[i].len);
	n = crl_member_take(d->member, requests, KV_TAKE);
	kv_daemon_route_taken(d, KV_FROM_MEMBER, requests, n);
	return (ends > 0 ? ends : 0) + (n > 0 ? n : 0);
}

static int kv_daemon_ends(struct kv_daemon *d)
{
	struct kv_net_end ends[KV_TAKE];
	int n = d->net->ops->poll(d->net, ends, KV_TAKE);

	for (int i = 0; i < n; i++) {
		kv_daemon_finish(d, ends[i].context, ends[i].status, ends[i].data, ends[i].len);
		if (!ends[i].status)
			d->net->ops->release(d->net, &ends[i]);
	}
	return n;
}

/* Processes ends of calls to other nodes, and their requests. Returns their number. */
static int kv_daemon_net(struct kv_daemon *d)
{
	struct kv_net_request requests[KV_TAKE];
	int ends = kv_daemon_ends(d), n = d->net->ops->take(d->net, requests, KV_TAKE);

	for (int i = 0; i < n; i++)
		kv_daemon_route(d, &(struct kv_pending){
					   .source = KV_FROM_NET,
					   .net = requests[i],
					   .data = requests[i].data,
					   .len = requests[i].len,
				   });
	return ends + n;
}

/* Sends what this loop has produced. */
static void kv_daemon_flush(struct kv_daemon *d)
{
	crl_member_flush(d->member);
	if (!d->net)
		return;
	d->net->ops->flush(d->net);
	if (d->sent) {
		kv_count(&d->tally->calls, d->sent);
		kv_count(&d->tally->batches, 1);
		d->sent = 0;
	}
}

bool kv_daemon_loop(struct kv_daemon *d)
{
	int n = d->net ? kv_daemon_net(d) : 0;

	n += kv_daemon_serve(d, d->ring, KV_FROM_RING);
	n += kv_daemon_serve(d, d->ipc, KV_FROM_IPC);
	n += kv_daemon_members(d);
	if (d->waiting) {
		kv_daemon_retry(d, d->to_member, d->conf->daemons, kv_daemon_to_member);
		kv_daemon_retry(d, d->to_node, d->board->ranks, kv_daemon_to_node);
	}
	kv_daemon_flush(d);
	if (n)
		kv_count(&d->tally->loops, 1);
	return n > 0;
}

/* Sleeps unless something came meanwhile. */
static void kv_daemon_sleep(struct kv_daemon *d)
{
	struct pollfd fds[4];
	unsigned cnt = 0;
	int fd = -1;

	if (d->net && d->net->ops->arm(d->net, &fd))
		return;
	if (fd >= 0)
		fds[cnt++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (d->ring && crl_server_arm(d->ring))
		return;
	if (d->ring)
		fds[cnt++] = (struct pollfd){ .fd = crl_server_fd(d->ring), .events = POLLIN };
	if (crl_server_arm(d->ipc) || crl_member_arm(d->member))
		return;
	fds[cnt++] = (struct pollfd){ .fd = crl_server_fd(d->ipc), .events = POLLIN };
	fds[cnt++] = (struct pollfd){ .fd = crl_member_fd(d->member), .events = POLLIN };
	kv_count(&d->tally->sleeps, 1);
	/* A net without a descriptor has to be polled. */
	if (d->net && fd < 0)
		poll(fds, cnt, 0);
	else
		kv_idle_sleep(fds, cnt);
}

void kv_daemon_run(struct kv_daemon *d)
{
	atomic_store(&d->tally->insn_fd, kv_insn_open());
	while (kv_board_phase(d->board) != KV_END)
		if (kv_idle_due(&d->idle, kv_daemon_loop(d)))
			kv_daemon_sleep(d);
}
