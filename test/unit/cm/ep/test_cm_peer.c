/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of peers: cm/ep/cm_peer.c. */
#include "cm/ep/cm_peer.h"

#include <criterion/criterion.h>
#include <arpa/inet.h>

#include "cm/ep/cm_ep.h"
#include "unit/cm/cm_fixture.h"

static struct cm_ep cep;
static int placeholder; /* stands for a conn */

static void set_up(void)
{
	cr_assert(!cm_mac_init());
	cm_cookie_init(&cep.jar);
}

TestSuite(cm_peer, .init = set_up);

static union cm_addr nth(uint32_t i)
{
	union cm_addr addr;

	cm_test_addr("10.0.0.0", 1, &addr);
	addr.in.sin_addr.s_addr = htonl(0x0A000000u + i);
	return addr;
}

Test(cm_peer, find_returns_exactly_the_peers_that_were_added)
{
	enum { CNT = 10000 };
	static struct cm_peer *peers[CNT];

	for (uint32_t i = 0; i < CNT; i++) {
		union cm_addr addr = nth(i);

		cr_assert_null(cm_peer_find(&cep, &addr));
		peers[i] = cm_peer_get(&cep, &addr);
		peers[i]->conn = (struct cm_conn *)(void *)&placeholder;
		cr_assert_eq(cm_peer_get(&cep, &addr), peers[i]);
	}
	cr_assert_eq(cep.peers.peer_cnt, CNT);
	cr_assert(cep.peers.bucket_cnt >= CNT);
	for (uint32_t i = 0; i < CNT; i += 2) {
		peers[i]->conn = NULL;
		cm_peer_settle(peers[i]);
	}
	for (uint32_t i = 0; i < CNT; i++) {
		union cm_addr addr = nth(i);

		cr_assert_eq(cm_peer_find(&cep, &addr), i % 2 ? peers[i] : NULL);
	}
	cr_assert_eq(cep.peers.peer_cnt, CNT / 2);
	cm_peer_table_fini(&cep.peers);
}

Test(cm_peer, a_peer_stays_while_it_has_a_request_or_conn)
{
	union cm_addr addr = nth(1);
	struct cm_peer *peer = cm_peer_get(&cep, &addr);

	peer->conn = (struct cm_conn *)(void *)&placeholder;
	cm_peer_settle(peer);
	cr_assert_eq(cm_peer_find(&cep, &addr), peer);
	peer->conn = NULL;
	peer->req = (struct cm_req *)(void *)&placeholder;
	cm_peer_settle(peer);
	cr_assert_eq(cm_peer_find(&cep, &addr), peer);
	peer->req = NULL;
	cm_peer_settle(peer);
	cr_assert_null(cm_peer_find(&cep, &addr));
	cm_peer_table_fini(&cep.peers);
}

Test(cm_peer, a_path_is_avoided_after_failures_in_a_row_until_the_peer_restarts)
{
	enum { BOTH = WIRE_CM_PATH_NIC | WIRE_CM_PATH_UDP };
	union cm_addr addr = nth(1);
	struct cm_peer *peer = cm_peer_get(&cep, &addr);

	cep.paths.all = BOTH;
	cm_peer_note_failure(peer, 7, WIRE_CM_PATH_NIC, false);
	cr_assert_eq(cm_peer_usable_paths(peer, 7, BOTH), BOTH);
	cm_peer_note_failure(peer, 7, WIRE_CM_PATH_NIC, true);
	cm_peer_note_failure(peer, 7, WIRE_CM_PATH_NIC, false);
	cr_assert_eq(cm_peer_usable_paths(peer, 7, BOTH), BOTH);
	cm_peer_note_failure(peer, 7, WIRE_CM_PATH_NIC, false);
	cr_assert_eq(cm_peer_usable_paths(peer, 7, BOTH), WIRE_CM_PATH_UDP);
	cr_assert_eq(cm_peer_usable_paths(peer, 7, WIRE_CM_PATH_NIC), WIRE_CM_PATH_NIC);
	cr_assert_eq(cm_peer_usable_paths(peer, 8, BOTH), BOTH);
	peer->failed_until_ns = 1; /* long ago: it is tried again, and one failure is enough */
	cr_assert_eq(cm_peer_usable_paths(peer, 7, BOTH), BOTH);
	cm_peer_note_failure(peer, 7, WIRE_CM_PATH_NIC, false);
	cr_assert_eq(cm_peer_usable_paths(peer, 7, BOTH), WIRE_CM_PATH_UDP);
	cm_peer_settle(peer);
	cr_assert_eq(cm_peer_find(&cep, &addr), peer, "the failure was forgotten");
	cm_peer_note_failure(peer, 8, WIRE_CM_PATH_NIC, false);
	cr_assert_eq(cm_peer_usable_paths(peer, 8, BOTH), BOTH);
	cm_peer_note_failure(peer, 8, WIRE_CM_PATH_NIC, true);
	cm_peer_settle(peer);
	cr_assert_null(cm_peer_find(&cep, &addr));
	cm_peer_table_fini(&cep.peers);
}

Test(cm_peer, chains_stay_short_for_any_addresses)
{
	size_t longest = 0;

	for (uint32_t i = 0; i < 4096; i++) {
		union cm_addr addr = nth(i * 65536 + 7);

		cm_peer_get(&cep, &addr)->conn = (struct cm_conn *)(void *)&placeholder;
	}
	for (size_t i = 0; i < cep.peers.bucket_cnt; i++) {
		size_t len = 0;

		for (struct cm_peer_node *n = cep.peers.buckets[i]; n; n = n->hash_next)
			len++;
		longest = len > longest ? len : longest;
	}
	cr_assert(longest < 16, "%zu", longest);
	cm_peer_table_fini(&cep.peers);
}

/** Returns a peer with a name of three addresses. */
static struct cm_peer *named(uint32_t first, uint32_t second, uint32_t third)
{
	union cm_addr list[UTIL_NAME_ADDRS] = { nth(first), nth(second), nth(third) };
	struct cm_peer *peer = cm_peer_get_name(&cep, list, 3);

	cr_assert(peer);
	peer->req = (struct cm_req *)(void *)&placeholder;
	return peer;
}

Test(cm_peer, a_name_is_found_by_each_of_its_addresses_until_it_settles)
{
	struct cm_peer *peer = named(1, 2, 3);

	for (uint32_t i = 1; i <= 3; i++) {
		union cm_addr addr = nth(i);

		cr_expect_eq(cm_peer_find(&cep, &addr), peer, "%u", i);
	}
	cr_expect_eq(named(1, 2, 3), peer, "not a second one");
	cr_expect_eq(cep.peers.peer_cnt, 1);
	peer->req = NULL;
	cm_peer_settle(peer);
	for (uint32_t i = 1; i <= 3; i++) {
		union cm_addr addr = nth(i);

		cr_expect_null(cm_peer_find(&cep, &addr), "%u", i);
	}
	cm_peer_table_fini(&cep.peers);
}

Test(cm_peer, a_shared_address_belongs_to_the_peer_that_uses_it)
{
	struct cm_peer *a = named(1, 9, 3), *b = named(4, 9, 5);
	union cm_addr shared = nth(9);

	a->via.to = nth(1);
	b->via.to = shared;
	cr_expect_eq(cm_peer_find(&cep, &shared), b);
	a->via.to = shared;
	b->via.to = nth(4);
	cr_expect_eq(cm_peer_find(&cep, &shared), a);
	cm_peer_table_fini(&cep.peers);
}

Test(cm_peer, a_sender_is_known_by_the_name_that_has_its_address_and_by_nothing_else)
{
	struct cm_peer *peer = named(1, 2, 3), *stranger;
	union cm_addr first = nth(1), second = nth(2), other = nth(8);

	cr_expect_eq(cm_peer_find_sender(&cep, &second, &first), peer);
	cr_expect_null(cm_peer_find_sender(&cep, &other, &first), "it claims a name");
	cr_expect_null(cm_peer_find_sender(&cep, &second, &other), "it has only the address");
	stranger = cm_peer_get(&cep, &other);
	cr_assert(stranger);
	stranger->req = (struct cm_req *)(void *)&placeholder;
	cr_expect_eq(cm_peer_find_sender(&cep, &other, &first), stranger);
	cm_peer_table_fini(&cep.peers);
}

Test(cm_peer, a_peer_that_came_from_a_further_address_is_found_by_its_name)
{
	union cm_addr list[2] = { nth(1), nth(2) };
	struct cm_peer *peer = cm_peer_get(&cep, &list[1]);

	cr_assert(peer);
	peer->conn = (struct cm_conn *)(void *)&placeholder;
	cr_expect_null(cm_peer_find_name(&cep, list, 2), "it does not state that name");
	peer->first = list[0];
	cr_expect_eq(cm_peer_get_name(&cep, list, 2), peer);
	cr_expect_eq(cm_peer_find(&cep, &list[0]), peer);
	cm_peer_table_fini(&cep.peers);
}
