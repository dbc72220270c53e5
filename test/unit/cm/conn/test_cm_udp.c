/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* UDP socket: replies to any sender, and packets that must have no effect (cm/conn/cm_udp.c). */
#include "cm/conn/cm_udp.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "support/rng.h"
#include "unit/cm/cm_fixture.h"

static struct cm_node *node;
static struct cm_end a;
static struct cm_raw_peer s;
static union cm_addr to;

static void open_with_key(const char *key)
{
	node = cm_test_node(key, 0);
	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	to = cm_test_addr_of(&a);
}

static void set_up(void)
{
	open_with_key(NULL);
}

static void tear_down(void)
{
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

TestSuite(cm_udp, .init = set_up, .fini = tear_down);

/** Sends bytes, with a valid digest, so that only what they say is refused. */
static void send_raw(uint8_t *buf, size_t len)
{
	if (len >= WIRE_CM_BARE_LEN)
		cm_mac_seal(&s.key, &s.addr, &to, buf, len);
	cr_assert(sendto(s.udp, buf, len, 0, &to.sa, cm_addr_len(&to)) == (ssize_t)len);
}

/* Waits until all packets sent have been processed: the reply to one more REQ arrives last. */
static struct copyrpc_stats_handshakes settle(void)
{
	struct wire_cm_pkt pkt;
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ, .nonce = 0xE0F };

	req.req.paths = WIRE_CM_PATH_SHM;
	cm_raw_peer_send(&s, &to, &req);
	do
		cr_assert(cm_raw_peer_recv(&s, &pkt, CM_TEST_WAIT_MS));
	while (pkt.nonce != 0xE0F);
	return cm_end_stats(&a);
}

static size_t make_req(uint8_t *buf)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ, .nonce = s.nonce, .src_inc = s.inc };

	req.req.paths = WIRE_CM_PATH_SHM;
	return wire_cm_encode(&req, buf);
}

static void expect_untouched(void)
{
	cr_assert(!a.prepared && !a.up && !a.failed);
	cm_node_lock(node);
	cr_assert_eq(a.cep->peers.peer_cnt, 0);
	cr_assert_eq(a.cep->incoming_cnt, 0);
	cm_node_unlock(node);
}

Test(cm_udp, reqs_are_replied_to_without_keeping_state)
{
	unsigned fds = cm_test_fd_count();
	struct wire_cm_pkt ack;

	for (int i = 0; i < 1000; i++) {
		s.inc = cm_mac_random();
		s.nonce = cm_mac_random();
		cr_assert(cm_raw_peer_get_ack(&s, &to, &ack));
		cr_assert(ack.nonce == s.nonce && ack.dst_inc == s.inc);
		cr_assert_eq(ack.src_inc, cm_ep_incarnation(a.cep));
	}
	cr_assert_eq(cm_end_stats(&a).tx_acks, 1000);
	cr_assert_eq(cm_test_fd_count(), fds);
	expect_untouched();
}

Test(cm_udp, cookies_differ_by_incarnation_and_nonce)
{
	struct wire_cm_pkt one, two, three;

	cr_assert(cm_raw_peer_get_ack(&s, &to, &one));
	cr_assert(cm_raw_peer_get_ack(&s, &to, &two));
	cr_assert(!memcmp(one.ack.cookie, two.ack.cookie, WIRE_CM_COOKIE_LEN));
	s.nonce++;
	cr_assert(cm_raw_peer_get_ack(&s, &to, &three));
	cr_assert(memcmp(one.ack.cookie, three.ack.cookie, WIRE_CM_COOKIE_LEN));
}

Test(cm_udp, invalid_packets_only_change_a_counter)
{
	struct rng rng = { 7 };
	uint8_t buf[1400];
	struct copyrpc_stats_handshakes stats;

	for (int i = 0; i < 500; i++) {
		size_t len = rng_below(&rng, sizeof(buf));

		for (size_t k = 0; k < len; k++)
			buf[k] = (uint8_t)rng_next(&rng);
		send_raw(buf, len);
		if (i % 50 == 49)
			settle();
	}
	stats = settle();
	cr_assert_eq(stats.rx_malformed, 500);
	cr_assert_eq(stats.tx_naks, 0);
	expect_untouched();
}

Test(cm_udp, every_truncation_is_refused)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = make_req(buf);

	for (size_t cut = 0; cut < len; cut++) {
		send_raw(buf, cut);
		if (cut % 50 == 49)
			settle();
	}
	cr_assert_eq(settle().rx_malformed, len);
	expect_untouched();
}

Test(cm_udp, a_req_with_a_flipped_bit_causes_at_most_a_reply)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = make_req(buf);

	for (size_t bit = 0; bit < 8 * len; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		send_raw(buf, len);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (bit % 50 == 49)
			settle();
	}
	settle();
	expect_untouched();
}

Test(cm_udp, unexpected_replies_are_counted_as_stale)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_ACK, .dst_inc = a.cep->inc };
	struct copyrpc_stats_handshakes stats;

	memset(pkt.ack.name, 'a', sizeof(pkt.ack.name));
	cm_raw_peer_send(&s, &to, &pkt);
	pkt = (struct wire_cm_pkt){ .type = WIRE_CM_NAK, .dst_inc = a.cep->inc };
	pkt.nak.err = FI_EACCES;
	cm_raw_peer_send(&s, &to, &pkt);
	for (enum wire_cm_type type = WIRE_CM_READY; type <= WIRE_CM_BYE; type++) {
		pkt = (struct wire_cm_pkt){ .type = type, .dst_inc = a.cep->inc };
		cm_raw_peer_send(&s, &to, &pkt);
	}
	stats = settle();
	cr_assert_eq(stats.rx_stale, 5);
	expect_untouched();
}

Test(cm_udp, own_packets_sent_back_are_counted_as_stale)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ, .src_inc = a.cep->inc };

	req.req.paths = WIRE_CM_PATH_SHM;
	cm_raw_peer_send(&s, &to, &req);
	cr_assert_eq(settle().rx_stale, 1);
	cr_assert_eq(a.cep->stats->tx_acks, 1);
}

static void expect_nak(struct wire_cm_pkt *req, uint32_t err)
{
	struct wire_cm_pkt nak;

	cm_raw_peer_send(&s, &to, req);
	cr_assert(cm_raw_peer_recv(&s, &nak, CM_TEST_WAIT_MS));
	cr_assert_eq(nak.type, WIRE_CM_NAK);
	cr_assert_eq(nak.nak.err, err);
	cr_assert(nak.nonce == s.nonce && nak.dst_inc == s.inc);
	cr_assert(strlen(nak.nak.text));
}

Test(cm_udp, refusals_carry_an_error_and_a_text)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ };
	uint8_t buf[WIRE_CM_MAX];
	struct wire_cm_pkt nak;
	size_t len = make_req(buf);

	expect_nak(&req, FI_EOPNOTSUPP); /* no path */
	req.req.paths = WIRE_CM_PATH_SHM;
	req.features = 1ull << 32; /* unknown and required */
	expect_nak(&req, FI_ENOPROTOOPT);
	buf[4] = 2; /* another version */
	send_raw(buf, len);
	cr_assert(cm_raw_peer_recv(&s, &nak, CM_TEST_WAIT_MS));
	cr_assert_eq(nak.nak.err, FI_ENOPROTOOPT);
	cr_assert(strstr(nak.nak.text, "version 1"));
	req.features = 1; /* unknown and optional */
	cm_raw_peer_send(&s, &to, &req);
	cr_assert(cm_raw_peer_recv(&s, &nak, CM_TEST_WAIT_MS));
	cr_assert_eq(nak.type, WIRE_CM_ACK);
	expect_untouched();
}

/* Otherwise a forger could flood a third party with more bytes than it sends. */
Test(cm_udp, a_packet_shorter_than_a_nak_gets_no_nak)
{
	struct wire_cm_pkt bye = {
		.type = WIRE_CM_BYE, .nonce = 7, .src_inc = s.inc, .dst_inc = 1
	};
	uint8_t buf[WIRE_CM_MAX];
	size_t len = wire_cm_encode(&bye, buf);

	buf[4] = 2; /* another version, in which a REQ may be shorter */
	buf[5] = WIRE_CM_REQ;
	send_raw(buf, len);
	cr_expect_eq(settle().tx_naks, 0);
	expect_untouched();
}

Test(cm_udp, icmp_errors_for_earlier_replies_do_not_suppress_later_ones)
{
	struct wire_cm_pkt ack;

	for (int i = 0; i < 50; i++) {
		struct cm_raw_peer gone;
		uint8_t buf[WIRE_CM_MAX];
		size_t len = make_req(buf);

		/* Sends a REQ and closes: the reply meets a closed port. */
		cm_raw_peer_open(&gone, "127.0.0.1", NULL);
		cr_assert(sendto(gone.udp, buf, len, 0, &to.sa, cm_addr_len(&to)) > 0);
		cm_raw_peer_close(&gone);
		cr_assert(cm_raw_peer_get_ack(&s, &to, &ack));
	}
	expect_untouched();
}

Test(cm_udp_key, a_req_without_the_key_gets_no_reply)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ }, pkt;

	open_with_key("key");
	req.req.paths = WIRE_CM_PATH_SHM;
	cm_raw_peer_send(&s, &to, &req); /* no key */
	cm_mac_key_set(&s.key, "kee");
	cm_raw_peer_send(&s, &to, &req); /* another key */
	cr_assert(!cm_raw_peer_recv(&s, &pkt, 100));
	cm_mac_key_set(&s.key, "key");
	cr_assert(cm_raw_peer_get_ack(&s, &to, &pkt));
	cr_assert_eq(cm_end_stats(&a).rx_bad_mac, 2);
	expect_untouched();
	tear_down();
}
