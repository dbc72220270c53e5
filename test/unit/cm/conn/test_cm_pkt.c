/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sealing and opening of packets, conversion of connection parameters: cm/conn/cm_pkt.c. */
#include "cm/conn/cm_pkt.h"

#include <criterion/criterion.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "unit/cm/cm_fixture.h"

static struct cm_node node;
static struct cm_ep alice, bob;

static void set_up(void)
{
	cr_assert(!cm_mac_init());
	cm_mac_key_set(&node.key, "key");
	alice.node = bob.node = &node;
	alice.inc = 11;
	bob.inc = 22;
	alice.stats = &alice.own_stats;
	bob.stats = &bob.own_stats;
	cm_test_addr("127.0.0.1", 1, &alice.addr);
	cm_test_addr("127.0.0.1", 2, &bob.addr);
}

TestSuite(cm_pkt, .init = set_up);

static size_t seal_for(struct cm_ep *from, const struct cm_ep *to, struct wire_cm_pkt *pkt,
		       uint8_t *buf)
{
	struct cm_route via = { .to = to->addr };

	return cm_pkt_seal(from, &via, pkt, buf);
}

static int open_from(struct cm_ep *to, const struct cm_ep *from, const uint8_t *buf, size_t len,
		     struct wire_cm_pkt *pkt)
{
	struct cm_route via = { .to = from->addr };

	return cm_pkt_open(to, &via, buf, len, pkt);
}

static size_t bye(uint8_t *buf)
{
	struct wire_cm_pkt pkt = { .type = WIRE_CM_BYE, .nonce = 1, .dst_inc = 22 };

	return seal_for(&alice, &bob, &pkt, buf);
}

Test(cm_pkt, a_packet_opens_only_at_its_destination)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = bye(buf);
	struct wire_cm_pkt pkt;

	cr_assert_eq(open_from(&bob, &alice, buf, len, &pkt), 0);
	cr_assert(pkt.type == WIRE_CM_BYE && pkt.src_inc == 11 && pkt.dst_inc == 22);
	cr_assert_eq(open_from(&alice, &bob, buf, len, &pkt), -FI_EKEYREJECTED);
	cr_assert_eq(open_from(&bob, &bob, buf, len, &pkt), -FI_EKEYREJECTED);
	cr_assert_eq(bob.stats->rx_pkts, 2);
	cr_assert_eq(bob.stats->rx_bad_mac, 1);
}

Test(cm_pkt, invalid_packets_are_counted)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = bye(buf);
	struct wire_cm_pkt pkt;
	struct cm_route via;

	cr_assert_eq(open_from(&bob, &alice, buf, len - 1, &pkt), -FI_EINVAL);
	cr_assert_eq(open_from(&bob, &alice, buf, 0, &pkt), -FI_EINVAL);
	/* A packet without a source address must be a HELLO. */
	cr_assert_eq(cm_pkt_open_first(&bob, buf, len, &pkt, &via), -FI_EINVAL);
	cr_assert_eq(bob.stats->rx_malformed, 3);
	cr_assert_eq(bob.stats->rx_bad_mac, 0);
}

Test(cm_pkt, another_version_with_a_valid_mac_is_reported)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = bye(buf);
	struct wire_cm_pkt pkt;

	buf[4] = WIRE_CM_VERSION + 1;
	cr_assert_eq(open_from(&bob, &alice, buf, len, &pkt), -FI_EKEYREJECTED);
	cm_mac_seal(&node.key, &alice.addr, &bob.addr, buf, len);
	cr_assert_eq(open_from(&bob, &alice, buf, len, &pkt), -FI_ENOPROTOOPT);
	cr_assert_eq(pkt.nonce, 1);
}

Test(cm_pkt, nak_texts_are_truncated_and_printable)
{
	struct wire_cm_pkt pkt, back;
	uint8_t buf[WIRE_CM_MAX];
	char text[300];
	size_t len;

	memset(text, 'a', sizeof(text));
	text[1] = '\n';
	text[2] = '\x1b';
	text[4] = '\x7f';
	text[299] = '\0';
	cm_pkt_nak(&pkt, 1, 22, -FI_EACCES, text);
	len = seal_for(&alice, &bob, &pkt, buf);
	cr_assert_eq(open_from(&bob, &alice, buf, len, &back), 0);
	cr_assert_eq(strlen(back.nak.text), WIRE_CM_TEXT_MAX);
	cr_assert(!strncmp(back.nak.text, "a??a?a", 6));
	cr_assert_eq(back.nak.err, FI_EACCES);
}

Test(cm_pkt, connection_parameters_travel_unchanged)
{
	struct cm_params params = { .engine_len = 64, .dev = { .len = 512, .fd_cnt = 4 } }, back;
	struct cm_fd_msg msg = { .fd_cnt = 4, .fds = { 3, 4, 5, 6 } };
	struct wire_cm_params wire;

	memset(params.engine, 0xAB, 64);
	memset(params.dev.bytes, 0xCD, 512);
	cr_assert(!cm_params_to_wire(&params, &wire));
	cm_params_from_wire(&wire, &msg, &back);
	memcpy(params.dev.fds, msg.fds, sizeof(msg.fds));
	cr_assert(!memcmp(&params, &back, sizeof(params)));
	params.engine_len = 65;
	cr_assert_eq(cm_params_to_wire(&params, &wire), -FI_EINVAL);
	params.engine_len = 64;
	params.dev.len = 513;
	cr_assert_eq(cm_params_to_wire(&params, &wire), -FI_EINVAL);
	params.dev.len = 512;
	params.dev.fd_cnt = 5;
	cr_assert_eq(cm_params_to_wire(&params, &wire), -FI_EINVAL);
}

Test(cm_pkt, descriptors_must_be_exactly_those_announced)
{
	struct wire_cm_params wire = { .fd_cnt = 2 };
	struct cm_fd_msg msg = { .fd_cnt = 2 };

	cr_assert_eq(cm_params_check_fds(&wire, &msg), 0);
	msg.fd_cnt = 1;
	cr_assert_eq(cm_params_check_fds(&wire, &msg), -FI_EINVAL);
	msg.fd_cnt = 3;
	cr_assert_eq(cm_params_check_fds(&wire, &msg), -FI_EINVAL);
	msg.fd_cnt = 2;
	msg.is_cut = true;
	cr_assert_eq(cm_params_check_fds(&wire, &msg), -FI_EINVAL);
	msg.fd_cnt = 1;
	cr_assert_eq(cm_params_check_fds(&wire, &msg), -FI_EMFILE);
}
