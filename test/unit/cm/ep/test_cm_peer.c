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

		for (struct cm_peer *p = cep.peers.buckets[i]; p; p = p->hash_next)
			len++;
		longest = len > longest ? len : longest;
	}
	cr_assert(longest < 16, "%zu", longest);
	cm_peer_table_fini(&cep.peers);
}
