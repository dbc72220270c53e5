/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How do sessions become connections of an engine? engine/eng_lane.h over datagram ports.
 *
 * Each endpoint has a port of its own, at its own address. A port is polled from its first session
 * on. The time is asked once per poll (util/tick.h); who sleeps is woken by packets, or by a timer when something
 * is due without one (a time-out, a late answer).
 *
 * Threads: ports are opened, and sessions prepared and established, by the control thread; all else
 * happens under the domain's lock.
 * Shown by test/unit/erpc/lane/test_erpc_lane.c: two engines over UDP.
 */
#ifndef ERPC_LANE_H
#define ERPC_LANE_H

#include "dev/dgram.h"
#include "engine/eng_lane.h"
#include "erpc/lane/erpc_lanes.h"
#include "erpc/erpc_port.h"
#include "util/list.h"
#include "util/tick.h"

/** Which device. */
struct erpc_lane_dev {
	const struct dev_dgram_ops *dgram;
	const struct dev_ops *dev; /* NULL: there is nothing to open */
	uint32_t rx_cnt;
	uint32_t tx_cnt;
	/* Bytes per second, unless LINK_RATE says another; 0: nothing is paced. */
	double link_rate;
	uint64_t host_ns; /* of a round trip: what waking processes may take */
};

struct erpc_lane {
	struct eng_lane lane; /* first */
	const struct erpc_lane_dev *what;
	struct dev *dev;
	struct util_list ports; /* erpc_lane_port.link: that are polled */
	struct erpc_port *only; /* of exactly one; or NULL */
	int wait_fd;            /* epoll over theirs and timer_fd */
	int timer_fd;
	struct util_tick tick; /* whoever makes progress asks it */
};

/** An endpoint's. */
struct erpc_lane_port {
	struct util_list link;
	struct erpc_lane *lane;
	struct erpc_port *port;
};

/* The lane contract, but for what depends on the device. */
int erpc_lane_open(struct eng_lane *eng, const struct erpc_lane_dev *what);
void erpc_lane_close(struct eng_lane *eng);
int erpc_lane_ep_open(struct eng_lane *eng, struct core_engine_ep *eep, const struct sockaddr *addr,
		      void **port);
void erpc_lane_ep_close(struct eng_lane *eng, void *port);
int erpc_lane_prepare(struct eng_lane *eng, struct core_engine_ep *eep, struct cm_half *half,
		      struct eng_conn **conn);
void erpc_lane_aim(struct eng_conn *conn, const struct sockaddr *peer, struct cm_half *half);
int erpc_lane_establish(struct eng_conn *conn, const struct cm_half *peer);
int erpc_lane_attach(struct eng_conn *conn);
uint64_t erpc_lane_heard(const struct eng_conn *conn);
void erpc_lane_drain(struct eng_conn *conn);
void erpc_lane_end(struct eng_conn *conn);
void erpc_lane_stop(struct eng_conn *conn);
void erpc_lane_free(struct eng_conn *conn);
bool erpc_lane_poll(struct eng_lane *eng);
void erpc_lane_flush(struct eng_lane *eng);
void erpc_lane_progress(struct eng_lane *eng);
int erpc_lane_wait_fd(struct eng_lane *eng);
int erpc_lane_arm(struct eng_lane *eng);
void erpc_lane_disarm(struct eng_lane *eng);

/** Defines `const struct eng_lane_ops erpc_lane_<kind>` over a struct erpc_lane_dev. */
#define ERPC_LANE(kind, path_bit, probe_op, ...)                                                   \
	static const struct erpc_lane_dev erpc_lane_##kind##_dev = { __VA_ARGS__ };                \
	static int erpc_lane_##kind##_open(struct eng_lane *lane)                                  \
	{                                                                                          \
		return erpc_lane_open(lane, &erpc_lane_##kind##_dev);                              \
	}                                                                                          \
	const struct eng_lane_ops erpc_lane_##kind = {                                             \
		.path = (path_bit),                                                                \
		.name = #kind,                                                                     \
		.probe = (probe_op),                                                               \
		.open = erpc_lane_##kind##_open,                                                   \
		.close = erpc_lane_close,                                                          \
		.ep_open = erpc_lane_ep_open,                                                      \
		.ep_close = erpc_lane_ep_close,                                                    \
		.prepare = erpc_lane_prepare,                                                      \
		.aim = erpc_lane_aim,                                                              \
		.establish = erpc_lane_establish,                                                  \
		.attach = erpc_lane_attach,                                                        \
		.heard = erpc_lane_heard,                                                          \
		.drain = erpc_lane_drain,                                                          \
		.end = erpc_lane_end,                                                              \
		.stop = erpc_lane_stop,                                                            \
		.free = erpc_lane_free,                                                            \
		.poll = erpc_lane_poll,                                                            \
		.flush = erpc_lane_flush,                                                          \
		.progress = erpc_lane_progress,                                                    \
		.wait_fd = erpc_lane_wait_fd,                                                      \
		.arm = erpc_lane_arm,                                                              \
		.disarm = erpc_lane_disarm,                                                        \
	}

#endif
