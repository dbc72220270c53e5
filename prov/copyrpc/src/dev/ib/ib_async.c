/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events of a device (ib_async.h). */
#include "dev/ib/ib_async.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "dev/ib/ib_ud.h"
#include "util/bits.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

static const struct ib_async_row ib_async_rows[] = {
	[IBV_EVENT_CQ_ERR] = { IB_ASYNC_ALL, true,
			       "a completion queue overran or was lost; please report it" },
	[IBV_EVENT_QP_FATAL] = { IB_ASYNC_QP, true,
				 "the device failed a queue pair: see dmesg; please report it" },
	[IBV_EVENT_QP_REQ_ERR] = { IB_ASYNC_QP, true,
				   "the peer sent an unknown request: are both ends the "
				   "same version?" },
	[IBV_EVENT_QP_ACCESS_ERR] = { IB_ASYNC_QP, true,
				      "the peer accessed memory that is not (or no longer) "
				      "registered for it" },
	[IBV_EVENT_COMM_EST] = { IB_ASYNC_LOGGED, false, "a peer sent before its reply arrived" },
	[IBV_EVENT_SQ_DRAINED] = { IB_ASYNC_LOGGED, false, "a send queue is drained" },
	[IBV_EVENT_PATH_MIG] = { IB_ASYNC_LOGGED, false,
				 "a connection moved to its alternate path" },
	[IBV_EVENT_PATH_MIG_ERR] = { IB_ASYNC_LOGGED, true,
				     "a connection cannot move to its alternate path" },
	[IBV_EVENT_DEVICE_FATAL] = { IB_ASYNC_ALL, true,
				     "the device failed and completes nothing more: see dmesg" },
	[IBV_EVENT_PORT_ACTIVE] = { IB_ASYNC_PORT_UP, true, "the port is up again" },
	[IBV_EVENT_PORT_ERR] = { IB_ASYNC_PORT_DOWN, true,
				 "the port is down: look for the cable, the switch, ip link" },
	[IBV_EVENT_LID_CHANGE] = { IB_ASYNC_LID, true,
				   "the subnet manager gave the port another LID: connections end, "
				   "and are made again with it" },
	[IBV_EVENT_PKEY_CHANGE] = { IB_ASYNC_LOGGED, true, "the partition table changed" },
	[IBV_EVENT_SM_CHANGE] = { IB_ASYNC_LOGGED, false, "the subnet manager changed" },
	[IBV_EVENT_SRQ_ERR] = { IB_ASYNC_ALL, true,
				"the shared receive queue failed; please report it" },
	[IBV_EVENT_SRQ_LIMIT_REACHED] = { IB_ASYNC_LOGGED, false, "few receives are posted" },
	[IBV_EVENT_QP_LAST_WQE_REACHED] = { IB_ASYNC_LOGGED, false,
					    "a failed queue pair takes no more receives" },
	[IBV_EVENT_CLIENT_REREGISTER] = { IB_ASYNC_LOGGED, false, "the subnet manager restarted" },
	[IBV_EVENT_GID_CHANGE] = { IB_ASYNC_LOGGED, true,
				   "an address of the port changed: new connections use one that "
				   "it has" },
};

const struct ib_async_row *ib_async_meaning(enum ibv_event_type type)
{
	static const struct ib_async_row unknown = { IB_ASYNC_LOGGED, false, "unknown event" };

	if ((unsigned)type >= sizeof(ib_async_rows) / sizeof(ib_async_rows[0]) ||
	    !ib_async_rows[type].text)
		return &unknown;
	return &ib_async_rows[type];
}

static int ib_async_watch(struct ib_async *async, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(async->wait_fd, EPOLL_CTL_ADD, fd, &ev);
}

int ib_async_init(struct ib_async *async, struct ib_dev *dev, int chan_fd)
{
	int fd = dev->ctx->async_fd, flags = fcntl(fd, F_GETFL);

	async->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	async->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	async->dev = dev;
	if (async->wait_fd >= 0 && async->timer_fd >= 0 && flags >= 0 &&
	    !fcntl(fd, F_SETFL, flags | O_NONBLOCK) && !ib_async_watch(async, chan_fd) &&
	    !ib_async_watch(async, fd) && !ib_async_watch(async, async->timer_fd))
		return 0;
	UTIL_WARN(DOMAIN, "%s: cannot wait for its events: %s\n", ib_dev_name(dev),
		  strerror(errno));
	return -FI_EIO;
}

void ib_async_fini(struct ib_async *async)
{
	if (!async->dev)
		return;
	if (async->timer_fd >= 0)
		close(async->timer_fd);
	if (async->wait_fd >= 0)
		close(async->wait_fd);
	async->dev = NULL;
}

static uint64_t ib_async_grace_ns(void)
{
	uint64_t ms = (uint64_t)util_params.peer_timeout_ms;

	return (ms < IB_PORT_DOWN_MS ? ms : IB_PORT_DOWN_MS) * UTIL_NS_PER_MS;
}

/* Sets the end of a port's grace period and wakes a sleeper then; 0: none. */
static void ib_async_set_deadline(struct ib_async *async, uint64_t ns)
{
	uint64_t left = ns ? ib_async_grace_ns() : 0;
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(left / UTIL_NS_PER_S),
					       .tv_nsec = (long)(left % UTIL_NS_PER_S) } };

	async->deadline_ns = ns;
	timerfd_settime(async->timer_fd, 0, &at, NULL);
}

static void ib_async_port(struct ib_async *async, bool is_down)
{
	if (!is_down) {
		ib_async_set_deadline(async, 0);
		async->is_down = false;
	} else if (!async->deadline_ns && !async->is_down) {
		ib_async_set_deadline(async, util_clock_ns() + ib_async_grace_ns());
	}
}

static bool ib_async_is_ours(const struct ib_async *async, const struct ibv_async_event *got)
{
	switch (ib_async_meaning(got->event_type)->what) {
	case IB_ASYNC_PORT_DOWN:
	case IB_ASYNC_PORT_UP:
	case IB_ASYNC_LID: return got->element.port_num == async->dev->port;
	default: return true;
	}
}

/*
 * Returns what the event means now: a port with another LID is reached by no peer that knows the
 * old one, and its device has to be opened again.
 */
static enum ib_async_what ib_async_effect(const struct ib_async *async, enum ib_async_what what)
{
	if (what != IB_ASYNC_LID && what != IB_ASYNC_PORT_UP)
		return what;
	return ib_dev_has_moved(async->dev) ? IB_ASYNC_ALL : what;
}

/* Logs the event. Returns true if it ends links. */
static bool ib_async_handle(struct ib_async *async, const struct ibv_async_event *got,
			    struct ib_async_event *event)
{
	const struct ib_async_row *row = ib_async_meaning(got->event_type);
	const char *name = ibv_event_type_str(got->event_type);

	if (!ib_async_is_ours(async, got))
		return false;
	if (row->is_warning)
		UTIL_WARN(EP_CTRL, "%s: %s: %s\n", ib_dev_name(async->dev), name, row->text);
	else
		UTIL_INFO(EP_CTRL, "%s: %s: %s\n", ib_dev_name(async->dev), name, row->text);
	*event = (struct ib_async_event){ .what = ib_async_effect(async, row->what),
					  .err = -FI_EIO };
	async->has_failed |= event->what == IB_ASYNC_ALL;
	if (row->what == IB_ASYNC_QP)
		event->qpn = got->element.qp->qp_num;
	if (row->what == IB_ASYNC_PORT_DOWN || row->what == IB_ASYNC_PORT_UP)
		ib_async_port(async, row->what == IB_ASYNC_PORT_DOWN);
	return event->what == IB_ASYNC_QP || event->what == IB_ASYNC_ALL;
}

static bool ib_async_is_late(struct ib_async *async, struct ib_async_event *event)
{
	if (UTIL_LIKELY(!async->deadline_ns) || util_clock_ns() < async->deadline_ns)
		return false;
	ib_async_set_deadline(async, 0);
	async->is_down = true;
	UTIL_WARN(EP_CTRL, "%s: the port stays down: ending its connections\n",
		  ib_dev_name(async->dev));
	*event = (struct ib_async_event){ .what = IB_ASYNC_ALL, .err = -FI_ENETDOWN };
	return true;
}

bool ib_async_next(struct ib_async *async, struct ib_async_event *event)
{
	struct ibv_async_event got;
	bool ends;

	if (!async->dev)
		return false;
	while (!ibv_get_async_event(async->dev->ctx, &got)) {
		ends = ib_async_handle(async, &got, event);
		ibv_ack_async_event(&got);
		if (ends)
			return true;
	}
	return ib_async_is_late(async, event);
}

static void ib_async_fail_all(const struct ib_qpns *links, struct util_list *uds,
			      ib_async_fail_fn *fail, int err)
{
	struct util_list *it, *tmp;
	uint32_t qpn;
	void *link;

	for (qpn = 0; (link = ib_qpns_next(links, &qpn)); qpn++)
		fail(link, err);
	if (err == -FI_ENETDOWN) /* datagrams are then lost, and sent again */
		return;
	UTIL_LIST_FOREACH_SAFE (it, tmp, uds)
		ib_ud_fail(UTIL_CONTAINER_OF(it, struct ib_ud, in_dev), err);
}

static void ib_async_fail_one(const struct ib_qpns *links, struct util_list *uds,
			      ib_async_fail_fn *fail, const struct ib_async_event *event)
{
	void *link = ib_qpns_get(links, event->qpn);
	struct util_list *it, *tmp;

	if (link)
		fail(link, event->err);
	UTIL_LIST_FOREACH_SAFE (it, tmp, uds) {
		struct ib_ud *ud = UTIL_CONTAINER_OF(it, struct ib_ud, in_dev);

		if (ud->qp->qp_num == event->qpn)
			ib_ud_fail(ud, event->err);
	}
}

void ib_async_end(const struct ib_async_event *event, const struct ib_qpns *links,
		  struct util_list *uds, ib_async_fail_fn *fail)
{
	if (event->what == IB_ASYNC_ALL)
		ib_async_fail_all(links, uds, fail, event->err);
	else
		ib_async_fail_one(links, uds, fail, event);
}

void ib_async_run(struct ib_async *async, const struct ib_qpns *links, struct util_list *uds,
		  ib_async_fail_fn *fail)
{
	struct ib_async_event event;

	while (ib_async_next(async, &event))
		ib_async_end(&event, links, uds, fail);
}
