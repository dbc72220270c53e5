/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two engines, and fake transports: see eng_fixture.h. */
#include "eng_fixture.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/param.h"
#include "wire/wire_cm.h"

struct whole wholes[2];

static struct whole *whole_of(struct core_ep *ep)
{
	return (struct whole *)ep;
}

static struct whole *whole_of_chan(struct core_chan *chan)
{
	return chan == wholes[0].chan ? &wholes[0] : &wholes[1];
}

static enum core_rx_verdict whole_msg(struct core_chan *chan, uint32_t op, const uint8_t *data,
				      uint32_t len, core_retain_t hold)
{
	whole_of_chan(chan)->msgs++;
	return CORE_RX_DONE;
}

static void whole_arrived(struct core_chan *chan, uint64_t pos)
{
	cr_expect_leq(pos, *chan->posted);
}

static void whole_up(struct core_ep *ep, struct core_chan *chan, const struct sockaddr *addr,
		     uint64_t incarnation)
{
	cr_expect_neq(incarnation, 0);
	whole_of(ep)->chan = chan;
	whole_of(ep)->up++;
}

static void whole_failed(struct core_ep *ep, const struct sockaddr *addr, int err)
{
	whole_of(ep)->failed++;
	whole_of(ep)->err = err;
	memcpy(&whole_of(ep)->failed_addr, addr, sizeof(struct sockaddr_in));
}

static void whole_alias(struct core_ep *ep, const struct sockaddr *addr, uint64_t incarnation)
{
	struct whole *w = whole_of(ep);

	w->aliased++;
	w->alias_inc = incarnation;
	memcpy(&w->alias_addr, addr, sizeof(struct sockaddr_in));
}

static void whole_down(struct core_chan *chan, int err)
{
	struct whole *w = whole_of_chan(chan);

	w->down++;
	w->err = err;
	whole_close_chan(w);
}

static void whole_regained(struct core_ep *ep)
{
	whole_of(ep)->regained++;
}

static const struct core_upcalls whole_upcalls = {
	.on_msg = whole_msg,
	.on_acked = whole_arrived,
	.on_up = whole_up,
	.on_connect_failed = whole_failed,
	.on_alias = whole_alias,
	.on_down = whole_down,
	.on_regained = whole_regained,
};

void whole_open(struct whole *w, const struct eng_transports *transports)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	util_params.mem = 64u << 20;
	util_params.peer_timeout_ms = 60000;
	cr_assert_eq(eng_open(transports, &whole_upcalls, &w->engine), 0);
	cr_assert_eq(eng_ep_open(&w->engine->base, &w->ep, (struct sockaddr *)&any, &w->eep), 0);
	eng_ep_addr(w->eep, &w->addr);
}

void whole_close_chan(struct whole *w)
{
	struct core_chan *chan = w->chan;

	w->chan = NULL;
	if (chan)
		chan->ops->close(chan);
}

void whole_close(struct whole *w)
{
	whole_close_chan(w);
	eng_ep_close(w->eep);
	eng_close(&w->engine->base);
}

void whole_progress(struct whole *w)
{
	eng_progress(&w->engine->base);
}

void wholes_until(const int *what)
{
	for (unsigned i = 0; i < 60000 && !*what; i++) {
		whole_progress(&wholes[0]);
		whole_progress(&wholes[1]);
		if (!*what)
			usleep(1000);
	}
	cr_assert(*what);
}

void wholes_connect(void)
{
	cr_assert_eq(eng_connect(wholes[0].eep, (struct sockaddr *)&wholes[1].addr, false), 0);
}

void wholes_meet(const struct eng_transports *first, const struct eng_transports *second)
{
	whole_open(&wholes[0], first);
	whole_open(&wholes[1], second);
	wholes_connect();
	wholes_until(&wholes[0].up);
	wholes_until(&wholes[1].up);
}

void wholes_close(void)
{
	whole_close(&wholes[0]);
	whole_close(&wholes[1]);
}

/* ---- fake transports ---- */

struct fake_transport_cfg fake_cfg;
char fake_story[256];
unsigned fake_polls[2];
enum eng_size fake_size;
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static int fake_tell(char what, int ret)
{
	size_t len;

	pthread_mutex_lock(&fake_lock);
	len = strlen(fake_story);
	if (len + 1 < sizeof(fake_story))
		fake_story[len] = what;
	pthread_mutex_unlock(&fake_lock);
	return ret;
}

unsigned fake_calls(char what)
{
	unsigned cnt = 0;

	pthread_mutex_lock(&fake_lock);
	for (const char *at = fake_story; *at; at++)
		cnt += *at == what;
	pthread_mutex_unlock(&fake_lock);
	return cnt;
}

struct fake_transport {
	struct eng_transport eng; /* First member */
	int fd;
};

static struct fake_transport *fake_transport_of(struct eng_transport *transport)
{
	return (struct fake_transport *)transport;
}

static int fake_open(struct eng_transport *transport)
{
	int ret = fake_cfg.fail_open[transport->ops - fake_transport_ops];

	if (!ret)
		fake_transport_of(transport)->fd = eventfd(0, EFD_NONBLOCK);
	return ret;
}

static void fake_close(struct eng_transport *transport)
{
	close(fake_transport_of(transport)->fd);
}

static int fake_ep_open(struct eng_transport *transport, struct core_engine_ep *eep,
			const struct sockaddr *addr, void **port)
{
	cr_assert_neq(((const struct sockaddr_in *)addr)->sin_port, 0, "it is concrete");
	if (!fake_cfg.fail_port)
		*port = eep;
	return fake_tell('o', fake_cfg.fail_port);
}

static void fake_ep_close(struct eng_transport *transport, void *port)
{
	cr_assert_not_null(port);
	fake_tell('c', 0);
}

static void fake_flush_chan(struct core_chan *chan)
{
}

static const struct core_chan_ops fake_chan_ops = {
	.flush = fake_flush_chan,
	.stop = eng_chan_stop,
	.close = eng_chan_close,
};

static int fake_prepare(struct eng_transport *transport, struct core_engine_ep *eep, void *ep_state,
			enum eng_size size, struct cm_params *params, struct eng_conn **conn)
{
	fake_size = size;
	cr_assert_eq(params->path, transport->ops->path);
	cr_assert_eq(ep_state, eep, "ep_open came first");
	if (fake_cfg.fail_prepare)
		return fake_tell('p', fake_cfg.fail_prepare);
	*conn = calloc(1, sizeof(**conn));
	(*conn)->chan.ops = &fake_chan_ops;
	return fake_tell('p', 0);
}

static int fake_establish(struct eng_conn *conn, const struct cm_params *peer)
{
	return fake_tell('e', fake_cfg.fail_establish);
}

static int fake_attach(struct eng_conn *conn)
{
	return fake_tell('a', fake_cfg.fail_attach);
}

static void fake_drain(struct eng_conn *conn)
{
	cr_assert_eq(conn->err, 0);
	fake_tell('d', 0);
}

static bool fake_withdraw(struct eng_conn *conn)
{
	(void)conn;
	if (fake_cfg.peer_writes)
		fake_tell('w', 0);
	return !fake_cfg.peer_writes;
}

static void fake_end(struct eng_conn *conn)
{
	cr_assert_neq(conn->err, 0);
	fake_tell('x', 0);
}

static void fake_stop(struct eng_conn *conn)
{
	fake_tell('s', 0);
}

static void fake_free(struct eng_conn *conn)
{
	free(conn);
	fake_tell('f', 0);
}

static bool fake_poll(struct eng_transport *transport)
{
	fake_polls[transport->ops - fake_transport_ops]++;
	return fake_cfg.busy;
}

static void fake_flush(struct eng_transport *transport)
{
}

static void fake_progress(struct eng_transport *transport)
{
	fake_poll(transport);
	fake_flush(transport);
}

static int fake_wait_fd(struct eng_transport *transport)
{
	return fake_transport_of(transport)->fd;
}

static int fake_arm(struct eng_transport *transport)
{
	return fake_cfg.busy ? -FI_EAGAIN : 0;
}

static void fake_disarm(struct eng_transport *transport)
{
}

#define FAKE_TRANSPORT(path_bit)                                                                   \
	{                                                                                          \
		.path = path_bit, .name = "fake", .open = fake_open, .close = fake_close,          \
		.ep_open = fake_ep_open, .ep_close = fake_ep_close, .prepare = fake_prepare,       \
		.establish = fake_establish, .attach = fake_attach, .drain = fake_drain,           \
		.withdraw = fake_withdraw, .end = fake_end, .stop = fake_stop, .free = fake_free,  \
		.poll = fake_poll, .flush = fake_flush, .progress = fake_progress,                 \
		.wait_fd = fake_wait_fd, .arm = fake_arm, .disarm = fake_disarm,                   \
	}

const struct eng_transport_ops fake_transport_ops[2] = { FAKE_TRANSPORT(WIRE_CM_PATH_SHM),
							 FAKE_TRANSPORT(WIRE_CM_PATH_NIC) };
const struct eng_transports fake_transports_first = { .cnt = 1, .ops = { &fake_transport_ops[0] } };
const struct eng_transports fake_transports_second = { .cnt = 1,
						       .ops = { &fake_transport_ops[1] } };
const struct eng_transports fake_transports_both = {
	.cnt = 2, .ops = { &fake_transport_ops[0], &fake_transport_ops[1] }
};
