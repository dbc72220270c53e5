/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Passive side of the handshake: HELLOs, crossings (cm/conn/cm_accept.c). */
#include "cm/conn/cm_accept.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "support/rng.h"
#include "unit/cm/cm_fixture.h"

static struct cm_node *node;
static struct cm_end a;
static struct cm_raw_peer s;
static union cm_addr to;

static void set_up_timeout(int ms)
{
	node = cm_test_node(NULL, ms);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	to = cm_test_addr_of(&a);
}

static void tear_down(void)
{
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

/* Opens a stream with a valid cookie, without sending HELLO yet. */
static void come_in(struct wire_cm_pkt *ack, struct wire_cm_pkt *hello)
{
	cr_assert(cm_raw_peer_get_ack(&s, &to, ack));
	cr_assert(cm_raw_peer_connect(&s, ack));
	cm_raw_peer_make_hello(&s, ack, hello);
}

static void expect_refusal(uint32_t err, const char *why)
{
	struct wire_cm_pkt nak;

	cr_assert(cm_raw_peer_recv_stream(&s, &nak, CM_TEST_WAIT_MS) == 1);
	cr_assert_eq(nak.type, WIRE_CM_NAK);
	cr_assert_eq(nak.nak.err, err, "%s", nak.nak.text);
	cr_assert(strstr(nak.nak.text, why), "%s", nak.nak.text);
	cr_assert_eq(cm_raw_peer_recv_stream(&s, &nak, CM_TEST_WAIT_MS), 0);
	cr_assert(!a.up);
}

Test(cm_accept, a_forged_cookie_prepares_nothing)
{
	struct wire_cm_pkt ack, hello;

	set_up_timeout(0);
	for (unsigned what = 0; what < 4; what++) {
		come_in(&ack, &hello);
		switch (what) {
		case 0: hello.hello.cookie[0] ^= 1; break;
		case 1: hello.nonce = s.nonce + 1; break;
		case 2: hello.src_inc = s.inc + 1; break;
		case 3: hello.hello.addr.port ^= 1; break;
		}
		cm_raw_peer_send_stream(&s, &to, &hello, NULL, 0);
		expect_refusal(FI_EAGAIN, "expired");
	}
	cr_assert_eq(cm_end_stats(&a).rx_bad_cookie, 4);
	cr_assert(!a.prepared);
	tear_down();
}

Test(cm_accept, a_hello_for_another_endpoint_is_ignored)
{
	struct wire_cm_pkt ack, hello, pkt;

	set_up_timeout(0);
	come_in(&ack, &hello);
	hello.dst_inc++;
	cm_raw_peer_send_stream(&s, &to, &hello, NULL, 0);
	cr_assert_eq(cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS), 0);
	come_in(&ack, &hello);
	hello.src_inc = a.cep->inc;
	cm_raw_peer_send_stream(&s, &to, &hello, NULL, 0);
	cr_assert_eq(cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS), 0);
	cr_assert_eq(cm_end_stats(&a).rx_stale, 2);
	cr_assert(!a.prepared);
	tear_down();
}

Test(cm_accept, descriptors_that_do_not_match_are_refused_and_closed)
{
	struct wire_cm_pkt ack, hello;
	unsigned before;
	int fd;

	set_up_timeout(0);
	fd = cm_test_memfd("x");
	before = cm_test_fd_count_at_rest(node);
	come_in(&ack, &hello); /* one more than announced */
	cm_raw_peer_send_stream(&s, &to, &hello, &fd, 1);
	expect_refusal(FI_EINVAL, "is inconsistent");
	come_in(&ack, &hello); /* one less */
	hello.hello.params.fd_cnt = 1;
	cm_raw_peer_send_stream(&s, &to, &hello, NULL, 0);
	expect_refusal(FI_EINVAL, "is inconsistent");
	cr_assert(!a.prepared);
	close(s.stream);
	s.stream = -1;
	cr_assert_eq(cm_test_fd_count_at_rest(node), before);
	tear_down();
}

Test(cm_accept, a_conn_without_ready_never_comes_up)
{
	struct wire_cm_pkt ack, hello, pkt;

	set_up_timeout(300);
	come_in(&ack, &hello);
	cm_raw_peer_send_stream(&s, &to, &hello, NULL, 0);
	cr_assert(cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS) == 1 &&
		  pkt.type == WIRE_CM_WELCOME);
	cr_assert_eq(cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS), 0);
	for (int i = 0; i < CM_TEST_WAIT_MS && !cm_end_reap(&a); i++)
		cm_test_sleep_ms(1);
	cr_assert(a.prepared == 1 && !a.up && !a.down);
	tear_down();
}

Test(cm_accept, a_second_hello_of_a_live_peer_is_refused_as_crossed)
{
	struct wire_cm_pkt ack, hello, pkt, ready = { .type = WIRE_CM_READY };
	int first;

	set_up_timeout(0);
	come_in(&ack, &hello);
	cm_raw_peer_send_stream(&s, &to, &hello, NULL, 0);
	cr_assert(cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS) == 1 &&
		  pkt.type == WIRE_CM_WELCOME);
	ready.dst_inc = ack.src_inc;
	cm_raw_peer_send_stream(&s, &to, &ready, NULL, 0);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS));
	first = s.stream;
	s.stream = -1;
	come_in(&ack, &hello);
	cm_raw_peer_send_stream(&s, &to, &hello, NULL, 0);
	cr_assert(cm_raw_peer_recv_stream(&s, &pkt, CM_TEST_WAIT_MS) == 1 &&
		  pkt.type == WIRE_CM_CROSSED);
	cr_assert(cm_end_live(&a) == 1 && a.prepared == 1);
	close(first);
	cr_assert(cm_end_wait(&a, &a.down, 1, CM_TEST_WAIT_MS));
	tear_down();
}

/* Two ends, each on its own node, that connect to each other. */
struct duel {
	struct cm_node *node[2];
	struct cm_end end[2];
};

/* Keeps the first ACK of each node until both nodes have sent one. */
static struct mailbox {
	pthread_mutex_t lock;
	bool is_open; /* forwards everything */
	struct letter {
		uint8_t buf[WIRE_CM_MAX];
		size_t len;
		int fd;
		struct sockaddr_storage to;
		socklen_t to_len;
	} letters[2];
} mailbox = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_barrier_t crossing;

/* Both ends have their ACK and are about to send HELLO. */
static void meet(struct cm_end *end)
{
	end->on_prepare = NULL;
	pthread_barrier_wait(&crossing);
}

static ssize_t post(void *ctx, int fd, const void *buf, size_t len, const struct sockaddr *addr,
		    socklen_t addr_len)
{
	struct letter *letter = ctx;
	bool is_kept;

	pthread_mutex_lock(&mailbox.lock);
	is_kept = !mailbox.is_open && ((const uint8_t *)buf)[5] == WIRE_CM_ACK;
	if (is_kept) {
		memcpy(letter->buf, buf, len);
		memcpy(&letter->to, addr, addr_len);
		letter->len = len;
		letter->to_len = addr_len;
		letter->fd = fd;
	}
	pthread_mutex_unlock(&mailbox.lock);
	return is_kept ? (ssize_t)len : sendto(fd, buf, len, MSG_DONTWAIT, addr, addr_len);
}

static void deliver_both(void)
{
	bool is_full = false;

	for (int i = 0; i < CM_TEST_WAIT_MS && !is_full; i++) {
		cm_test_sleep_ms(1);
		pthread_mutex_lock(&mailbox.lock);
		is_full = mailbox.letters[0].len && mailbox.letters[1].len;
		mailbox.is_open = is_full;
		pthread_mutex_unlock(&mailbox.lock);
	}
	cr_assert(is_full);
	for (int i = 0; i < 2; i++) {
		struct letter *letter = &mailbox.letters[i];

		cr_assert(sendto(letter->fd, letter->buf, letter->len, 0,
				 (struct sockaddr *)&letter->to, letter->to_len) > 0);
	}
}

static void duel_post_nodes(struct duel *d)
{
	for (int i = 0; i < 2; i++) {
		struct cm_cfg cfg = { .udp_send = post, .udp_send_ctx = &mailbox.letters[i] };

		cr_assert(!cm_node_open_cfg(&cfg, &d->node[i]));
	}
}

static void duel_check(struct duel *d, unsigned round)
{
	for (int i = 0; i < 2; i++) {
		struct cm_end *end = &d->end[i], *other = &d->end[1 - i];

		cr_assert(cm_end_wait(end, &end->requested, 1, CM_TEST_WAIT_MS), "round %u end %d",
			  round, i);
		cr_assert(cm_end_wait(other, &other->requested, 1, CM_TEST_WAIT_MS));
	}
	cm_test_sleep_ms(1);
	for (int i = 0; i < 2; i++) {
		struct cm_end *end = &d->end[i];

		cm_end_reap(end);
		cr_assert_eq(cm_end_live(end), 1, "round %u: %u conns live", round,
			     cm_end_live(end));
		/* A request made after the conn was up is completed by it as well. */
		cr_assert(end->up - end->requested <= 1 && end->requested == 1);
		cr_assert(!end->down && !end->failed);
		cm_end_check_text(end, d->end[1 - i].text);
	}
	/* Both ends have the same conn. */
	cr_assert(cm_end_put_live(&d->end[round % 2]));
	cr_assert(cm_end_wait(&d->end[1 - round % 2], &d->end[1 - round % 2].down, 1,
			      CM_TEST_WAIT_MS));
	cr_assert_eq(d->end[1 - round % 2].down_err, -FI_ESHUTDOWN);
}

static void duel_open(struct duel *d)
{
	for (int i = 0; i < 2; i++)
		cm_end_open(&d->end[i], d->node[i], "127.0.0.1", 0);
}

static void duel_close(struct duel *d)
{
	for (int i = 0; i < 2; i++)
		cm_end_close(&d->end[i]);
}

Test(cm_accept, crossing_hellos_end_with_one_conn_and_complete_both_requests)
{
	static struct duel d;
	uint64_t crossings = 0;

	duel_post_nodes(&d);
	for (unsigned round = 0; round < 100; round++) {
		mailbox.is_open = false;
		mailbox.letters[0].len = mailbox.letters[1].len = 0;
		duel_open(&d);
		pthread_barrier_init(&crossing, NULL, 2);
		d.end[0].on_prepare = d.end[1].on_prepare = meet;
		cr_assert(!cm_end_connect(&d.end[0], &d.end[1]));
		cr_assert(!cm_end_connect(&d.end[1], &d.end[0]));
		deliver_both();
		duel_check(&d, round);
		crossings += cm_end_stats(&d.end[0]).crossings + cm_end_stats(&d.end[1]).crossings;
		pthread_barrier_destroy(&crossing);
		duel_close(&d);
	}
	cr_assert(crossings >= 100, "%d", (int)crossings);
	cm_node_close(d.node[0]);
	cm_node_close(d.node[1]);
}

struct late {
	struct duel *d;
	unsigned spin;
};

static void *connect_late(void *arg)
{
	struct late *late = arg;

	for (volatile unsigned i = 0; i < late->spin; i++)
		;
	CM_CHECK(!cm_end_connect(&late->d->end[1], &late->d->end[0]));
	return NULL;
}

Test(cm_accept, connects_with_any_delay_between_them_end_with_one_conn)
{
	static struct duel d;
	struct rng rng = { 3 };

	d.node[0] = cm_test_node(NULL, 0);
	d.node[1] = cm_test_node(NULL, 0);
	for (unsigned round = 0; round < 300; round++) {
		struct late late = { &d, (unsigned)rng_below(&rng, 300000) };
		pthread_t thread;

		duel_open(&d);
		cr_assert(!pthread_create(&thread, NULL, connect_late, &late));
		for (volatile unsigned i = (unsigned)rng_below(&rng, 300000); i; i--)
			;
		cr_assert(!cm_end_connect(&d.end[0], &d.end[1]));
		cr_assert(!pthread_join(thread, NULL));
		duel_check(&d, round);
		duel_close(&d);
	}
	cm_node_close(d.node[0]);
	cm_node_close(d.node[1]);
}

/* All ends connect to all others at once, on two nodes in turn. */
Test(cm_accept, all_to_all_at_once_ends_with_one_conn_per_pair)
{
	enum { CNT = 24 };
	static struct cm_end end[CNT];
	struct cm_node *nodes[2] = { cm_test_node("k", 0), cm_test_node("k", 0) };

	for (unsigned i = 0; i < CNT; i++)
		cm_end_open(&end[i], nodes[i % 2], "127.0.0.1", 0);
	for (unsigned i = 0; i < CNT; i++)
		for (unsigned k = 0; k < CNT; k++)
			if (i != k)
				cr_assert(!cm_end_connect(&end[i], &end[k]));
	for (unsigned i = 0; i < CNT; i++) {
		cr_assert(cm_end_wait(&end[i], &end[i].requested, CNT - 1, CM_TEST_WAIT_MS));
		cr_assert(!end[i].failed);
	}
	cm_test_sleep_ms(50);
	for (unsigned i = 0; i < CNT; i++) {
		cm_end_reap(&end[i]);
		cr_assert_eq(cm_end_live(&end[i]), CNT - 1);
		cr_assert(end[i].requested == CNT - 1 && !end[i].down);
	}
	for (unsigned i = 0; i < CNT; i++)
		cm_end_close(&end[i]);
	cm_node_close(nodes[0]);
	cm_node_close(nodes[1]);
}

Test(cm_accept, without_descriptors_no_datagram_of_this_host_is_accepted)
{
	struct wire_cm_pkt ack, hello, nak;
	char ip[CM_ADDR_TEXT_MAX];

	cm_test_own_address(ip);
	cm_test_paths = (struct cm_paths){ WIRE_CM_PATH_NIC, { WIRE_CM_PATH_NIC } };
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, node, ip, 0);
	cm_raw_peer_open(&s, ip, NULL);
	to = cm_test_addr_of(&a);
	cr_assert(cm_raw_peer_get_ack(&s, &to, &ack));
	cm_raw_peer_make_hello(&s, &ack, &hello);
	cm_test_limit_fds(0);
	cm_raw_peer_send(&s, &to, &hello);
	cr_assert(cm_raw_peer_recv_reply(&s, &nak));
	cm_test_limit_fds(-1);
	cr_expect_eq(nak.type, WIRE_CM_NAK, "%s", wire_cm_type_name(nak.type));
	cr_expect_eq(nak.nak.err, FI_EAGAIN, "%s", nak.nak.text);
	cm_raw_peer_send(&s, &to, &hello);
	cr_assert(cm_raw_peer_recv_reply(&s, &nak));
	cr_expect_eq(nak.type, WIRE_CM_NAK, "%s", wire_cm_type_name(nak.type));
	cr_expect_eq(nak.nak.err, FI_EACCES, "%s", nak.nak.text);
	tear_down();
}
