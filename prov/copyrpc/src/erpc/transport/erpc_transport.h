/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transports over datagrams: engine/eng_transport.h implemented with eRPC endpoints and sessions.
 *
 * Each libfabric endpoint has an eRPC endpoint at its own address, polled from its first session
 * on. Over UDP it has one at each of its addresses that sessions use. The clock is read once per
 * poll (util/tick.h). A sleeping process is woken by packets, by events of the device, or by a
 * timer if a time-out or a delayed response is due.
 *
 * The control thread opens endpoints, and prepares and establishes sessions. All other functions
 * run under the domain's lock. Tested in test/unit/erpc/transport/test_erpc_transport.c: two
 * engines over UDP.
 */
#ifndef ERPC_TRANSPORT_ERPC_TRANSPORT_H
#define ERPC_TRANSPORT_ERPC_TRANSPORT_H

#include "dev/dgram.h"
#include "engine/eng_transport.h"
#include "erpc/base/erpc_ep.h"
#include "erpc/transport/erpc_transports.h"
#include "util/list.h"
#include "util/tick.h"

/** Device and its parameters. */
struct erpc_transport_dev {
	const struct dev_dgram_ops *dgram;
	const struct dev_ops *dev; /* NULL: no device to open */
	uint32_t rx_cnt;
	uint32_t tx_cnt;
	/* Bytes per second, unless LINK_RATE is set; 0: no pacing. */
	double link_rate;
	uint64_t host_ns; /* share of a round trip that wake-ups of processes may take */
	bool copies;      /* the device copies all bytes: UDP_EAGER_MAX is the eager limit */
};

struct erpc_transport {
	struct eng_transport transport; /* first */
	const struct erpc_transport_dev *cfg;
	struct dev *dev;
	struct util_list eps; /* erpc_transport_ep.link: polled endpoints */
	struct erpc_ep *only; /* the only one of them, or NULL */
	/* epoll over the endpoints' descriptors, timer_fd, and that of the device's events */
	int wait_fd;
	int timer_fd;
	uint64_t down_until_ns; /* the port is down: sessions end then; 0: it is up */
	struct util_tick tick;  /* clock of progress */
};

/** State of one endpoint. */
struct erpc_transport_ep {
	struct util_list link;
	struct erpc_transport *transport;
	struct erpc_ep *ep;
};

static inline struct erpc_transport *erpc_transport_of(struct eng_transport *transport)
{
	return (struct erpc_transport *)transport;
}

/** Returns the endpoint of an element of erpc_transport.eps. */
static inline struct erpc_ep *erpc_transport_ep(struct util_list *link)
{
	return UTIL_CONTAINER_OF(link, struct erpc_transport_ep, link)->ep;
}

/* Operations of eng_transport that do not depend on the device. */
int erpc_transport_open(struct eng_transport *eng, const struct erpc_transport_dev *cfg);
void erpc_transport_close(struct eng_transport *eng);
int erpc_transport_ep_open(struct eng_transport *eng, struct core_engine_ep *eep,
			   const struct sockaddr *addr, void **ep);
void erpc_transport_ep_close(struct eng_transport *eng, void *ep);
int erpc_transport_prepare(struct eng_transport *eng, struct core_engine_ep *eep, void *ep_state,
			   enum eng_size size, struct cm_params *params, struct eng_conn **conn);
void erpc_transport_aim(struct eng_conn *conn, const struct sockaddr *peer,
			struct cm_params *params);
int erpc_transport_establish(struct eng_conn *conn, const struct cm_params *peer);
int erpc_transport_attach(struct eng_conn *conn);
uint64_t erpc_transport_last_rx(const struct eng_conn *conn);
void erpc_transport_drain(struct eng_conn *conn);
void erpc_transport_end(struct eng_conn *conn);
void erpc_transport_stop(struct eng_conn *conn);
void erpc_transport_free(struct eng_conn *conn);
bool erpc_transport_poll(struct eng_transport *eng);
void erpc_transport_flush(struct eng_transport *eng);
void erpc_transport_progress(struct eng_transport *eng);
int erpc_transport_wait_fd(struct eng_transport *eng);
int erpc_transport_arm(struct eng_transport *eng);
void erpc_transport_disarm(struct eng_transport *eng);

/** Initialiser of a transport's operations: the shared ones, and those of the transport. */
#define ERPC_TRANSPORT_OPS(path_bit, transport_name, open_op, ...)                                 \
	{                                                                                          \
		.path = (path_bit), .name = (transport_name), .open = (open_op),                   \
		.close = erpc_transport_close, .ep_open = erpc_transport_ep_open,                  \
		.ep_close = erpc_transport_ep_close, .prepare = erpc_transport_prepare,            \
		.aim = erpc_transport_aim, .establish = erpc_transport_establish,                  \
		.attach = erpc_transport_attach, .last_rx_ns = erpc_transport_last_rx,             \
		.drain = erpc_transport_drain, .end = erpc_transport_end,                          \
		.stop = erpc_transport_stop, .free = erpc_transport_free,                          \
		.poll = erpc_transport_poll, .flush = erpc_transport_flush,                        \
		.progress = erpc_transport_progress, .wait_fd = erpc_transport_wait_fd,            \
		.arm = erpc_transport_arm, .disarm = erpc_transport_disarm, __VA_ARGS__            \
	}

#endif
