/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Both ends compute the same connection from the two connection parameters. (ring_setup.c)
 *
 * The tests make cm's up-calls directly, over fake devices.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/conn/cm_conn.h"
#include "ring/ring_rail.h"
#include "support/ring_pair.h"
#include "util/param.h"
#include "wire/wire_cm.h"

#define RING_VERSION 5u

/** Engine with one endpoint, as eng_open makes them, and its fake device. */
struct side {
	struct core_engine engine;
	struct core_engine_ep eep;
	struct fake_dev dev;
	struct cm_params params;
	struct ring_conn *conn;
};

static struct side sides[2];

static void side_init(struct side *s)
{
	struct ring_transport *transport;

	memset(s, 0, sizeof(*s));
	fake_dev_init(&s->dev, true, 1);
	transport = ring_transport_of(eng_transport_at(&s->engine, 0));
	transport->eng.ops = &ring_pair_direct_transport;
	transport->eng.engine = &s->engine;
	transport->dev_ops = &fake_dev_ops;
	transport->dev = fake_dev_of(&s->dev);
	util_list_init(&transport->dirty);
	util_list_init(&transport->unacked);
	s->engine.transport_cnt = 1;
	s->params.path = WIRE_CM_PATH_SHM;
	util_list_init(&s->engine.failed);
	util_list_init(&s->engine.events);
	pthread_mutex_init(&s->engine.lock, NULL);
	s->engine.event_fd = -1;
	s->eep.engine = &s->engine;
	util_list_init(&s->eep.conns);
}

static void start(void)
{
	memset(&util_params, 0, sizeof(util_params));
	util_params.mem = 256u << 20;
	side_init(&sides[0]);
	side_init(&sides[1]);
}

/** Calls prepare with a connection of a node that is closed. */
static int prepare(struct side *s)
{
	struct cm_conn *cm = calloc(1, sizeof(*cm));
	void *user = NULL;
	int ret;

	cr_assert_not_null(cm);
	ret = eng_cm_ops.prepare(&s->eep, cm, &s->params, &user);
	s->conn = user;
	if (ret)
		cm_conn_put(cm);
	return ret;
}

static int establish(struct side *s, const struct side *peer)
{
	return eng_cm_ops.establish(&s->eep, NULL, s->conn, &peer->params);
}

static void drop(struct side *s)
{
	if (!s->conn)
		return;
	util_list_remove(&s->conn->eng.conn_link);
	s->conn->link->ops->close(s->conn->link);
	ring_rail_free(s->conn);
	ring_conn_fini(s->conn);
	cm_conn_put(s->conn->eng.cm);
	free(s->conn);
	s->conn = NULL;
}

static void stop(void)
{
	drop(&sides[0]);
	drop(&sides[1]);
}

TestSuite(ring_setup, .init = start, .fini = stop);

/** Prepares side i with a ring of `len` bytes. */
static void prepare_len(int i, size_t len)
{
	util_params.ring_size = len;
	cr_assert_eq(prepare(&sides[i]), 0);
	cr_assert_eq(sides[i].conn->link->rx_len, len);
}

/** Returns the length of the longest response over a ring of `len` bytes. */
static size_t resp_longest(size_t len)
{
	return (len < 262144 ? len : 262144) / 16 - 44;
}

Test(ring_setup, both_ends_compute_the_same_initial_credit)
{
	static const size_t len[] = { 4096, 16384, 262144, 1u << 20 };
	unsigned i, k;

	for (i = 0; i < 4; i++)
		for (k = 0; k < 4; k++) {
			struct ring_conn *a, *b;

			prepare_len(0, len[i]);
			prepare_len(1, len[k]);
			cr_assert_eq(establish(&sides[0], &sides[1]), 0);
			cr_assert_eq(establish(&sides[1], &sides[0]), 0);
			a = sides[0].conn;
			b = sides[1].conn;
			cr_expect_eq(a->tx.flow.granted, b->tx.credit);
			cr_expect_eq(b->tx.flow.granted, a->tx.credit);
			cr_expect_eq(a->tx.flow.granted, a->tx.flow.grant_max);
			cr_expect_leq(a->tx.flow.granted, len[k] / 4);
			cr_expect_eq(a->tx.len, len[k]);
			cr_expect_eq(b->rx.len, len[k]);
			cr_expect_eq(a->eng.chan.resp_sure, resp_longest(len[i]),
				     "as fi_copyrpc_rpc(3) says");
			drop(&sides[0]);
			drop(&sides[1]);
		}
}

/**
 * Layout of the connection parameters (docs/ring-protocol.md, section 9), for tests that change
 * them.
 */
struct said {
	uint32_t version;
	uint32_t features;
	uint64_t grant_max;
};

static void say(struct side *s, struct said said)
{
	memcpy(s->params.engine, &said, sizeof(said));
}

static struct said said(const struct side *s)
{
	struct said said;

	cr_assert_eq(s->params.engine_len, sizeof(said));
	memcpy(&said, s->params.engine, sizeof(said));
	return said;
}

Test(ring_setup, connection_parameters_have_version_features_and_credit)
{
	prepare_len(0, 4096);
	cr_expect_eq(said(&sides[0]).version, RING_VERSION);
	cr_expect_eq(said(&sides[0]).features, 0);
	cr_expect_eq(said(&sides[0]).grant_max, 0, "the default");
	drop(&sides[0]);
	util_params.grant_max = 4096;
	prepare_len(0, 4096);
	cr_expect_eq(said(&sides[0]).grant_max, 4096);
}

Test(ring_setup, the_peers_grant_is_bounded_by_the_ring)
{
	static const uint64_t announced[] = { 0, 64, 100, 1024, 1025, UINT64_MAX };
	static const uint64_t credit[] = { 512, 64, 96, 1024, 1024, 1024 };
	unsigned i;

	for (i = 0; i < 6; i++) {
		prepare_len(0, 4096);
		prepare_len(1, 4096);
		say(&sides[1], (struct said){ RING_VERSION, 0, announced[i] });
		cr_assert_eq(establish(&sides[0], &sides[1]), 0);
		cr_expect_eq(sides[0].conn->tx.credit, credit[i], "announced %lu", announced[i]);
		drop(&sides[0]);
		drop(&sides[1]);
	}
}

static int establish_with(struct said theirs)
{
	prepare_len(0, 4096);
	prepare_len(1, 4096);
	say(&sides[1], theirs);
	return establish(&sides[0], &sides[1]);
}

Test(ring_setup, a_peer_that_grants_too_little_for_any_call_is_refused)
{
	cr_expect_eq(establish_with((struct said){ RING_VERSION, 0, 63 }), -FI_EIO);
	stop();
	cr_expect_eq(establish_with((struct said){ RING_VERSION, 0, 1 }), -FI_EIO);
}

Test(ring_setup, a_ring_without_room_for_messages_beside_responses_is_refused)
{
	static const struct {
		size_t len, grant;
		int ret;
	} rows[] = { { 1024, 0, 0 }, { 1024, 256, -FI_EIO }, { 2048, 512, 0 } };

	for (unsigned i = 0; i < 3; i++) {
		util_params.grant_max = rows[i].grant;
		prepare_len(0, rows[i].len);
		prepare_len(1, rows[i].len);
		cr_expect_eq(establish(&sides[0], &sides[1]), rows[i].ret, "row %u", i);
		if (!rows[i].ret)
			cr_expect_geq(sides[0].conn->eng.chan.eager_max, UTIL_PARAM_EAGER_MIN + 16);
		drop(&sides[0]);
		drop(&sides[1]);
	}
}

Test(ring_setup, another_version_is_refused)
{
	cr_expect_eq(establish_with((struct said){ RING_VERSION - 1, 0, 512 }), -FI_EOPNOTSUPP);
	stop();
	cr_expect_eq(establish_with((struct said){ RING_VERSION + 1, 0, 512 }), -FI_EOPNOTSUPP);
}

Test(ring_setup, an_unknown_feature_is_refused)
{
	cr_expect_eq(establish_with((struct said){ RING_VERSION, 1u << 31, 512 }), -FI_EOPNOTSUPP);
}

Test(ring_setup, connection_parameters_of_another_length_are_refused)
{
	prepare_len(0, 4096);
	prepare_len(1, 4096);
	sides[1].params.engine_len--;
	cr_expect_eq(establish(&sides[0], &sides[1]), -FI_EIO);
	sides[1].params.engine_len = 0;
	cr_expect_eq(establish(&sides[0], &sides[1]), -FI_EIO);
	sides[1].params.engine_len = CM_ENGINE_MAX;
	cr_expect_eq(establish(&sides[0], &sides[1]), -FI_EIO);
}

Test(ring_setup, a_device_error_is_returned)
{
	prepare_len(0, 4096);
	prepare_len(1, 4096);
	sides[0].dev.fail_connect = -FI_EINVAL;
	cr_expect_eq(establish(&sides[0], &sides[1]), -FI_EINVAL);
	drop(&sides[0]);
	sides[0].dev.fail_create = -FI_EMFILE;
	cr_expect_eq(prepare(&sides[0]), -FI_EMFILE);
	cr_expect_null(sides[0].conn);
	cr_expect_eq(sides[0].engine.mem, 4096, "only what was made counts");
}

Test(ring_setup, ring_memory_stays_within_the_budget)
{
	struct ring_conn *made[64];
	unsigned cnt = 0;

	util_params.mem = 1u << 20;
	while (cnt < 64 && !prepare(&sides[0])) {
		made[cnt++] = sides[0].conn;
		cr_assert_leq(sides[0].engine.mem, util_params.mem);
		cr_assert(sides[0].conn->link->rx_len >= 16384);
	}
	cr_expect_eq(cnt, 64, "1 MiB is 64 rings of 16 KiB");
	cr_expect_eq(prepare(&sides[0]), -FI_ENOMEM);
	while (cnt) {
		sides[0].conn = made[--cnt];
		drop(&sides[0]);
	}
}

Test(ring_setup, ring_sizes_shrink_with_the_remaining_budget)
{
	cr_assert_eq(prepare(&sides[0]), 0);
	cr_expect_eq(sides[0].conn->link->rx_len, 256 << 10);
	drop(&sides[0]);
	util_params.mem = 4u << 20;
	sides[0].engine.mem = 0;
	cr_assert_eq(prepare(&sides[0]), 0);
	cr_expect_eq(sides[0].conn->link->rx_len, 64 << 10);
	drop(&sides[0]);
	sides[0].engine.mem = util_params.mem - (20 << 10);
	cr_assert_eq(prepare(&sides[0]), 0);
	cr_expect_eq(sides[0].conn->link->rx_len, 16 << 10);
}

Test(ring_setup, a_configured_size_is_rounded_to_a_power_of_two)
{
	util_params.ring_size = 100000;
	cr_assert_eq(prepare(&sides[0]), 0);
	cr_expect_eq(sides[0].conn->link->rx_len, 65536);
}

Test(ring_setup, a_prepared_connection_belongs_to_its_endpoint)
{
	prepare_len(0, 4096);
	cr_expect_eq(sides[0].eep.conns.next, &sides[0].conn->eng.conn_link);
	cr_expect_eq(sides[0].conn->eng.eep, &sides[0].eep);
	cr_expect_not(sides[0].conn->eng.up_reported);
}

/* Else a peer with an interval would move the connections of an end that must keep them. */
Test(ring_setup, links_move_only_where_both_ends_want_it)
{
	static const struct {
		int interval_ms;
		uint64_t features;
		bool moves;
	} cases[] = {
		{ 1000, WIRE_CM_FEATURE_MOVES, true },
		{ 1000, 0, false },
		{ 0, WIRE_CM_FEATURE_MOVES, false },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		util_params.rc_interval_ms = cases[i].interval_ms;
		sides[0].params.features = cases[i].features;
		cr_assert_eq(prepare(&sides[0]), 0);
		cr_expect_eq(sides[0].params.dev.peer_moves, cases[i].moves, "case %u", i);
		drop(&sides[0]);
	}
}

static struct ring_rails rails[2];
static struct fake_dev second[2];

static void add_rails(int i)
{
	fake_dev_init(&second[i], true, 1);
	rails[i] = (struct ring_rails){ .dev = fake_dev_of(&second[i]) };
	pthread_mutex_init(&rails[i].lock, NULL);
	ring_transport_of(eng_transport_at(&sides[i].engine, 0))->rails = &rails[i];
}

/** Connects both sides, where the handshake has `features`. */
static void connect_with(uint64_t features)
{
	stop();
	for (int i = 0; i < 2; i++) {
		sides[i].params.features = features;
		cr_assert_eq(prepare(&sides[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		cr_assert_eq(establish(&sides[i], &sides[!i]), 0);
}

Test(ring_setup, a_rail_needs_two_devices_at_both_ends_that_know_of_it)
{
	uint32_t len;

	connect_with(WIRE_CM_FEATURE_RAILS);
	len = sides[0].params.dev.len;
	cr_expect_null(sides[0].conn->rail);
	add_rails(0);
	connect_with(0);
	cr_expect_eq(sides[0].params.dev.len, len, "a peer that does not know of rails");
	cr_expect_null(sides[0].conn->rail);
	connect_with(WIRE_CM_FEATURE_RAILS);
	cr_expect_eq(sides[0].params.dev.len, 2 * len);
	cr_expect_eq(sides[1].params.dev.len, len);
	cr_expect(!sides[0].conn->rail && !sides[1].conn->rail, "a peer with one device");
	cr_expect_eq(rails[0].user_cnt, 0);
	add_rails(1);
	connect_with(WIRE_CM_FEATURE_RAILS);
	cr_assert(sides[0].conn->rail && sides[1].conn->rail);
	cr_expect_eq(fake_link_of(sides[0].conn->rail->link)->peer,
		     fake_link_of(sides[1].conn->rail->link));
	cr_expect_eq(fake_link_of(sides[0].conn->link)->peer, fake_link_of(sides[1].conn->link));
	cr_expect_eq(rails[0].user_cnt, 1);
	rails[1].is_out = true;
	connect_with(WIRE_CM_FEATURE_RAILS);
	cr_expect(!sides[0].conn->rail && !sides[1].conn->rail, "a device that is out");
	rails[1].is_out = false;
	second[1].fail_connect = -FI_EHOSTUNREACH;
	connect_with(WIRE_CM_FEATURE_RAILS);
	cr_expect_null(sides[1].conn->rail, "the second devices do not fit: no reason to refuse");
}

Test(ring_setup, an_attempt_with_a_rail_that_fails_leaves_nothing)
{
	add_rails(0);
	sides[0].params.features = WIRE_CM_FEATURE_RAILS;
	cr_assert_eq(prepare(&sides[0]), 0);
	cr_assert_not_null(sides[0].conn->rail);
	ring_life_stop(&sides[0].conn->eng);
	cr_expect_eq(rails[0].user_cnt, 0);
}
