/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The handshake finds the transport, and progress reports its outcome. (eng_setup.c) */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/conn/cm_conn.h"
#include "eng_fixture.h"
#include "engine/eng_event.h"
#include "wire/wire_cm.h"

/** Calls prepare on an endpoint without a connection request; cm's conn is one of a closed node. */
static int prepare(uint32_t path, struct eng_conn **conn)
{
	struct cm_params params = { .path = path };
	void *user = NULL;
	struct cm_conn *cm = calloc(1, sizeof(*cm));
	int ret = eng_cm_ops.prepare(wholes[0].eep, cm, &params, &user);

	*conn = user;
	if (ret)
		cm_conn_put(cm);
	return ret;
}

static void start(void)
{
	whole_open(&wholes[0], &fake_transports_both);
}

static void stop(void)
{
	whole_close(&wholes[0]);
}

TestSuite(eng_setup, .init = start, .fini = stop, .timeout = 200);

Test(eng_setup, the_path_selects_the_transport)
{
	struct eng_conn *conn;

	cr_assert_eq(prepare(WIRE_CM_PATH_NIC, &conn), 0);
	cr_expect_eq(conn->transport->ops, &fake_transport_ops[1]);
	cr_expect_eq(conn->eep, wholes[0].eep);
	cr_expect_eq(wholes[0].eep->conns.next, &conn->conn_link);
	cr_expect_not(conn->up_reported);
	eng_conn_free(conn);
	cr_expect(util_list_is_empty(&wholes[0].eep->conns));
	cr_expect_eq(prepare(1u << 20, &conn), -FI_EOPNOTSUPP);
}

Test(eng_setup, another_address_of_a_peer_is_reported_by_progress)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(4711) };
	struct whole *w = &wholes[0];

	eng_cm_ops.alias(w->eep, (struct sockaddr *)&addr, 7);
	cr_expect_eq(w->aliased, 0);
	eng_progress(&w->engine->base);
	cr_expect_eq(w->aliased, 1);
	cr_expect_eq(w->alias_inc, 7);
	cr_expect_eq(memcmp(&w->alias_addr, &addr, sizeof(addr)), 0);
}

Test(eng_setup, per_endpoint_state_is_made_once_when_needed)
{
	struct eng_conn *conn[2];

	cr_expect_eq(fake_calls('o'), 0);
	cr_assert_eq(prepare(WIRE_CM_PATH_SHM, &conn[0]), 0);
	cr_assert_eq(prepare(WIRE_CM_PATH_SHM, &conn[1]), 0);
	cr_expect_eq(fake_calls('o'), 1);
	cr_expect_eq(wholes[0].eep->ep_state[0][0], wholes[0].eep);
	stop();
	cr_expect_str_eq(fake_story, "oppsfsfc", "connections go before it");
	start();
}

Test(eng_setup, a_transport_error_is_returned_and_leaves_nothing)
{
	struct eng_conn *conn;

	fake_cfg.fail_port = -FI_EMFILE;
	cr_expect_eq(prepare(WIRE_CM_PATH_SHM, &conn), -FI_EMFILE);
	cr_expect_null(conn);
	cr_expect_eq(fake_calls('p'), 0);
	fake_cfg.fail_port = 0;
	fake_cfg.fail_prepare = -FI_ENOMEM;
	cr_expect_eq(prepare(WIRE_CM_PATH_SHM, &conn), -FI_ENOMEM);
	cr_expect_null(conn);
	cr_expect(util_list_is_empty(&wholes[0].eep->conns));
}

Test(eng_setup, events_are_handled_by_progress)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = 77 };
	struct core_engine_ep *eep = wholes[0].eep;
	struct core_engine *engine = wholes[0].engine;
	struct eng_conn *conn;
	struct eng_event ev;

	cr_assert_eq(prepare(WIRE_CM_PATH_SHM, &conn), 0);
	eng_cm_ops.up(eep, NULL, conn, true);
	eng_cm_ops.down(eep, NULL, conn, -FI_ECONNRESET);
	eng_cm_ops.failed(eep, (struct sockaddr *)&addr, -FI_ECONNREFUSED, "test");
	cr_assert(eng_event_pop(engine, &ev));
	cr_expect(ev.kind == ENG_EVENT_UP && ev.conn == conn);
	cr_assert(eng_event_pop(engine, &ev));
	cr_expect(ev.kind == ENG_EVENT_DOWN && ev.conn == conn && ev.err == -FI_ECONNRESET);
	cr_assert(eng_event_pop(engine, &ev));
	cr_expect(ev.kind == ENG_EVENT_FAILED && ev.eep == eep && ev.err == -FI_ECONNREFUSED);
	cr_expect_arr_eq(&ev.addr, &addr, sizeof(addr));
	cr_expect_not(eng_has_events(engine));
}
