/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A client of the key-value benchmark: see kv_client.h. */
#include "kv_client.h"

#include <copyrpc/local.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv_idle.h"
#include "kv_msg.h"
#include "kv_pattern.h"

#define KV_POLL     64          /* responses in one go */
#define KV_STEPS    10000       /* length of a pattern */
#define KV_OPEN_MS  60000       /* time for a daemon to accept the client */
#define KV_DRAIN_NS 60000000000 /* time for the last responses */
#define KV_PAUSE_NS 1000000     /* time in which a node that failed to respond is not asked */
#define KV_SKIP     16          /* steps to nodes that are not asked, skipped at once */

/* Request in flight. */
struct kv_flight {
	struct kv_step step;
	uint64_t seq; /* puts to this key by this client that were sent before or by this request */
	uint64_t start_ns;
	struct kv_flight *next; /* in the list of unused ones */
};

/* Responses of one poll, before they are added to the tally. */
struct kv_ends {
	uint32_t done, remote, last;
};

struct kv_client {
	const struct kv_conf *conf;
	struct kv_board *board;
	struct kv_tally *tally;
	uint32_t number;         /* among the clients of all nodes */
	struct crl_client **ipc; /* to each daemon */
	struct crl_client *ring; /* to the daemon that calls other nodes; NULL: not used */
	struct kv_net *net;      /* own endpoint; NULL: not used */
	struct kv_pattern pattern;
	uint32_t at; /* next step of the pattern */
	struct kv_flight *flights, *unused;
	uint32_t in_flight;
	uint32_t *puts;    /* sent to each key of each node */
	bool *broken;      /* nodes that failed to respond: order is not checked there any more */
	uint64_t *resume;  /* time from which each node is asked again */
	uint64_t measured; /* time from which latencies count */
	uint64_t now;      /* time of the last poll or request */
	struct kv_ends ends;
	struct kv_idle idle;
};

void kv_channel_name(char name[KV_CHANNEL_NAME_MAX], int pid, uint32_t daemon)
{
	if (daemon == KV_CHANNEL_RING)
		snprintf(name, KV_CHANNEL_NAME_MAX, "copyrpc_benchkv.%d.ring", pid);
	else
		snprintf(name, KV_CHANNEL_NAME_MAX, "copyrpc_benchkv.%d.%u", pid, daemon);
}

static int kv_client_failed(struct kv_client *c, const char *what, int ret)
{
	fprintf(stderr, "copyrpc_benchkv: client %u: %s: %s\n", c->number, what, strerror(-ret));
	atomic_store(&c->tally->failed, true);
	return ret;
}

/* ---- set-up ---- */

static int kv_client_open_channel(struct kv_client *c, uint32_t daemon, struct crl_client **out)
{
	char name[KV_CHANNEL_NAME_MAX];
	int ret;

	kv_channel_name(name, c->board->node_pid, daemon);
	ret = crl_client_open(out, name, KV_OPEN_MS);
	return ret ? kv_client_failed(c, name, ret) : 0;
}

static int kv_client_open_channels(struct kv_client *c)
{
	int ret = 0;

	for (uint32_t i = 0; i < c->conf->daemons && !ret; i++)
		ret = kv_client_open_channel(c, i, &c->ipc[i]);
	if (!ret && (c->conf->backend == KV_DELEGATION || c->conf->backend == KV_MPI))
		ret = kv_client_open_channel(c, KV_CHANNEL_RING, &c->ring);
	return ret;
}

static int kv_client_open_net(struct kv_client *c)
{
	int ret;

	if (c->conf->backend != KV_DIRECT || c->board->ranks == 1)
		return 0;
	ret = kv_net_open_rpc(&c->net, kv_conf_request_max(c->conf), kv_conf_response_max(c->conf));
	if (!ret)
		ret = c->net->ops->connect(c->net, c->board->names, c->board->name_cnt);
	return ret ? kv_client_failed(c, "endpoint", ret) : 0;
}

static int kv_client_alloc(struct kv_client *c)
{
	const struct kv_conf *conf = c->conf;
	size_t keys = (size_t)conf->keys * c->board->ranks;

	c->ipc = calloc(conf->daemons, sizeof(struct crl_client *));
	c->flights = calloc(conf->depth, sizeof(*c->flights));
	c->puts = calloc(keys, sizeof(*c->puts));
	c->broken = calloc(c->board->ranks, sizeof(*c->broken));
	c->resume = calloc(c->board->ranks, sizeof(*c->resume));
	c->measured = UINT64_MAX;
	if (!c->ipc || !c->flights || !c->puts || !c->broken || !c->resume)
		return kv_client_failed(c, "memory", -ENOMEM);
	for (uint32_t i = 0; i < conf->depth; i++) {
		c->flights[i].next = c->unused;
		c->unused = &c->flights[i];
	}
	return 0;
}

static int kv_client_make_pattern(struct kv_client *c, uint32_t index)
{
	struct kv_mix mix = {
		.ranks = c->board->ranks,
		.first = (c->board->rank + 1 + index) % c->board->ranks,
		.pinned = c->conf->pinned,
		.remote_only = c->conf->remote_only,
		.self = c->board->rank,
		.keys = c->conf->keys,
		.read_ratio = c->conf->read_ratio,
		.zipf = c->conf->zipf,
		.seed = c->conf->seed,
		.len = KV_STEPS,
	};
	int ret = kv_pattern_init(&c->pattern, &mix, c->number);

	return ret ? kv_client_failed(c, "memory", ret) : 0;
}

/* ---- requests ---- */

static size_t kv_client_build(struct kv_client *c, const struct kv_flight *flight, uint8_t *buf)
{
	const struct kv_step *step = &flight->step;
	struct kv_value value = {
		.rank = step->rank,
		.writer = c->number,
		.key = step->key,
		.seq = flight->seq,
	};

	kv_put_request(buf, step->is_get ? KV_GET : KV_PUT, step->rank, step->key);
	if (step->is_get)
		return sizeof(struct kv_request);
	kv_value_fill(buf + sizeof(struct kv_request), c->conf->value_len, &value);
	return sizeof(struct kv_request) + c->conf->value_len;
}

static int kv_client_send(struct kv_client *c, struct kv_flight *flight)
{
	uint8_t buf[sizeof(struct kv_request) + KV_VALUE_MAX];
	size_t len = kv_client_build(c, flight, buf);
	uint32_t daemon = (uint32_t)(flight->step.key % c->conf->daemons);

	if (flight->step.rank != c->board->rank && c->net)
		return c->net->ops->call(c->net, flight->step.rank * c->conf->daemons + daemon, buf,
					 len, flight);
	if (flight->step.rank != c->board->rank && c->ring)
		return crl_client_call(c->ring, buf, len, flight, CRL_MORE);
	return crl_client_call(c->ipc[daemon], buf, len, flight, CRL_MORE);
}

static void kv_client_step(struct kv_client *c)
{
	c->at = c->at + 1 == c->pattern.len ? 0 : c->at + 1;
}

/* Skips steps to nodes that have just failed to respond. Returns false if all are like that. */
static bool kv_client_skip(struct kv_client *c)
{
	for (int i = 0; i < KV_SKIP; i++) {
		if (c->now >= c->resume[c->pattern.steps[c->at].rank])
			return true;
		kv_client_step(c);
	}
	return false;
}

/*
 * Starts the next request of the pattern. Returns 0, -EAGAIN without room, or the error that ends
 * the client.
 */
static int kv_client_start(struct kv_client *c)
{
	struct kv_flight *flight = c->unused;
	const struct kv_step *step;
	uint32_t *puts;
	int ret;

	if (!kv_client_skip(c))
		return -EAGAIN;
	step = &c->pattern.steps[c->at];
	puts = &c->puts[step->rank * c->conf->keys + step->key];
	flight->step = *step;
	flight->seq = *puts + !step->is_get;
	flight->start_ns = c->now;
	ret = kv_client_send(c, flight);
	if (ret)
		return ret;
	*puts += !step->is_get;
	kv_client_step(c);
	c->unused = flight->next;
	c->in_flight++;
	return 0;
}

static void kv_client_flush(struct kv_client *c)
{
	for (uint32_t i = 0; i < c->conf->daemons; i++)
		crl_client_flush(c->ipc[i]);
	if (c->ring)
		crl_client_flush(c->ring);
	if (c->net)
		c->net->ops->flush(c->net);
}

/* Fills the flight of requests. Returns 0 or the error that ends the client. */
static int kv_client_fill(struct kv_client *c)
{
	int ret = 0;
	bool any = false;

	c->now = kv_now_ns();
	while (c->unused && !(ret = kv_client_start(c)))
		any = true;
	if (any)
		kv_client_flush(c);
	return ret && ret != -EAGAIN ? kv_client_failed(c, "request", ret) : 0;
}

/* ---- responses ---- */

static void kv_client_fault(struct kv_client *c, enum kv_fault fault, const struct kv_step *step)
{
	if (!atomic_load(&c->tally->faults)) {
		atomic_store(&c->tally->first_fault, fault);
		fprintf(stderr, "copyrpc_benchkv: client %u: node %u, key %llu: %s\n", c->number,
			step->rank, (unsigned long long)step->key, kv_fault_name(fault));
	}
	kv_count(&c->tally->faults, 1);
}

/* Checks the response to a request that its node has executed. */
static enum kv_fault kv_client_check(const struct kv_client *c, const struct kv_flight *flight,
				     enum kv_status status, const uint8_t *value, size_t len)
{
	const struct kv_step *step = &flight->step;
	bool in_order = !c->broken[step->rank];
	struct kv_value expected = {
		.rank = step->rank,
		.writer = c->number,
		.key = step->key,
		.seq = in_order ? flight->seq : 0,
	};

	if (status == KV_BAD)
		return KV_FAULT_REFUSED;
	if (!step->is_get)
		return status == KV_OK && !len ? KV_FAULT_NONE : KV_FAULT_LENGTH;
	if (status == KV_NOT_FOUND)
		return in_order && flight->seq ? KV_FAULT_OLD : KV_FAULT_NONE;
	return kv_value_check(value, len, c->conf->value_len, &expected);
}

/* Notes a request that ended without a response, and leaves its node alone for a while. */
static void kv_client_unreachable(struct kv_client *c, const struct kv_flight *flight)
{
	uint64_t wait = c->now - flight->start_ns;

	c->broken[flight->step.rank] = true;
	c->resume[flight->step.rank] = c->now + KV_PAUSE_NS;
	kv_count(&c->tally->unreachable, 1);
	if (wait > atomic_load(&c->tally->error_wait))
		atomic_store(&c->tally->error_wait, wait);
}

/* Ends a request with its response. */
static void kv_client_end(struct kv_client *c, struct kv_flight *flight, int status,
			  const uint8_t *data, size_t len)
{
	struct kv_response head = { .status = KV_UNREACHABLE };
	enum kv_fault fault;

	if (!status && len >= sizeof(head))
		memcpy(&head, data, sizeof(head));
	if (head.status == KV_UNREACHABLE) {
		kv_client_unreachable(c, flight);
	} else {
		fault = kv_client_check(c, flight, (enum kv_status)head.status, data + sizeof(head),
					len - sizeof(head));
		if (fault)
			kv_client_fault(c, fault, &flight->step);
		c->ends.done++;
		c->ends.remote += flight->step.rank != c->board->rank;
		c->ends.last += flight->step.rank == c->board->ranks - 1;
		if (flight->start_ns >= c->measured)
			bench_hist_add(&c->tally->latency, c->now - flight->start_ns);
	}
	flight->next = c->unused;
	c->unused = flight;
	c->in_flight--;
}

/* Processes responses of a local channel. Returns their number or the error of the channel. */
static int kv_client_poll_channel(struct kv_client *c, struct crl_client *channel)
{
	struct crl_response responses[KV_POLL];
	int n = crl_client_poll(channel, responses, KV_POLL);

	for (int i = 0; i < n; i++)
		kv_client_end(c, responses[i].context, responses[i].status, responses[i].data,
			      responses[i].len);
	return n;
}

static int kv_client_poll_net(struct kv_client *c)
{
	struct kv_net_end ends[KV_POLL];
	int n = c->net->ops->poll(c->net, ends, KV_POLL);

	for (int i = 0; i < n; i++) {
		kv_client_end(c, ends[i].context, ends[i].status, ends[i].data, ends[i].len);
		if (!ends[i].status)
			c->net->ops->release(c->net, &ends[i]);
	}
	return n;
}

/* Adds the responses of a poll to the tally, which the main thread reads. */
static void kv_client_count(struct kv_client *c)
{
	kv_count(&c->tally->done, c->ends.done);
	kv_count(&c->tally->remote, c->ends.remote);
	kv_count(&c->tally->last, c->ends.last);
	c->ends = (struct kv_ends){ .done = 0 };
}

/* Processes all responses. Returns their number or the error that ends the client. */
static int kv_client_poll_all(struct kv_client *c)
{
	int n = 0, ret;

	c->now = kv_now_ns();
	for (uint32_t i = 0; i < c->conf->daemons; i++) {
		ret = kv_client_poll_channel(c, c->ipc[i]);
		if (ret < 0)
			return kv_client_failed(c, "daemon", ret);
		n += ret;
	}
	ret = c->ring ? kv_client_poll_channel(c, c->ring) : 0;
	if (ret < 0)
		return kv_client_failed(c, "daemon", ret);
	return n + ret + (c->net ? kv_client_poll_net(c) : 0);
}

static int kv_client_poll(struct kv_client *c)
{
	int n = kv_client_poll_all(c);

	if (c->ends.done)
		kv_client_count(c);
	return n;
}

/* Sleeps unless a response came meanwhile. */
static void kv_client_sleep(struct kv_client *c)
{
	struct pollfd fds[66];
	unsigned cnt = 0;
	int fd = -1;

	if (c->net && c->net->ops->arm(c->net, &fd))
		return;
	if (fd >= 0)
		fds[cnt++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (c->ring && crl_client_arm(c->ring))
		return;
	if (c->ring)
		fds[cnt++] = (struct pollfd){ .fd = crl_client_fd(c->ring), .events = POLLIN };
	for (uint32_t i = 0; i < c->conf->daemons; i++) {
		if (crl_client_arm(c->ipc[i]))
			return;
		fds[cnt++] = (struct pollfd){ .fd = crl_client_fd(c->ipc[i]), .events = POLLIN };
	}
	kv_idle_sleep(fds, cnt);
}

/* ---- life ---- */

int kv_client_advance(struct kv_client *c, bool fill)
{
	int n = kv_client_poll(c);

	if (n >= 0 && fill && kv_client_fill(c))
		return -EPIPE;
	return n;
}

/* Advances, or sleeps after some time without responses. Returns 0 or an error. */
static int kv_client_round(struct kv_client *c, bool fill)
{
	int n = kv_client_advance(c, fill);

	if (n < 0)
		return n;
	if (kv_idle_due(&c->idle, n > 0))
		kv_client_sleep(c);
	else if (c->board->crowded && n && !c->unused && c->idle.miss)
		sched_yield(); /* all requests are in flight, and their daemon may wait for this */
	return 0;
}

static void kv_client_loop(struct kv_client *c)
{
	uint64_t deadline;

	while (kv_board_phase(c->board) == KV_CONNECT)
		kv_client_round(c, false);
	while (kv_board_phase(c->board) == KV_WARM && !kv_client_round(c, true))
		;
	c->measured = kv_now_ns();
	while (kv_board_phase(c->board) == KV_RUN && !atomic_load(&c->tally->failed) &&
	       !kv_client_round(c, true))
		;
	deadline = kv_now_ns() + KV_DRAIN_NS;
	while (c->in_flight && !atomic_load(&c->tally->failed) && kv_now_ns() < deadline)
		kv_client_round(c, false);
	kv_count(&c->tally->lost, c->in_flight);
}

void kv_client_close(struct kv_client *c)
{
	for (uint32_t i = 0; c->ipc && i < c->conf->daemons; i++)
		if (c->ipc[i])
			crl_client_close(c->ipc[i]);
	if (c->ring)
		crl_client_close(c->ring);
	if (c->net)
		c->net->ops->close(c->net);
	kv_pattern_fini(&c->pattern);
	free(c->ipc);
	free(c->flights);
	free(c->puts);
	free(c->broken);
	free(c->resume);
	free(c);
}

struct kv_client *kv_client_open(const struct kv_conf *conf, struct kv_board *board, uint32_t index)
{
	struct kv_client *c = calloc(1, sizeof(*c));

	if (!c) {
		atomic_store(&board->tallies[index].failed, true);
		return NULL;
	}
	c->conf = conf;
	c->board = board;
	c->tally = &board->tallies[index];
	c->number = board->rank * conf->clients + index;
	c->idle.spin_ns = (uint64_t)conf->spin_us * 1000;
	if (!kv_client_alloc(c) && !kv_client_make_pattern(c, index) &&
	    !kv_client_open_channels(c) && !kv_client_open_net(c))
		return c;
	kv_client_close(c);
	return NULL;
}

void kv_client_run(const struct kv_conf *conf, struct kv_board *board, uint32_t index)
{
	struct kv_client *c = kv_client_open(conf, board, index);

	if (!c)
		return;
	atomic_store(&c->tally->ready, true);
	kv_client_loop(c);
	kv_client_close(c);
}
