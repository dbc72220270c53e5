/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attempts that have ended: a late copy of a HELLO opens no second connection. */
#include "cm/ep/cm_ended.h"

#include <criterion/criterion.h>

#include "cm/conn/cm_conn.h"
#include "cm/ep/cm_ep.h"
#include "cm/node/cm_node.h"
#include "unit/cm/conn/dgram_fixture.h"

#define INC 11

static struct dgram_peer g;
static struct cm_ep cep;
static union cm_addr addr;

static void set_up(void)
{
	cm_test_addr("127.0.0.1", 5, &addr);
	cr_assert(!cm_mac_init());
	cm_cookie_init(&cep.jar);
	cep.stats = &cep.own_stats;
}

static void tear_down(void)
{
	cm_ended_fini(&cep.ended);
}

TestSuite(cm_ended, .init = set_up, .fini = tear_down, .timeout = 300);

Test(cm_ended, an_attempt_is_remembered_while_its_cookies_are_valid)
{
	uint64_t at = 7 * CM_COOKIE_TICK_NS, end = at + CM_COOKIE_LIFE_NS;

	cr_expect_not(cm_ended_has(&cep, &addr, INC, 1, at));
	cm_ended_add(&cep, &addr, INC, 1, at, at + 5);
	cr_expect(cm_ended_has(&cep, &addr, INC, 1, at + 5));
	cr_expect(cm_ended_has(&cep, &addr, INC, 1, end - 1));
	cr_expect_not(cm_ended_has(&cep, &addr, INC, 1, end));
	cr_expect_not(cm_ended_has(&cep, &addr, INC, 2, at + 5));
	cr_expect_not(cm_ended_has(&cep, &addr, INC + 1, 1, at + 5));
	addr.in.sin_port++;
	cr_expect_not(cm_ended_has(&cep, &addr, INC, 1, at + 5));
}

Test(cm_ended, a_connection_that_outlived_its_cookie_uses_no_memory)
{
	cm_ended_add(&cep, &addr, INC, 1, 3, 3 + CM_COOKIE_LIFE_NS);
	cr_expect_null(cep.ended.ring);
}

/** Whatever number of attempts end: no copy of their HELLO has a valid cookie. */
Test(cm_ended, more_than_can_be_remembered_make_all_cookies_invalid)
{
	uint8_t cookie[WIRE_CM_COOKIE_LEN];
	uint64_t now = 7 * CM_COOKIE_TICK_NS, i;

	cm_cookie_make(&cep.jar, &addr, INC, 1, now, cookie);
	for (i = 1; i <= CM_ENDED_MAX; i++)
		cm_ended_add(&cep, &addr, INC, i, now, now);
	cr_expect(cm_ended_has(&cep, &addr, INC, 1, now));
	cr_expect(cm_ended_has(&cep, &addr, INC, CM_ENDED_MAX, now));
	cr_expect(cm_cookie_check(&cep.jar, &addr, INC, 1, now, cookie));
	cm_ended_add(&cep, &addr, INC, i, now, now);
	cr_expect_not(cm_ended_has(&cep, &addr, INC, 1, now));
	cr_expect_not(cm_cookie_check(&cep.jar, &addr, INC, 1, now, cookie));
	cr_expect_eq(cep.stats->cookies_renewed, 1);
	cm_cookie_make(&cep.jar, &addr, INC, 1, now, cookie);
	cr_expect(cm_cookie_check(&cep.jar, &addr, INC, 1, now, cookie));
}

Test(cm_ended, entries_that_have_expired_are_replaced)
{
	uint64_t i;

	for (i = 1; i <= 3ull * CM_ENDED_MAX; i++)
		cm_ended_add(&cep, &addr, INC, i, i * CM_COOKIE_LIFE_NS / CM_ENDED_MAX,
			     i * CM_COOKIE_LIFE_NS / CM_ENDED_MAX);
	cr_expect_eq(cep.stats->cookies_renewed, 0);
}

static void check_late_copy(struct wire_cm_pkt *hello)
{
	struct wire_cm_pkt bye;

	cm_raw_peer_send(&g.s, &g.to, hello);
	bye = cm_raw_peer_await(&g.s, WIRE_CM_BYE);
	cr_expect_eq(bye.nonce, hello->nonce);
	cr_expect_eq(cm_end_get(&g.a, &g.a.prepared), 1);
}

/** The peer is up with the first connection: its PING must not bring up a second one. */
Test(cm_ended, a_late_hello_of_an_established_connection_is_not_accepted_again)
{
	struct wire_cm_pkt hello;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 0);
	cr_assert_eq(dgram_peer_hello(&g, &hello).type, WIRE_CM_WELCOME);
	dgram_peer_send(&g, WIRE_CM_READY, g.s.nonce);
	cr_assert(cm_end_wait(&g.a, &g.a.up, 1, CM_TEST_WAIT_MS));
	dgram_peer_send(&g, WIRE_CM_BYE, g.s.nonce);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	check_late_copy(&hello);
	dgram_peer_send(&g, WIRE_CM_PING, g.s.nonce);
	cm_raw_peer_await(&g.s, WIRE_CM_BYE);
	cr_expect_eq(cm_end_get(&g.a, &g.a.up), 1);
	dgram_peer_close(&g);
}

Test(cm_ended, a_late_hello_of_a_pending_connection_is_not_accepted_again)
{
	struct wire_cm_pkt hello;
	unsigned downs = 0;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 0);
	cr_assert_eq(dgram_peer_hello(&g, &hello).type, WIRE_CM_WELCOME);
	dgram_peer_send(&g, WIRE_CM_BYE, g.s.nonce);
	for (int i = 0; i < CM_TEST_WAIT_MS && !downs; i++) {
		cm_test_sleep_ms(1);
		downs = cm_end_reap(&g.a);
	}
	cr_assert_eq(downs, 1);
	check_late_copy(&hello);
	dgram_peer_close(&g);
}

/** A new attempt of the same peer is another matter. */
Test(cm_ended, the_next_attempt_is_accepted)
{
	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 0);
	dgram_peer_establish(&g);
	dgram_peer_send(&g, WIRE_CM_BYE, g.s.nonce);
	cr_assert(cm_end_wait(&g.a, &g.a.down, 1, CM_TEST_WAIT_MS));
	g.s.nonce++;
	dgram_peer_establish(&g);
	cr_assert(cm_end_wait(&g.a, &g.a.up, 2, CM_TEST_WAIT_MS));
	dgram_peer_close(&g);
}
