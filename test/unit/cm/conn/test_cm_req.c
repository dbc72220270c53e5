/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Repetition, completion and states of requests: cm/conn/cm_req.c. */
#include "cm/conn/cm_req.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>

#include "cm/ep/cm_ep.h"
#include "support/rng.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

/* Network that loses, duplicates and reorders packets. Called under the node's lock. */
struct bad_network {
	struct rng rng;
	unsigned lost, twice, held;
	uint8_t buf[WIRE_CM_MAX]; /* packet that the next one overtakes */
	size_t len;
	int fd;
	struct sockaddr_storage to;
	socklen_t to_len;
};

static ssize_t bad_send(void *ctx, int fd, const void *buf, size_t len, const struct sockaddr *to,
			socklen_t to_len)
{
	struct bad_network *net = ctx;
	size_t held_len = net->len;
	uint8_t held[WIRE_CM_MAX];

	memcpy(held, net->buf, held_len);
	net->len = 0;
	if (rng_chance(&net->rng, 2, 10)) {
		net->lost++;
	} else if (!held_len && rng_chance(&net->rng, 3, 10)) {
		net->held++;
		memcpy(net->buf, buf, len);
		memcpy(&net->to, to, to_len);
		net->len = len;
		net->to_len = to_len;
		net->fd = fd;
	} else {
		sendto(fd, buf, len, MSG_DONTWAIT, to, to_len);
		if (rng_chance(&net->rng, 3, 10) && ++net->twice)
			sendto(fd, buf, len, MSG_DONTWAIT, to, to_len);
	}
	if (held_len)
		sendto(fd, held, held_len, MSG_DONTWAIT, (struct sockaddr *)&net->to, net->to_len);
	return (ssize_t)len;
}

static struct cm_node *bad_node(struct bad_network *net, uint64_t seed)
{
	struct cm_cfg cfg = { .peer_timeout_ms = 100000,
			      .udp_send = bad_send,
			      .udp_send_ctx = net };
	struct cm_node *node;

	memset(net, 0, sizeof(*net));
	net->rng.state = seed;
	cr_assert(!cm_node_open_cfg(&cfg, &node));
	return node;
}

Test(cm_req, loss_repetition_and_reordering_do_not_matter)
{
	struct bad_network net_a, net_b;
	struct cm_node *node_a = bad_node(&net_a, 1), *node_b = bad_node(&net_b, 2);
	enum { PAIRS = 40 };
	static struct cm_end a[PAIRS], b[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		cm_end_open(&a[i], node_a, "127.0.0.1", 0);
		cm_end_open(&b[i], node_b, "127.0.0.1", 0);
		cr_assert(!cm_end_connect(&a[i], &b[i]));
	}
	for (int i = 0; i < PAIRS; i++) {
		cr_assert(cm_end_wait(&a[i], &a[i].requested, 1, CM_TEST_WAIT_MS));
		cr_assert(cm_end_wait(&b[i], &b[i].up, 1, CM_TEST_WAIT_MS));
	}
	cm_test_sleep_ms(100);
	for (int i = 0; i < PAIRS; i++) {
		cr_assert(a[i].up == 1 && b[i].up == 1 && !a[i].failed && !b[i].failed);
		cr_assert(cm_end_live(&a[i]) == 1 && cm_end_live(&b[i]) == 1);
		cm_end_close(&a[i]);
		cm_end_close(&b[i]);
	}
	cr_assert(net_a.lost && net_a.twice && net_a.held && net_b.lost);
	cm_node_close(node_a);
	cm_node_close(node_b);
}

Test(cm_req, a_conn_that_is_up_completes_further_requests)
{
	struct cm_node *node;
	struct cm_end a, b;

	node = cm_ends_open(0, &a, &b);
	for (unsigned i = 1; i <= 10; i++) {
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.requested, i, CM_TEST_WAIT_MS));
	}
	/* The passive end can request as well. */
	cr_assert(!cm_end_connect(&b, &a));
	cr_assert(cm_end_wait(&b, &b.requested, 1, CM_TEST_WAIT_MS));
	cr_assert(a.prepared == 1 && b.prepared == 1);
	cr_assert(cm_end_live(&a) == 1 && cm_end_live(&b) == 1);
	cm_ends_close(node, &a, &b);
}

Test(cm_req, a_cancelled_request_has_no_result)
{
	struct cm_node *node;
	struct cm_raw_peer s;
	struct cm_end a, b;

	node = cm_ends_open(200, &a, &b);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
	cm_connect_cancel(a.cep, &s.addr.sa);
	cm_connect_cancel(a.cep, &s.addr.sa);
	for (int i = 0; i < 200; i++) {
		cr_assert(!cm_end_connect(&a, &b));
		cm_connect_cancel(a.cep, (struct sockaddr *)&b.addr);
		cm_end_reap(&a);
	}
	cm_test_sleep_ms(400);
	cr_assert(!a.failed);
	cr_assert(a.requested <= a.up);
	cr_assert_eq(a.cep->req_slot_cnt, 0);
	/* The timeout is short: a machine that stalls may need another try. */
	for (int i = 0; i < 20 && !cm_end_get(&a, &a.requested); i++) {
		cr_assert(!cm_end_connect(&a, &b));
		cm_end_wait(&a, &a.requested, 1, 1000);
	}
	cr_assert(cm_end_get(&a, &a.requested));
	cm_raw_peer_close(&s);
	cm_ends_close(node, &a, &b);
}

/* Counts requests being probed; with_slot: only those with a slot. */
static unsigned count_probed(struct cm_end *a, unsigned cnt, uint16_t port, bool with_slot)
{
	unsigned probed = 0;

	cm_node_lock(a->node);
	for (unsigned i = 0; i < cnt; i++) {
		union cm_addr to;
		struct cm_peer *peer;

		cm_test_addr("127.1.0.0", port, &to);
		to.in.sin_addr.s_addr = htonl(0x7F010001u + i);
		peer = cm_peer_find(a->cep, &to);
		probed += peer && peer->req->state == CM_REQ_PROBE &&
			  (peer->req->has_slot || !with_slot);
	}
	cm_node_unlock(a->node);
	return probed;
}

Test(cm_req, few_are_probed_at_a_time_and_silent_peers_do_not_delay_the_rest)
{
	enum { CNT = 200 };
	struct cm_node *node = cm_test_node(NULL, 100000);
	struct cm_raw_peer s;
	struct cm_end a, b;
	uint16_t port;

	cm_raw_peer_open(&s, "0.0.0.0", NULL);
	port = cm_addr_port(&s.addr);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	for (unsigned i = 0; i < CNT; i++) {
		union cm_addr to;

		cm_test_addr("127.1.0.0", port, &to);
		to.in.sin_addr.s_addr = htonl(0x7F010001u + i);
		cr_assert(!cm_connect(a.cep, &to.sa, false));
	}
	cr_assert_eq(count_probed(&a, CNT, port, true), CM_REQ_SLOTS);
	cr_assert_eq(a.cep->req_slot_cnt, CM_REQ_SLOTS);
	/*
	 * The last in the queue is a live peer: it gets a slot long before the silent ones time
	 * out.
	 */
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS));
	cr_assert(!a.failed);
	cr_assert_eq(count_probed(&a, CNT, port, false), CNT);
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(node);
}

Test(cm_req, repetitions_back_off_at_random_intervals)
{
	struct cm_node *node = cm_test_node(NULL, 1000000);
	uint64_t at[8], asked, least = 0;
	struct wire_cm_pkt pkt;
	struct cm_raw_peer s;
	struct cm_end a;

	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	asked = util_clock_ns();
	cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
	for (int i = 0; i < 8; i++) {
		cr_assert(cm_raw_peer_recv(&s, &pkt, CM_TEST_WAIT_MS));
		cr_assert_eq(pkt.type, WIRE_CM_REQ);
		at[i] = util_clock_ns();
	}
	/* Measured from the send: a late receive shortens the next gap. */
	for (unsigned i = 0; i < 7; i++) {
		uint64_t ms = CM_REQ_RETRY_MS << i, took = (at[i + 1] - asked) / UTIL_NS_PER_MS;

		ms = ms < CM_REQ_RETRY_MAX ? ms : CM_REQ_RETRY_MAX;
		least += ms / 2;
		cr_assert(took + 5 >= least, "repetition %u: %d ms", i, (int)took);
	}
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

Test(cm_req, transitions_are_those_of_the_table_and_no_others)
{
	static const char *const legal[] = { "queued>probe",  "queued>attempt", "probe>attempt",
					     "probe>pause",   "attempt>pause",  "pause>probe",
					     "pause>attempt", "done>pause" };

	cm_test_transitions(&cm_req_states, legal, sizeof(legal) / sizeof(legal[0]));
}
