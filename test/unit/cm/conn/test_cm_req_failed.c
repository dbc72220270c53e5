/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Failure of requests (cm/conn/cm_req.c): after silence, where no process or no route is, and when
 * an engine or the peer refuses. Each fails once, not too early, and with a text that names the
 * cause.
 */
#include "cm/conn/cm_req.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "cm/ep/cm_ep.h"
#include "unit/cm/cm_fixture.h"
#include "util/clock.h"

static void expect_silence(struct cm_end *a, const union cm_addr *to)
{
	uint64_t start = util_clock_ns(), ms;

	for (int i = 0; i < 5; i++)
		cr_assert(!cm_connect(a->cep, &to->sa, false));
	cr_assert(cm_end_wait(a, &a->failed, 1, CM_TEST_WAIT_MS));
	ms = (util_clock_ns() - start) / UTIL_NS_PER_MS;
	cr_assert(ms >= 300, "%d ms", (int)ms);
	cr_assert_eq(a->failed_err, -FI_ETIMEDOUT);
	cr_assert(strstr(a->why, "FI_COPYRPC_PEER_TIMEOUT") &&
		  strstr(a->why, "FI_COPYRPC_JOB_KEY"));
}

Test(cm_req_failed, silence_fails_once_after_the_peer_timeout)
{
	struct cm_node *node;
	struct cm_raw_peer s;
	struct cm_end a;

	node = cm_ends_open(300, &a, NULL);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	expect_silence(&a, &s.addr);
	cm_test_sleep_ms(50);
	cr_assert(a.failed == 1 && !a.up && !a.prepared);
	cm_raw_peer_close(&s);
	cm_ends_close(node, &a, NULL);
}

/* The packets arrived and could not be verified. */
static void expect_bad_mac(struct cm_end *end)
{
	for (int i = 0; i < CM_TEST_WAIT_MS && !cm_end_stats(end).rx_bad_mac; i++)
		cm_test_sleep_ms(1);
	cr_assert(cm_end_stats(end).rx_bad_mac);
}

Test(cm_req_failed, a_peer_with_another_key_is_a_timeout)
{
	struct cm_node *node_a = cm_test_node("one", 300);
	struct cm_node *node_b = cm_test_node("two", 300), *node_c = cm_test_node(NULL, 300);
	struct cm_end a, b, c;
	union cm_addr to;

	cm_end_open(&a, node_a, "127.0.0.1", 0);
	cm_end_open(&b, node_b, "127.0.0.1", 0);
	cm_end_open(&c, node_c, "127.0.0.1", 0);
	to = cm_test_addr_of(&b);
	expect_silence(&a, &to);
	expect_bad_mac(&b);
	cr_assert(!cm_end_stats(&b).tx_acks && !cm_end_stats(&b).tx_naks && !b.prepared);
	a.failed = 0;
	to = cm_test_addr_of(&c);
	expect_silence(&a, &to);
	expect_bad_mac(&c);
	cr_assert(!c.prepared);
	c.failed = 0;
	to = cm_test_addr_of(&a);
	expect_silence(&c, &to);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_end_close(&c);
	cm_node_close(node_a);
	cm_node_close(node_b);
	cm_node_close(node_c);
}

/* Requests an address whose process has ended. */
static void no_process(const char *ip)
{
	struct cm_node *node = cm_test_node(NULL, 1000000);
	uint64_t start, ms;
	struct cm_raw_peer s;
	struct cm_end a;

	cm_end_open(&a, node, ip, 0);
	cm_raw_peer_open(&s, ip, NULL);
	cm_raw_peer_refuse(&s);
	start = util_clock_ns();
	cr_assert(!cm_connect(a.cep, &s.addr.sa, true));
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	ms = (util_clock_ns() - start) / UTIL_NS_PER_MS;
	cr_assert_eq(a.failed_err, -FI_ECONNREFUSED);
	cr_assert(ms >= CM_REQ_GRACE_MS, "%d ms", (int)ms);
	cr_assert(strstr(a.why, "no process at this address"), "%s", a.why);
	cr_assert(cm_end_stats(&a).rx_refused >= CM_REQ_GRACE_TRIES);
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

Test(cm_req_failed, a_process_that_has_ended_is_refused_after_the_grace_ipv4)
{
	no_process("127.0.0.1");
}

Test(cm_req_failed, a_process_that_has_ended_is_refused_after_the_grace_ipv6)
{
	cm_test_need_ipv6();
	no_process("::1");
}

/* Waits until the address has refused for longer than an ended process may. */
static void wait_past_the_grace(struct cm_end *a)
{
	uint64_t start = util_clock_ns();

	while (util_clock_ns() - start < 2 * CM_REQ_GRACE_MS * UTIL_NS_PER_MS ||
	       cm_end_stats(a).rx_refused <= CM_REQ_GRACE_TRIES)
		cm_test_sleep_ms(20);
}

Test(cm_req_failed, a_process_that_starts_late_is_connected)
{
	struct cm_node *node = cm_test_node(NULL, 1000000);
	struct cm_raw_peer s;
	struct cm_end a, late;

	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	cm_raw_peer_refuse(&s);
	cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
	wait_past_the_grace(&a);
	cr_expect_eq(cm_end_get(&a, &a.failed), 0, "%s", a.why);
	cm_raw_peer_close(&s); /* frees its port */
	cm_end_open_at(&late, node, &s.addr);
	cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS));
	cm_end_close(&a);
	cm_end_close(&late);
	cm_node_close(node);
}

Test(cm_req_failed, an_address_where_no_process_starts_is_refused_after_the_peer_timeout)
{
	const int timeout_ms = 3 * CM_REQ_GRACE_MS;
	struct cm_node *node = cm_test_node(NULL, timeout_ms);
	uint64_t start, ms;
	struct cm_raw_peer s;
	struct cm_end a;

	cm_end_open(&a, node, "127.0.0.1", 0);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	cm_raw_peer_refuse(&s);
	start = util_clock_ns();
	cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	ms = (util_clock_ns() - start) / UTIL_NS_PER_MS;
	cr_expect_eq(a.failed_err, -FI_ECONNREFUSED);
	cr_expect(ms >= (unsigned)timeout_ms, "%d ms", (int)ms);
	cr_expect(strstr(a.why, "FI_COPYRPC_PEER_TIMEOUT"), "%s", a.why);
	cm_raw_peer_close(&s);
	cm_end_close(&a);
	cm_node_close(node);
}

Test(cm_req_failed, a_loopback_address_that_another_host_may_have_published_is_explained)
{
	struct cm_node *node = cm_test_node(NULL, 300);
	const char *own[] = { "0.0.0.0", "127.0.0.1" };
	struct cm_raw_peer s;
	union cm_addr any;

	cm_test_addr("0.0.0.0", 0, &any);
	if (cm_addr_resolve(&any) || cm_addr_is_loopback(&any))
		cr_skip_test("needs an address of a network");
	for (int i = 0; i < 2; i++) {
		struct cm_end a;

		cm_end_open(&a, node, own[i], 0);
		cm_raw_peer_open(&s, "127.0.0.1", NULL);
		cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
		cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
		cr_expect_eq(!strstr(a.why, "FI_COPYRPC_IFACE"), i, "%s", a.why);
		cm_raw_peer_close(&s);
		cm_end_close(&a);
	}
	cm_node_close(node);
}

/* The error may belong to another socket, or the peer may be starting. */
Test(cm_req_failed, one_icmp_error_does_not_fail_a_request)
{
	struct cm_node *node;
	struct wire_cm_pkt req;
	struct cm_raw_peer s;
	struct cm_peer *peer;
	struct cm_end a;

	node = cm_ends_open(1000000, &a, NULL);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
	cm_test_sleep_ms(CM_REQ_GRACE_MS + 100);
	cm_node_lock(node);
	peer = cm_peer_find(a.cep, &s.addr);
	cr_assert(peer && peer->req);
	for (unsigned i = 1; i < CM_REQ_GRACE_TRIES; i++)
		cm_req_on_unreachable(peer, &s.addr, peer->req->nonce, -FI_ECONNREFUSED);
	cm_node_unlock(node);
	while (cm_raw_peer_recv(&s, &req, 0)) /* packets from before */
		;
	cr_assert(cm_raw_peer_recv(&s, &req, CM_TEST_WAIT_MS), "REQ was not repeated");
	cr_expect_eq(cm_end_get(&a, &a.failed), 0);
	cm_raw_peer_close(&s);
	cm_ends_close(node, &a, NULL);
}

Test(cm_req_failed, a_missing_route_is_reported)
{
	struct cm_node *node;
	union cm_addr to;
	struct cm_end a;

	cm_test_need_ipv6();
	node = cm_test_node(NULL, 20000);
	/* From loopback to a global address: the kernel refuses to send. */
	cm_end_open(&a, node, "::1", 0);
	cm_test_addr("2001:db8::99", 9, &to);
	cr_assert(!cm_connect(a.cep, &to.sa, false));
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_assert(strstr(a.why, "[2001:db8::99]:9"), "%s", a.why);
	cr_assert_eq(a.failed_err, -FI_EHOSTUNREACH, "%s", a.why);
	cr_assert(strstr(a.why, "there is no route"), "%s", a.why);
	cm_end_close(&a);
	cm_node_close(node);
}

Test(cm_req_failed, errors_of_either_engine_are_reported_with_a_reason)
{
	static const struct {
		int a_prepare, a_establish, b_prepare, b_establish;
		const char *why, *hint;
	} cases[] = {
		{ .a_prepare = -FI_ENOMEM,
		  .why = "preparing the connection failed here",
		  .hint = "lower FI_COPYRPC_RING_SIZE, or set FI_COPYRPC_MEM" },
		{ .a_establish = -FI_EACCES,
		  .why = "using the peer's connection parameters failed here" },
		{ .b_prepare = -FI_ENOSPC,
		  .why = "refused by the peer: the peer could not prepare its end",
		  .hint = "lower FI_COPYRPC_RING_SIZE, or set FI_COPYRPC_MEM" },
		{ .b_establish = -FI_EOPNOTSUPP,
		  .why = "refused by the peer: the peer could not use the connection parameters" },
	};
	struct cm_node *node = cm_test_node(NULL, 0);
	unsigned before = cm_test_fd_count();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cm_end a, b;

		cm_end_open(&a, node, "127.0.0.1", 0);
		cm_end_open(&b, node, "127.0.0.1", 0);
		a.prepare_ret = cases[i].a_prepare;
		a.establish_ret = cases[i].a_establish;
		b.prepare_ret = cases[i].b_prepare;
		b.establish_ret = cases[i].b_establish;
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
		cr_assert_eq(a.failed_err, cases[i].a_prepare + cases[i].a_establish +
						   cases[i].b_prepare + cases[i].b_establish);
		cr_assert(strstr(a.why, cases[i].why), "%s", a.why);
		cr_assert(!cases[i].hint || strstr(a.why, cases[i].hint), "%s", a.why);
		cm_test_sleep_ms(20);
		cr_assert(!a.up && !b.up && a.failed == 1 && !b.failed);
		cm_end_reap(&a);
		cm_end_reap(&b);
		/* A later request succeeds. */
		a.prepare_ret = a.establish_ret = b.prepare_ret = b.establish_ret = 0;
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS));
		cm_end_close(&a);
		cm_end_close(&b);
	}
	cr_assert_eq(cm_test_fd_count(), before);
	cm_node_close(node);
}

Test(cm_req_failed, a_temporary_refusal_is_retried)
{
	struct cm_node *node;
	struct cm_end a, b;

	node = cm_ends_open(0, &a, &b);
	b.prepare_ret = -FI_EAGAIN;
	cr_assert(!cm_end_connect(&a, &b));
	for (int i = 0; i < CM_TEST_WAIT_MS && cm_end_get(&b, &b.prepared) < 2; i++)
		cm_test_sleep_ms(1);
	cr_assert(!cm_end_get(&a, &a.failed) && cm_end_get(&b, &b.prepared) >= 2);
	pthread_mutex_lock(&b.lock);
	b.prepare_ret = 0;
	pthread_mutex_unlock(&b.lock);
	cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS));
	cm_ends_close(node, &a, &b);
}

Test(cm_req_failed, temporary_refusals_until_the_timeout_are_reported_with_the_reason)
{
	struct cm_node *node;
	struct cm_end a, b;

	node = cm_ends_open(3000, &a, &b);
	b.prepare_ret = -FI_EMFILE;
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(a.failed_err, -FI_EMFILE);
	cr_assert(strstr(a.why, "until the timeout"), "%s", a.why);
	cm_ends_close(node, &a, &b);
}

Test(cm_req_failed, a_refusal_by_datagram_ends_the_request_with_its_text)
{
	struct cm_node *node;
	struct wire_cm_pkt req, nak;
	struct cm_raw_peer s;
	struct cm_end a;

	node = cm_ends_open(0, &a, NULL);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
	cr_assert(cm_raw_peer_recv(&s, &req, CM_TEST_WAIT_MS));
	nak = (struct wire_cm_pkt){ .type = WIRE_CM_NAK, .dst_inc = req.src_inc };
	nak.nonce = req.nonce + 1; /* nonce of another REQ: ignored */
	nak.nak.err = FI_EACCES;
	snprintf(nak.nak.text, sizeof(nak.nak.text), "because I say so");
	union cm_addr to = cm_test_addr_of(&a);

	cm_raw_peer_send(&s, &to, &nak);
	nak.nonce = req.nonce;
	nak.dst_inc ^= 1; /* for another incarnation: ignored */
	cm_raw_peer_send(&s, &to, &nak);
	cr_assert(!cm_end_wait(&a, &a.failed, 1, 30));
	nak.dst_inc ^= 1;
	cm_raw_peer_send(&s, &to, &nak);
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_assert_eq(a.failed_err, -FI_EACCES);
	cr_assert(strstr(a.why, "because I say so"), "%s", a.why);
	cr_assert_eq(cm_end_stats(&a).rx_stale, 2);
	cm_raw_peer_close(&s);
	cm_ends_close(node, &a, NULL);
}

Test(cm_req_failed, a_peer_that_refuses_and_then_is_silent_is_reported_as_silent)
{
	struct cm_node *node;
	struct wire_cm_pkt req, nak;
	struct cm_raw_peer s;
	struct cm_end a;
	union cm_addr to;

	node = cm_ends_open(2000, &a, NULL);
	cm_raw_peer_open(&s, "127.0.0.1", NULL);
	to = cm_test_addr_of(&a);
	cr_assert(!cm_connect(a.cep, &s.addr.sa, false));
	cr_assert(cm_raw_peer_recv(&s, &req, CM_TEST_WAIT_MS));
	nak = (struct wire_cm_pkt){ .type = WIRE_CM_NAK, .dst_inc = req.src_inc };
	nak.nonce = req.nonce;
	nak.nak.err = FI_EAGAIN;
	cm_raw_peer_send(&s, &to, &nak);
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.failed_err, -FI_ETIMEDOUT, "%s", a.why);
	cr_expect(strstr(a.why, "no reply for"), "%s", a.why);
	cm_raw_peer_close(&s);
	cm_ends_close(node, &a, NULL);
}
