/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Limit on replies to strangers: what it permits, and what has no limit (cm/ep/cm_stranger.c). */
#include "cm/ep/cm_stranger.h"

#include <criterion/criterion.h>
#include <string.h>

#include "cm/ep/cm_ep.h"
#include "cm/node/cm_node.h"
#include "support/rng.h"
#include "unit/cm/conn/dgram_fixture.h"
#include "util/clock.h"

#define START_NS 1000000000000ull

static struct cm_ep cep;
static uint64_t now_ns;

static void set_up(void)
{
	memset(&cep, 0, sizeof(cep));
	cm_cookie_init(&cep.jar);
	now_ns = START_NS;
}

TestSuite(cm_stranger, .init = set_up);

static union cm_addr host(unsigned i)
{
	union cm_addr addr;

	cm_test_addr("10.0.0.1", 1000, &addr);
	addr.in.sin_addr.s_addr += htonl(i);
	return addr;
}

/** Requests a reply to `cnt` hosts in turns, `gap_ns` apart, for a time. Returns the replies. */
static uint64_t request(unsigned cnt, uint64_t gap_ns, uint64_t ns)
{
	uint64_t end_ns = now_ns + ns, replies = 0;

	for (unsigned i = 0; now_ns < end_ns; now_ns += gap_ns) {
		union cm_addr addr = host(i++ % cnt);

		replies += cm_stranger_take(&cep, &addr, now_ns);
	}
	return replies;
}

static uint64_t burst(uint64_t per_s)
{
	return per_s * CM_STRANGER_BURST_NS / UTIL_NS_PER_S;
}

/* However many hosts send requests, and however fast: a burst is replied to, and then the rate. */
Test(cm_stranger, replies_of_all_are_limited)
{
	struct rng rng = { rng_env("COPYRPC_TEST_SEED", 1) };

	for (unsigned i = 0; i < 8; i++) {
		unsigned hosts = 64 + (unsigned)rng_below(&rng, 5000);
		uint64_t gap_ns = 100 + rng_below(&rng, 20000), replies;

		set_up();
		replies = request(hosts, gap_ns, UTIL_NS_PER_S);
		cr_expect_leq(replies, CM_STRANGER_ALL_S + burst(CM_STRANGER_ALL_S) + 1);
		cr_expect_geq(replies, CM_STRANGER_ALL_S - 1, "%u hosts: %lu", hosts,
			      (unsigned long)replies);
	}
}

Test(cm_stranger, one_host_leaves_replies_to_the_others)
{
	uint64_t replies = request(1, 1000, UTIL_NS_PER_S);
	union cm_addr flooding = host(0), other = host(1);

	if (cm_ep_host(&cep, &flooding) == cm_ep_host(&cep, &other))
		cr_skip("the hosts share a counter under this secret");
	while (cm_stranger_take(&cep, &flooding, now_ns))
		replies++;
	cr_expect_leq(replies, CM_STRANGER_HOST_S + burst(CM_STRANGER_HOST_S) + 1);
	cr_expect_geq(replies, CM_STRANGER_HOST_S - 1);
	cr_expect(cm_stranger_take(&cep, &other, now_ns));
}

Test(cm_stranger, slower_ones_are_never_refused)
{
	uint64_t gap_ns = UTIL_NS_PER_S / CM_STRANGER_HOST_S;

	cr_expect_eq(request(1, gap_ns, UTIL_NS_PER_S), CM_STRANGER_HOST_S);
}

Test(cm_stranger, a_pause_gives_back_a_burst_and_no_more)
{
	request(4096, 100, UTIL_NS_PER_S);
	now_ns += 3600 * UTIL_NS_PER_S;
	cr_expect_leq(request(4096, 1, 20000), burst(CM_STRANGER_ALL_S) + 2);
}

/* ---- senders that are strangers, and others ---- */

static void use_up(void)
{
	cep.stranger.all_ns = now_ns + 2 * CM_STRANGER_BURST_NS;
}

static bool is_dropped(enum wire_cm_type type, const union cm_addr *from, bool has_cookie)
{
	struct wire_cm_pkt pkt = { .type = type, .nonce = 7, .src_inc = 5 };

	if (has_cookie)
		cm_cookie_make(&cep.jar, from, 5, 7, now_ns, pkt.hello.cookie);
	return cm_stranger_exceeds(&cep, from, &pkt, now_ns);
}

Test(cm_stranger, datagrams_of_strangers_are_dropped_only_beyond_the_limits)
{
	union cm_addr from = host(3);

	for (int type = WIRE_CM_REQ; type <= WIRE_CM_BROKEN; type++)
		cr_expect_not(is_dropped(type, &from, false), "%d", type);
	use_up();
	for (int type = WIRE_CM_REQ; type <= WIRE_CM_BROKEN; type++)
		cr_expect(is_dropped(type, &from, false), "%d", type);
	now_ns += 3 * CM_STRANGER_BURST_NS;
	for (int type = WIRE_CM_REQ; type <= WIRE_CM_BROKEN; type++)
		cr_expect_not(is_dropped(type, &from, false), "%d", type);
}

Test(cm_stranger, a_cookie_proves_an_address)
{
	union cm_addr from = host(3), other = host(4);
	struct wire_cm_pkt pkt = { .type = WIRE_CM_HELLO, .nonce = 7, .src_inc = 5 };

	use_up();
	cr_expect_not(is_dropped(WIRE_CM_HELLO, &from, true));
	cm_cookie_make(&cep.jar, &from, 5, 7, now_ns, pkt.hello.cookie);
	cr_expect(cm_stranger_exceeds(&cep, &other, &pkt, now_ns));
	pkt.nonce++;
	cr_expect(cm_stranger_exceeds(&cep, &from, &pkt, now_ns));
}

/* ---- an endpoint that has used up its replies ---- */

static struct dgram_peer g;

static void use_up_replies(struct cm_ep *attacked)
{
	cm_node_lock(attacked->node);
	attacked->stranger.all_ns = util_clock_ns() + 3600 * UTIL_NS_PER_S;
	cm_node_unlock(attacked->node);
}

/** Returns whether the packet is dropped before anything else, and not replied to. */
static bool is_limited(struct cm_raw_peer *from, struct wire_cm_pkt *pkt)
{
	uint64_t before = cm_end_stats(&g.a).rx_limited;
	struct wire_cm_pkt reply;

	cm_raw_peer_send(from, &g.to, pkt);
	while (cm_end_stats(&g.a).rx_limited == before)
		if (cm_raw_peer_recv(from, &reply, 1))
			return false;
	return !cm_raw_peer_recv(from, &reply, 20);
}

Test(cm_stranger, a_handshake_ends_well_while_strangers_are_dropped)
{
	struct wire_cm_pkt ack, hello, req = { .type = WIRE_CM_REQ };
	struct wire_cm_pkt ping = { .type = WIRE_CM_PING, .nonce = 9 };
	struct cm_raw_peer other;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 120000);
	cm_raw_peer_open(&other, "127.0.0.1", NULL);
	cr_assert(cm_raw_peer_get_ack(&g.s, &g.to, &ack));
	use_up_replies(g.a.cep);
	req.req.paths = WIRE_CM_PATH_NIC;
	cr_expect(is_limited(&other, &req));
	ping.dst_inc = g.a.cep->inc;
	cr_expect(is_limited(&other, &ping));
	cm_raw_peer_make_hello(&g.s, &ack, &hello);
	cm_raw_peer_send(&g.s, &g.to, &hello);
	cm_raw_peer_await(&g.s, WIRE_CM_WELCOME);
	dgram_peer_send(&g, WIRE_CM_READY, g.s.nonce);
	cr_assert(cm_end_wait(&g.a, &g.a.up, 1, CM_TEST_WAIT_MS));
	dgram_peer_send(&g, WIRE_CM_PING, g.s.nonce);
	cm_raw_peer_await(&g.s, WIRE_CM_PONG);
	cm_raw_peer_close(&other);
	dgram_peer_close(&g);
}

Test(cm_stranger, with_a_job_key_others_use_up_nothing)
{
	struct wire_cm_pkt ack, req = { .type = WIRE_CM_REQ };
	struct cm_raw_peer other;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, "key", 120000);
	cm_raw_peer_open(&other, "127.0.0.1", NULL);
	req.req.paths = WIRE_CM_PATH_NIC;
	for (int i = 0; i < 100; i++)
		cm_raw_peer_send(&other, &g.to, &req);
	cr_assert(cm_raw_peer_get_ack(&g.s, &g.to, &ack));
	cm_node_lock(g.node);
	cr_expect_leq(g.a.cep->stranger.all_ns,
		      util_clock_ns() + UTIL_NS_PER_S / CM_STRANGER_ALL_S);
	cm_node_unlock(g.node);
	cm_raw_peer_close(&other);
	dgram_peer_close(&g);
}
