/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Routes to a peer with several addresses, and requests that try them: cm/conn/cm_route.c. */
#include "cm/conn/cm_route.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "cm/conn/cm_conn.h"
#include "cm/conn/cm_connect.h"
#include "cm/conn/cm_req.h"
#include "cm/conn/cm_req_route.h"
#include "cm/conn/cm_udp.h"
#include "cm/ep/cm_ep.h"
#include "unit/cm/cm_fixture.h"
#include "unit/cm/conn/dgram_fixture.h"

/* Addresses of this host in these tests: 127.*. None of the others needs a route. */
static bool is_here(const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const void *)addr;

	return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static struct cm_node node = { .cfg.is_local = is_here };

/* Returns an endpoint at 10.1.0.1/16 and 10.2.0.1/16. */
static struct cm_ep make_ep(void)
{
	struct cm_ep cep = { .node = &node, .sock_cnt = 2 };

	cm_test_addr("10.1.0.1", 7, &cep.addr);
	cm_test_addr("10.1.0.1", 7, &cep.socks[0].addr);
	cm_test_addr("10.2.0.1", 7, &cep.socks[1].addr);
	cep.socks[0].prefix_len = cep.socks[1].prefix_len = 16;
	return cep;
}

static unsigned list_of(const struct cm_ep *cep, const char *const *texts, unsigned cnt,
			struct cm_route *routes)
{
	union cm_addr addrs[UTIL_NAME_ADDRS];

	for (unsigned i = 0; i < cnt; i++)
		cm_test_addr(texts[i], 9, &addrs[i]);
	return cm_route_list(cep, addrs, cnt, routes);
}

static void expect_route(const struct cm_route *route, const char *to, uint32_t sock)
{
	union cm_addr addr;

	cm_test_addr(to, 9, &addr);
	cr_expect(cm_addr_is_equal(&route->to, &addr), "not %s", to);
	cr_expect_eq(route->sock, sock, "%s", to);
}

Test(cm_route, addresses_of_own_networks_come_first_each_from_there)
{
	static const char *const texts[] = { "127.9.9.9", "10.2.3.4", "10.1.3.4" };
	struct cm_route routes[CM_ROUTES_MAX];
	struct cm_ep cep = make_ep();

	cr_assert_eq(list_of(&cep, texts, 3, routes), 3);
	expect_route(&routes[0], "10.2.3.4", 1);
	expect_route(&routes[1], "10.1.3.4", 0);
	expect_route(&routes[2], "127.9.9.9", 0);
}

Test(cm_route, a_peer_whose_addresses_are_all_here_has_one_route)
{
	static const char *const texts[] = { "127.0.0.1", "127.0.0.2" };
	struct cm_route routes[CM_ROUTES_MAX];
	struct cm_ep cep = make_ep();

	cr_assert_eq(list_of(&cep, texts, 2, routes), 1);
	expect_route(&routes[0], "127.0.0.1", 0);
}

Test(cm_route, one_address_is_tried_from_the_first_socket_and_then_from_the_near_one)
{
	static const char *const near[] = { "10.1.3.4" }, *const other[] = { "10.2.3.4" };
	struct cm_route routes[CM_ROUTES_MAX];
	struct cm_ep cep = make_ep();

	cr_assert_eq(list_of(&cep, near, 1, routes), 1);
	expect_route(&routes[0], "10.1.3.4", 0);
	cr_assert_eq(list_of(&cep, other, 1, routes), 2);
	expect_route(&routes[0], "10.2.3.4", 0);
	expect_route(&routes[1], "10.2.3.4", 1);
	cep.is_private = true;
	cr_assert_eq(list_of(&cep, other, 1, routes), 1, "its peer admits one address");
}

Test(cm_route, without_any_route_there_is_the_one_to_the_first_address)
{
	static const char *const texts[] = { "255.255.255.255", "255.255.255.255" };
	struct cm_route routes[CM_ROUTES_MAX];
	struct cm_ep cep = make_ep();

	cr_assert_eq(list_of(&cep, texts, 2, routes), 1);
	expect_route(&routes[0], "255.255.255.255", 0);
}

Test(cm_route, a_reply_is_counted_for_the_socket_that_received_it)
{
	static struct cm_req req = { .route_cnt = 2, .routes = { { .sock = 0 }, { .sock = 1 } } };
	struct cm_route via = { .sock = 1 };

	cm_test_addr("10.2.3.4", 9, &via.to);
	req.routes[0].to = req.routes[1].to = via.to;
	cr_expect_eq(cm_req_route_via(&req, &via), 1);
	via.sock = 0;
	cr_expect_eq(cm_req_route_via(&req, &via), 0);
	via.sock = 2;
	cr_expect_eq(cm_req_route_via(&req, &via), 2, "no such route");
}

/* ---- requests ---- */

/*
 * Two ends on loopback that count as hosts of their own. The name of b begins with the address of
 * `silent`, where no process replies.
 */
static struct cm_end a, b;
static struct cm_raw_peer silent;
static struct cm_paths before;

static struct cm_node *open_ends(int timeout_ms, bool is_known)
{
	struct cm_node *ends;

	before = cm_test_paths;
	cm_test_apart = true;
	cm_test_paths = (struct cm_paths){ .all = WIRE_CM_PATH_NIC, .best = { WIRE_CM_PATH_NIC } };
	ends = cm_ends_open(timeout_ms, &a, &b);
	a.fd_cnt = b.fd_cnt = 0;
	cm_raw_peer_open(&silent, "127.0.0.3", NULL);
	cm_node_lock(ends);
	if (is_known)
		b.cep->addr = silent.addr;
	cm_node_unlock(ends);
	return ends;
}

static void close_ends(struct cm_node *ends)
{
	cm_raw_peer_close(&silent);
	cm_ends_close(ends, &a, &b);
	cm_test_paths = before;
	cm_test_apart = false;
}

/** Connects a to the name of b: the silent address, and then the one where it is. */
static void connect_by_name(struct cm_node *ends, bool is_silent_first)
{
	union cm_addr list[2] = { silent.addr, cm_test_addr_of(&b) };

	if (!is_silent_first) {
		list[0] = cm_test_addr_of(&b);
		list[1] = silent.addr;
	}
	cm_node_lock(ends);
	cr_assert_eq(cm_connect_locked(a.cep, list, 2, false), 0);
	cm_node_unlock(ends);
}

Test(cm_route, a_silent_address_costs_a_few_packets_and_the_next_one_is_used)
{
	struct cm_node *ends = open_ends(0, true);
	struct sockaddr_storage name;
	struct in_addr others[UTIL_NAME_OTHERS];
	struct wire_cm_pkt req;
	union cm_addr first;
	unsigned cnt = 0;

	connect_by_name(ends, true);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "%s", a.why);
	while (cm_raw_peer_recv(&silent, &req, 0)) {
		cr_expect_eq(req.type, WIRE_CM_REQ);
		cr_expect(req.req.has_name, "another process may be there");
		cnt++;
	}
	cr_expect_geq(cnt, 1);
	cr_expect_leq(cnt, 2 * CM_REQ_ROUTE_TRIES, "%u", cnt);
	cm_node_lock(ends);
	cm_conn_addr(UTIL_CONTAINER_OF(util_list_first(&a.cep->conns), struct cm_conn, cep_link),
		     &name);
	cm_node_unlock(ends);
	cr_assert_eq(cm_addr_import((struct sockaddr *)&name, &first), 0);
	cr_expect(cm_addr_is_equal(&first, &silent.addr), "the peer keeps its name");
	cr_expect_eq(util_name_others((struct sockaddr *)&name, others), 0, "loopback");
	close_ends(ends);
}

Test(cm_route, a_closed_port_at_one_address_does_not_end_the_request)
{
	struct cm_node *ends = open_ends(0, true);

	cm_raw_peer_refuse(&silent);
	connect_by_name(ends, true);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "%s", a.why);
	close_ends(ends);
}

Test(cm_route, another_process_at_a_further_address_is_not_taken_for_the_peer)
{
	struct cm_node *ends = open_ends(2000, false);

	connect_by_name(ends, true);
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.up, 0);
	cr_expect_eq(b.prepared, 0);
	cr_expect_eq(a.failed_err, -FI_ETIMEDOUT, "%d: %s", a.failed_err, a.why);
	cr_expect(strstr(a.why, " or 127.0.0.1:"), "%s", a.why);
	cr_expect_gt(cm_end_stats(&b).tx_naks, 0);
	close_ends(ends);
}

Test(cm_route, another_process_at_the_first_address_does_not_end_the_request)
{
	struct cm_node *ends = open_ends(0, false);
	struct wire_cm_pkt req;

	cm_node_lock(ends);
	cm_test_addr("127.0.0.9", 9, &b.cep->addr);
	cm_node_unlock(ends);
	connect_by_name(ends, false);
	cr_assert(cm_raw_peer_recv(&silent, &req, CM_TEST_WAIT_MS), "%s", a.why);
	cr_expect_eq(req.type, WIRE_CM_REQ);
	cr_expect_eq(cm_end_get(&a, &a.failed), 0, "%s", a.why);
	cr_expect_gt(cm_end_stats(&b).tx_naks, 0);
	close_ends(ends);
}

Test(cm_route, a_closed_port_at_one_address_is_not_the_error_of_a_silent_one)
{
	struct cm_node *ends = open_ends(2000, false);
	struct cm_raw_peer closed;
	union cm_addr list[2] = { silent.addr };

	cm_raw_peer_open(&closed, "127.0.0.4", NULL);
	cm_raw_peer_refuse(&closed);
	list[1] = closed.addr;
	cm_node_lock(ends);
	cr_assert_eq(cm_connect_locked(a.cep, list, 2, false), 0);
	cm_node_unlock(ends);
	cr_assert(cm_end_wait(&a, &a.failed, 1, CM_TEST_WAIT_MS));
	cr_expect_eq(a.failed_err, -FI_ETIMEDOUT, "%d: %s", a.failed_err, a.why);
	cr_expect(strstr(a.why, "firewall"), "%s", a.why);
	cm_raw_peer_close(&closed);
	close_ends(ends);
}

Test(cm_route, a_first_address_that_replies_needs_no_other)
{
	struct cm_node *ends = open_ends(0, false);
	struct wire_cm_pkt req;

	connect_by_name(ends, false);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "%s", a.why);
	cr_expect_not(cm_raw_peer_recv(&silent, &req, 0), "the further one was tried");
	close_ends(ends);
}

/** Gives an endpoint a second address, and returns it. */
static union cm_addr add_address(struct cm_end *end, const char *ip)
{
	struct cm_ep_sock *sock = &end->cep->socks[1];
	int fd;

	cm_test_addr(ip, cm_test_port(end), &sock->addr);
	fd = cm_udp_bind(&sock->addr);
	cr_assert_geq(fd, 0);
	cm_node_lock(end->node);
	cr_assert_eq(cm_src_open(end->node, &sock->src, fd), 0);
	sock->prefix_len = 32;
	end->cep->sock_cnt = 2;
	cm_node_unlock(end->node);
	return sock->addr;
}

Test(cm_route, a_job_key_holds_for_a_stream_to_a_further_address)
{
	struct cm_node *ends = cm_test_node("key", 10000);
	union cm_addr second;

	cm_end_open(&a, ends, "127.0.0.1", 0);
	cm_end_open(&b, ends, "127.0.0.1", 0);
	second = add_address(&b, "127.0.0.2");
	cm_node_lock(ends);
	cr_assert_eq(cm_connect_locked(a.cep, &second, 1, false), 0);
	cm_node_unlock(ends);
	cr_expect(cm_end_wait(&a, &a.up, 1, 30000), "%s", a.why);
	cr_expect_eq(cm_end_stats(&b).rx_bad_mac, 0);
	cm_ends_close(ends, &a, &b);
}

/* ---- one peer under two addresses ---- */

/** Requests a connection to an address that is given without others. */
static void connect_to(struct cm_end *end, const union cm_addr *addr)
{
	cm_node_lock(end->node);
	cr_assert_eq(cm_connect_locked(end->cep, addr, 1, false), 0);
	cm_node_unlock(end->node);
}

/** Checks that the request for `addr` found the connected end b, and that there is one conn. */
static void expect_alias(const union cm_addr *addr)
{
	cr_assert(cm_end_wait(&a, &a.aliased, 1, CM_TEST_WAIT_MS), "%s", a.why);
	cr_expect(cm_addr_is_equal(&a.alias, addr));
	cr_expect_eq(a.alias_inc, cm_ep_incarnation(b.cep));
	cr_expect_eq(cm_end_get(&a, &a.failed), 0, "%s", a.why);
	cm_end_reap(&a);
	cr_expect_eq(cm_end_live(&a), 1);
	cr_expect_eq(cm_end_live(&b), 1);
	cr_expect_eq(cm_end_get(&a, &a.down) + cm_end_get(&b, &b.down), 0);
}

/** Lets `from` connect to `to`, and then a to another address of b. */
static void connect_twice(struct cm_end *from, struct cm_end *to)
{
	union cm_addr second = add_address(&b, "127.0.0.2");

	cm_ends_connect(from, to, 1);
	connect_to(&a, &second);
	expect_alias(&second);
}

Test(cm_route, another_address_of_a_connected_peer_is_found_to_be_one)
{
	struct cm_node *ends = cm_ends_open(10000, &a, &b);

	connect_twice(&a, &b);
	cm_ends_close(ends, &a, &b);
}

Test(cm_route, another_address_of_a_peer_that_connected_itself_is_found_to_be_one)
{
	struct cm_node *ends = cm_ends_open(10000, &a, &b);

	connect_twice(&b, &a);
	cm_ends_close(ends, &a, &b);
}

Test(cm_route, another_address_is_found_without_a_stream)
{
	struct cm_node *ends = open_ends(10000, true);

	connect_twice(&a, &b);
	close_ends(ends);
}

Test(cm_route, two_addresses_that_are_requested_at_once_are_one_connection)
{
	struct cm_node *ends = cm_ends_open(10000, &a, &b);
	union cm_addr first = cm_test_addr_of(&b), second = add_address(&b, "127.0.0.2");

	cm_node_lock(ends);
	cr_assert_eq(cm_connect_locked(a.cep, &first, 1, false), 0);
	cr_assert_eq(cm_connect_locked(a.cep, &second, 1, false), 0);
	cm_node_unlock(ends);
	cr_assert(cm_end_wait(&a, &a.up, 1, CM_TEST_WAIT_MS), "%s", a.why);
	cr_assert(cm_end_wait(&b, &b.up, 1, CM_TEST_WAIT_MS));
	cr_assert(cm_end_wait(&a, &a.aliased, 1, CM_TEST_WAIT_MS), "%s", a.why);
	expect_alias(cm_addr_is_equal(&a.alias, &first) ? &first : &second);
	cm_ends_close(ends, &a, &b);
}

Test(cm_route, an_address_is_another_process_s_again_when_the_connection_has_ended)
{
	struct cm_node *ends = cm_ends_open(10000, &a, &b);
	union cm_addr second = add_address(&b, "127.0.0.2");

	cm_ends_connect(&a, &b, 1);
	connect_to(&a, &second);
	expect_alias(&second);
	cr_assert(cm_end_put_live(&a));
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS));
	connect_to(&a, &second);
	cr_expect(cm_end_wait(&a, &a.up, 2, CM_TEST_WAIT_MS), "%s", a.why);
	cr_expect_eq(cm_end_get(&a, &a.aliased), 1);
	cm_ends_close(ends, &a, &b);
}

/* ---- names in HELLO ---- */

/** Sends a HELLO that states a name beginning with this address. */
static void state_name(struct dgram_peer *g, const union cm_addr *stated)
{
	struct wire_cm_pkt ack, hello;

	cr_assert(cm_raw_peer_get_ack(&g->s, &g->to, &ack));
	cm_raw_peer_make_hello(&g->s, &ack, &hello);
	hello.features = WIRE_CM_FEATURE_NAME;
	cm_addr_to_wire(stated, &hello.hello.addr);
	cm_raw_peer_send(&g->s, &g->to, &hello);
}

Test(cm_route, a_sender_is_reported_by_the_name_it_states_and_the_address_it_proved)
{
	struct cm_paths paths = { .all = WIRE_CM_PATH_NIC, .best = { WIRE_CM_PATH_NIC } };
	struct cm_conn *conn;
	struct dgram_peer g;
	union cm_addr stated;

	dgram_peer_open(&g, paths, NULL, 0);
	cm_test_addr("10.9.9.9", cm_addr_port(&g.s.addr), &stated);
	state_name(&g, &stated);
	cm_raw_peer_await(&g.s, WIRE_CM_WELCOME);
	cm_node_lock(g.node);
	conn = UTIL_CONTAINER_OF(util_list_first(&g.a.cep->conns), struct cm_conn, cep_link);
	cr_expect(cm_addr_is_equal(&conn->addr, &stated));
	cr_expect(cm_addr_is_equal(&conn->via.to, &g.s.addr));
	cr_expect(cm_addr_is_equal(&conn->peer->addr, &g.s.addr), "its place in the table");
	cm_node_unlock(g.node);
	dgram_peer_close(&g);
}

/** Checks that a sender at `ip` that states `name` is known by the address that it proved. */
static void expect_proved(const char *ip, const char *name, unsigned port_step)
{
	struct cm_raw_peer s;
	struct cm_node *ends;
	struct wire_cm_pkt ack, hello;
	struct sockaddr_storage reported;
	union cm_addr to, stated, first;
	struct cm_conn *conn;

	before = cm_test_paths;
	cm_test_apart = true;
	cm_test_paths = DGRAM_NIC_ONLY;
	ends = cm_test_node(NULL, 0);
	cm_end_open(&a, ends, ip, 0);
	a.fd_cnt = 0;
	cm_raw_peer_open(&s, ip, NULL);
	to = cm_test_addr_of(&a);
	cm_test_addr(name, (uint16_t)((unsigned)cm_addr_port(&s.addr) + port_step), &stated);
	cr_assert(cm_raw_peer_get_ack(&s, &to, &ack));
	cm_raw_peer_make_hello(&s, &ack, &hello);
	hello.features = WIRE_CM_FEATURE_NAME;
	cm_addr_to_wire(&stated, &hello.hello.addr);
	cm_raw_peer_send(&s, &to, &hello);
	cm_raw_peer_await(&s, WIRE_CM_WELCOME);
	cm_node_lock(ends);
	conn = UTIL_CONTAINER_OF(util_list_first(&a.cep->conns), struct cm_conn, cep_link);
	cm_conn_addr(conn, &reported);
	cm_node_unlock(ends);
	cr_assert_eq(cm_addr_import((struct sockaddr *)&reported, &first), 0);
	cr_expect(cm_addr_is_equal(&first, &s.addr), "%s is taken for %s", ip, name);
	cm_raw_peer_close(&s);
	cm_ends_close(ends, &a, NULL);
	cm_test_paths = before;
	cm_test_apart = false;
}

Test(cm_route, a_sender_is_not_known_by_a_name_with_another_port)
{
	expect_proved("127.0.0.1", "10.9.9.9", 1);
}

Test(cm_route, a_sender_of_ipv6_is_not_known_by_another_address)
{
	cm_test_need_ipv6();
	expect_proved("::1", "fd00::9", 0);
}

Test(cm_route, a_name_that_no_peer_can_have_makes_a_hello_malformed)
{
	struct cm_paths paths = { .all = WIRE_CM_PATH_NIC, .best = { WIRE_CM_PATH_NIC } };
	struct wire_cm_pkt ack;
	struct dgram_peer g;
	union cm_addr stated;

	dgram_peer_open(&g, paths, NULL, 0);
	state_name(&g, &g.to); /* the endpoint's own */
	cm_test_addr("224.0.0.1", 7, &stated);
	state_name(&g, &stated);
	cm_test_addr("::1", 7, &stated);
	state_name(&g, &stated);
	cr_expect(cm_raw_peer_get_ack(&g.s, &g.to, &ack), "there was another reply");
	cr_expect_eq(cm_end_stats(&g.a).rx_malformed, 3);
	cr_expect_eq(cm_end_get(&g.a, &g.a.prepared), 0);
	dgram_peer_close(&g);
}

/** Makes a raw peer of the process of `s` at another address, with the same port. */
static void open_at(struct cm_raw_peer *other, const struct cm_raw_peer *s, const char *ip)
{
	*other = *s;
	cm_test_addr(ip, cm_addr_port(&s->addr), &other->addr);
	other->udp = cm_udp_bind(&other->addr);
	cr_assert_geq(other->udp, 0);
}

/** Requests a connection to both addresses, and cancels after the HELLO to `first`. */
static void request_and_cancel(struct dgram_peer *g, struct cm_raw_peer *first)
{
	struct wire_cm_pkt req, ack = { .type = WIRE_CM_ACK, .ack.paths = WIRE_CM_PATH_NIC };
	union cm_addr list[2] = { first->addr, g->s.addr };

	cm_node_lock(g->node);
	cr_assert_eq(cm_connect_locked(g->a.cep, list, 2, false), 0);
	cm_node_unlock(g->node);
	req = cm_raw_peer_await(first, WIRE_CM_REQ);
	ack.nonce = req.nonce;
	ack.dst_inc = req.src_inc;
	memset(ack.ack.name, 'a', WIRE_CM_NAME_LEN);
	cm_raw_peer_send(first, &g->to, &ack);
	cm_raw_peer_await(first, WIRE_CM_HELLO);
	cm_node_lock(g->node);
	cm_connect_cancel_locked(g->a.cep, list, 2);
	cm_node_unlock(g->node);
}

/** Checks that every conn that is not down is that of its peer. */
static void expect_owned_conns(struct cm_ep *cep)
{
	for (struct util_list *it = cep->conns.next; it != &cep->conns; it = it->next) {
		struct cm_conn *conn = UTIL_CONTAINER_OF(it, struct cm_conn, cep_link);

		cr_expect(conn->state == CM_CONN_DOWN || conn->peer->conn == conn);
	}
}

Test(cm_route, a_hello_that_ends_one_conn_of_its_sender_does_not_replace_another_unseen)
{
	struct wire_cm_pkt reply;
	struct cm_raw_peer first;
	struct dgram_peer g;

	dgram_peer_open(&g, DGRAM_NIC_ONLY, NULL, 0);
	dgram_peer_establish(&g);
	open_at(&first, &g.s, "127.0.0.3");
	request_and_cancel(&g, &first);
	g.s.inc = g.s.first_inc = cm_mac_random(); /* the process was restarted */
	state_name(&g, &first.addr);
	cr_assert(cm_raw_peer_recv_reply(&g.s, &reply));
	cr_expect_eq(reply.type, WIRE_CM_NAK, "%s", wire_cm_type_name(reply.type));
	cr_expect_eq(reply.nak.err, FI_EAGAIN);
	cm_node_lock(g.node);
	expect_owned_conns(g.a.cep);
	cm_node_unlock(g.node);
	close(first.udp);
	dgram_peer_close(&g);
}
