/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions as connections of whole engines, over UDP: connect, exchange, sleep, wake, close. */
#include "erpc/transport/erpc_transport.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/timerfd.h>

#include "cm/base/cm.h"
#include "erpc/erpc_setup.h"
#include "unit/erpc/transport/sessions_fixture.h"
#include "util/clock.h"

#define LONG_MS 60000 /* a wakeup that takes longer is missing */

static const struct eng_transports udp = { .cnt = 1, .ops = { &erpc_transport_udp } };

/** Returns the remaining time of the timer in ns; 0: not set. */
static uint64_t timer_ns(const struct whole *w)
{
	struct itimerspec at;

	cr_assert_eq(timerfd_gettime(erpc_of(w)->timer_fd, &at), 0);
	return (uint64_t)at.it_value.tv_sec * 1000000000u + (uint64_t)at.it_value.tv_nsec;
}

static uint64_t last_batch_rx_ns(const struct whole *w)
{
	return transport_of(w)->ops->last_rx_ns(eng_conn_of(w->chan));
}

Test(erpc_transport, two_engines_connect_exchange_and_close, .timeout = 200)
{
	uint64_t before_ns;

	whole_open(&wholes[0], &udp);
	whole_open(&wholes[1], &udp);
	cr_expect(util_list_is_empty(&erpc_of(&wholes[0])->eps), "no endpoint is polled");
	wholes_connect();
	wholes_until(&wholes[0].up);
	wholes_until(&wholes[1].up);
	cr_expect_not(util_list_is_empty(&erpc_of(&wholes[0])->eps));
	cr_expect_eq(last_batch_rx_ns(&wholes[1]), 0);
	before_ns = util_clock_ns();
	send_and_receive(&wholes[0], &wholes[1]);
	cr_expect_geq(last_batch_rx_ns(&wholes[1]), before_ns);
	cr_expect_leq(last_batch_rx_ns(&wholes[1]), util_clock_ns());
	send_and_receive(&wholes[1], &wholes[0]);
	settle();
	whole_close_chan(&wholes[0]);
	wholes_until(&wholes[1].down);
	cr_expect_eq(wholes[1].err, -FI_ESHUTDOWN);
	wholes_close();
}

/** Packets that had arrived before the close are delivered before the close is detected. */
Test(erpc_transport, the_last_message_before_a_close_is_delivered, .timeout = 200)
{
	wholes_meet(&udp, &udp);
	send_one(&wholes[0]);
	whole_close_chan(&wholes[0]);
	wholes_until(&wholes[1].down);
	cr_expect_eq(wholes[1].msgs, 1);
	wholes_close();
}

Test(erpc_transport, a_packet_wakes_a_sleeping_thread, .timeout = 200)
{
	wholes_meet(&udp, &udp);
	send_and_receive(&wholes[0], &wholes[1]);
	settle();
	arm(&wholes[1]);
	cr_expect_eq(timer_ns(&wholes[1]), 0, "no timer is due");
	cr_expect_not(wakes(&wholes[1], 0));
	send_one(&wholes[0]);
	cr_assert(wakes(&wholes[1], LONG_MS));
	transport_of(&wholes[1])->ops->disarm(transport_of(&wholes[1]));
	wholes_until(&wholes[1].msgs);
	settle();
	wholes_close();
}

/** Without a response the check for losses is due, and no packet arrives. */
Test(erpc_transport, a_timer_wakes_a_sleeping_thread, .timeout = 200)
{
	const struct erpc_session *s;
	unsigned i;

	wholes_meet(&udp, &udp);
	s = (const struct erpc_session *)wholes[0].chan;
	send_one(&wholes[0]);
	for (i = 0; !s->conn.chan.stats->losses; i++) {
		arm(&wholes[0]);
		cr_assert(wakes(&wholes[0], LONG_MS), "sleep %u", i);
		transport_of(&wholes[0])->ops->disarm(transport_of(&wholes[0]));
		cr_expect_eq(timer_ns(&wholes[0]), 0, "a thread that is awake needs no timer");
		whole_progress(&wholes[0]);
	}
	wholes_until(&wholes[1].msgs);
	settle();
	cr_expect_eq(wholes[1].msgs, 1, "sent again, and delivered once");
	wholes_close();
}

/* ---- parameters of the peer ---- */

/** Returns the state of the only transport and address of the first endpoint. */
static struct erpc_transport_ep *state_of(void)
{
	return wholes[0].eep->ep_state[0][0];
}

/** Prepares a connection. Returns the result of establish with `peer`. */
static int establish(const struct cm_params *peer)
{
	struct eng_transport *transport = transport_of(&wholes[0]);
	struct eng_conn *conn;
	struct cm_params own;
	int ret;

	memset(&own, 0, sizeof(own));
	cr_assert_eq(transport->ops->prepare(transport, wholes[0].eep, state_of(), ENG_SIZE_DEFAULT,
					     &own, &conn),
		     0);
	ret = transport->ops->establish(conn, peer);
	transport->ops->free(conn);
	return ret;
}

/** Returns a path MTU smaller than the link's, which the parameters must advertise. */
static uint32_t narrow(struct dev_dgram *dg, const struct sockaddr *peer)
{
	cr_expect_eq(peer->sa_family, AF_INET);
	return dg->mtu < 1300 ? dg->mtu : 1300;
}

Test(erpc_transport, the_path_mtu_is_advertised, .timeout = 200)
{
	const struct dev_dgram_ops *ops;
	struct dev_dgram_ops narrow_ops;
	struct wire_erpc_params params;
	struct eng_transport *transport;
	struct eng_conn *conn;
	struct erpc_session *s;
	struct cm_params own;

	wholes_meet(&udp, &udp);
	transport = transport_of(&wholes[0]);
	memset(&own, 0, sizeof(own));
	cr_assert_eq(transport->ops->prepare(transport, wholes[0].eep, state_of(), ENG_SIZE_DEFAULT,
					     &own, &conn),
		     0);
	s = (struct erpc_session *)conn;
	ops = s->ep->dg->ops;
	narrow_ops = *ops;
	narrow_ops.route_mtu = narrow;
	transport->ops->aim(conn, (struct sockaddr *)&wholes[1].addr, &own);
	memcpy(&params, own.engine, sizeof(params));
	cr_expect_eq(params.mtu, s->ep->dg->mtu, "the path MTU of loopback is the link's");
	s->ep->dg->ops = &narrow_ops;
	transport->ops->aim(conn, (struct sockaddr *)&wholes[1].addr, &own);
	s->ep->dg->ops = ops;
	memcpy(&params, own.engine, sizeof(params));
	cr_expect_eq(params.mtu, 1300);
	cr_expect_eq(params.session, s->num);
	cr_expect_eq(params.token, s->token);
	transport->ops->free(conn);
	settle();
	wholes_close();
}

static int establish_with(struct cm_params peer, struct wire_erpc_params params)
{
	memcpy(peer.engine, &params, sizeof(params));
	return establish(&peer);
}

Test(erpc_transport, invalid_peer_parameters_are_refused, .timeout = 200)
{
	struct wire_erpc_params good, params;
	struct eng_transport *transport;
	struct eng_conn *conn;
	struct cm_params peer;

	wholes_meet(&udp, &udp); /* opens the endpoint */
	transport = transport_of(&wholes[0]);
	memset(&peer, 0, sizeof(peer));
	cr_assert_eq(transport->ops->prepare(transport, wholes[0].eep, state_of(), ENG_SIZE_DEFAULT,
					     &peer, &conn),
		     0);
	cr_assert_eq(peer.engine_len, sizeof(good));
	memcpy(&good, peer.engine, sizeof(good));
	cr_expect_geq(good.credits, ERPC_CREDITS_MIN);
	cr_expect_eq(establish_with(peer, good), 0);
	params = good;
	params.version++;
	cr_expect_eq(establish_with(peer, params), -FI_EOPNOTSUPP);
	params = good;
	params.credits = 0;
	cr_expect_eq(establish_with(peer, params), -FI_EIO);
	params = good;
	params.zero = 1;
	cr_expect_eq(establish_with(peer, params), -FI_EIO);
	params = good;
	params.mtu = 0;
	cr_expect_eq(establish_with(peer, params), -FI_EIO);
	peer.engine_len--;
	cr_expect_eq(establish_with(peer, good), -FI_EIO);
	peer.engine_len += 2;
	cr_expect_eq(establish_with(peer, good), -FI_EIO);
	peer.engine_len--;
	peer.dev.len--;
	cr_expect_neq(establish_with(peer, good), 0);
	transport->ops->free(conn);
	cr_expect_eq(state_of()->ep->session_cnt, 1);
	send_and_receive(&wholes[0], &wholes[1]);
	settle();
	wholes_close();
}
