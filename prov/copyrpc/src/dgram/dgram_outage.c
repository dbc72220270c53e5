/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Outages of the device: see dgram_outage.h. */
#include "dgram/dgram_outage.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "dgram/dgram_ep.h"
#include "util/clock.h"
#include "util/log.h"

static int dgram_outage_open(struct dgram_engine *engine)
{
	const struct dev_ops *dev_ops = engine->over->dev_ops;
	int ret = dev_ops->open(&engine->dev);

	if (ret) {
		engine->dev = NULL;
		return ret;
	}
	ret = dgram_engine_watch(engine, dev_ops->wait_fd(engine->dev));
	if (ret) {
		dev_ops->close(engine->dev);
		engine->dev = NULL;
	}
	return ret;
}

int dgram_outage_init(struct dgram_engine *engine)
{
	int ret;

	engine->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (engine->timer_fd < 0)
		return -errno;
	ret = dgram_engine_watch(engine, engine->timer_fd);
	return ret ? ret : dgram_outage_open(engine);
}

void dgram_outage_fini(struct dgram_engine *engine)
{
	if (engine->dev)
		engine->over->dev_ops->close(engine->dev);
	if (engine->timer_fd >= 0)
		close(engine->timer_fd);
}

void dgram_outage_read(struct dgram_engine *engine)
{
	if (engine->dev && engine->over->dev_ops)
		engine->over->dev_ops->health(engine->dev);
}

/* Lets the timer expire again and again, or never (0). */
static void dgram_outage_set_timer(struct dgram_engine *engine, uint64_t ms)
{
	struct timespec time = { .tv_sec = (time_t)(ms / 1000),
				 .tv_nsec = (long)(ms % 1000 * UTIL_NS_PER_MS) };
	struct itimerspec at = { .it_value = time, .it_interval = time };

	timerfd_settime(engine->timer_fd, 0, &at, NULL);
}

void dgram_outage_begin(struct dgram_engine *engine)
{
	if (engine->timer_fd >= 0)
		dgram_outage_set_timer(engine, DGRAM_OUTAGE_MS);
}

static bool dgram_outage_is_due(struct dgram_engine *engine)
{
	uint64_t cnt;

	return engine->timer_fd >= 0 && read(engine->timer_fd, &cnt, sizeof(cnt)) == sizeof(cnt);
}

/* Closes the device, with all that endpoints have on it. */
static void dgram_outage_close(struct dgram_engine *engine)
{
	struct util_list *it;

	for (it = engine->eps.next; it != &engine->eps; it = it->next) {
		struct dgram_ep *ep = UTIL_CONTAINER_OF(it, struct dgram_ep, link);

		dgram_ep_fail(ep, -FI_EIO);
		dgram_ep_unmake(ep);
	}
	UTIL_WARN(
		EP_CTRL,
		"device %s is out: datagram endpoints send and receive nothing until it is back\n",
		engine->over->name);
	engine->over->dev_ops->close(engine->dev);
	engine->dev = NULL;
}

/* Returns true if all endpoints work. */
static bool dgram_outage_remake_all(struct dgram_engine *engine)
{
	bool all = true;
	struct util_list *it;

	for (it = engine->eps.next; it != &engine->eps; it = it->next) {
		struct dgram_ep *ep = UTIL_CONTAINER_OF(it, struct dgram_ep, link);

		if (ep->err && dgram_ep_remake(ep))
			all = false;
	}
	return all;
}

/* Opens the device anew if it has failed. Returns 0, or -FI_E* while it is away. */
static int dgram_outage_mend(struct dgram_engine *engine)
{
	if (engine->dev && engine->over->dev_ops->health(engine->dev) == -FI_EIO)
		dgram_outage_close(engine);
	return engine->dev ? 0 : dgram_outage_open(engine);
}

int dgram_outage_enter(struct dgram_engine *engine)
{
	return engine->over->dev_ops ? dgram_outage_mend(engine) : 0;
}

void dgram_outage_look(struct dgram_engine *engine)
{
	if (!dgram_outage_is_due(engine) || dgram_outage_mend(engine) ||
	    !dgram_outage_remake_all(engine))
		return;
	dgram_outage_set_timer(engine, 0);
	UTIL_WARN(EP_CTRL,
		  "datagram endpoints of device %s work again, with new addresses (fi_getname)\n",
		  engine->over->name);
}
