/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The second device of a transport: open, close, failure, change of places (ring_rail.h). */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ring/ring_direct.h"
#include "ring/ring_rail.h"
#include "ring/ring_takeover.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"

/* Between attempts to open a device: at first, and after many in vain */
#define RING_RAILS_PAUSE_NS     (5 * UTIL_NS_PER_S)
#define RING_RAILS_PAUSE_MAX_NS (80 * UTIL_NS_PER_S)

static int ring_rails_add_fd(struct ring_rails *rails, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(rails->wait_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void ring_rails_watch(struct ring_transport *transport, bool on)
{
	int fd = transport->dev_ops->wait_fd(transport->dev);

	if (!on)
		epoll_ctl(transport->rails->wait_fd, EPOLL_CTL_DEL, fd, NULL);
	else if (ring_rails_add_fd(transport->rails, fd))
		UTIL_WARN(DOMAIN, "device %s cannot be waited for: %s\n", transport->dev_ops->name,
			  strerror(errno));
}

/** Opens the second device. The lock is held, or no connection exists. */
static void ring_rails_open_second(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;
	const struct dev_ops *ops = transport->dev_ops;
	uint64_t now_ns = util_clock_ns();

	if (rails->dev || !transport->dev || now_ns < rails->open_ns)
		return;
	rails->open_ns = now_ns + rails->pause_ns;
	if (rails->pause_ns < RING_RAILS_PAUSE_MAX_NS)
		rails->pause_ns *= 2;
	if (ops->open_beside(transport->dev, &rails->dev)) {
		rails->dev = NULL;
		return;
	}
	rails->is_out = ring_rails_add_fd(rails, ops->wait_fd(rails->dev)) != 0;
	if (rails->is_out) {
		ops->close(rails->dev);
		rails->dev = NULL;
		return;
	}
	rails->pause_ns = RING_RAILS_PAUSE_NS;
	rails->open_ns = now_ns + rails->pause_ns;
}

static void ring_rails_close_second(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;
	const struct dev_ops *ops = transport->dev_ops;

	if (!rails->dev)
		return;
	epoll_ctl(rails->wait_fd, EPOLL_CTL_DEL, ops->wait_fd(rails->dev), NULL);
	ops->close(rails->dev);
	rails->dev = NULL;
}

int ring_rails_open(struct ring_transport *transport)
{
	struct ring_rails *rails;
	int err;

	if (util_params.rails < 2 || !transport->dev_ops->open_beside)
		return 0;
	rails = calloc(1, sizeof(*rails));
	if (!rails)
		return -FI_ENOMEM;
	rails->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rails->wait_fd < 0) {
		err = errno;
		free(rails);
		return -err;
	}
	pthread_mutex_init(&rails->lock, NULL);
	util_list_init(&rails->waiting);
	util_list_init(&rails->taking);
	util_list_init(&rails->parked);
	rails->pause_ns = RING_RAILS_PAUSE_NS;
	transport->rails = rails;
	ring_rails_watch(transport, true);
	ring_rails_open_second(transport);
	if (!rails->dev)
		UTIL_WARN(DOMAIN,
			  "FI_COPYRPC_RAILS=%d: there is one device with an active port: "
			  "a second one is looked for while this process runs\n",
			  util_params.rails);
	return 0;
}

void ring_rails_add_link(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;

	if (!rails)
		return;
	pthread_mutex_lock(&rails->lock);
	rails->first_cnt++;
	pthread_mutex_unlock(&rails->lock);
}

bool ring_rails_is_unused(struct eng_transport *eng)
{
	struct ring_transport *transport = ring_transport_of(eng);
	struct ring_rails *rails = transport->rails;
	bool ret;

	pthread_mutex_lock(&rails->lock);
	ret = !rails->first_cnt && !(rails->user_cnt && rails->is_out);
	pthread_mutex_unlock(&rails->lock);
	return ret;
}

void ring_rails_close(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;

	if (!rails)
		return;
	ring_rails_close_second(transport);
	close(rails->wait_fd);
	pthread_mutex_destroy(&rails->lock);
	free(rails);
	transport->rails = NULL;
}

/** Looks at the second device, and opens it again if it has failed and nothing is left on it. */
static int ring_rails_mend(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;
	int ret = -FI_ENODEV;

	pthread_mutex_lock(&rails->lock);
	if (rails->dev)
		ret = transport->dev_ops->health(rails->dev);
	rails->is_out = ret != 0;
	if (ret == -FI_EIO && !rails->user_cnt)
		ring_rails_close_second(transport);
	ring_rails_open_second(transport);
	pthread_mutex_unlock(&rails->lock);
	return rails->is_out ? -FI_ENETDOWN : 0;
}

int ring_rails_health(struct ring_transport *transport)
{
	int first = transport->dev_ops->health(transport->dev);
	int second = ring_rails_mend(transport);

	return first && !second ? -FI_EIO : first;
}

bool ring_rails_swap(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;
	struct dev *dev = transport->dev;
	uint32_t links;

	if (!rails || !rails->dev || transport->dev_ops->health(rails->dev))
		return false;
	UTIL_WARN(EP_CTRL, "a device is out: connections go over the other one\n");
	if (dev) {
		ring_direct_regs_end(transport);
		ring_bounce_fini(&transport->bounce, transport->dev_ops, dev);
	}
	pthread_mutex_lock(&rails->lock);
	transport->dev = rails->dev;
	rails->dev = dev;
	links = rails->user_cnt;
	rails->user_cnt = rails->first_cnt;
	rails->first_cnt = links;
	rails->is_out = true;
	pthread_mutex_unlock(&rails->lock);
	ring_direct_regs_renew(transport);
	return true;
}

int ring_rails_open_first(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;

	/* Both are out: what has failed has to be opened again, unless links are left on it. */
	if (rails && rails->dev && !rails->user_cnt &&
	    transport->dev_ops->health(rails->dev) == -FI_EIO) {
		pthread_mutex_lock(&rails->lock);
		ring_rails_close_second(transport);
		pthread_mutex_unlock(&rails->lock);
	}
	if (!rails || !rails->dev)
		return transport->dev_ops->open(&transport->dev);
	return transport->dev_ops->open_beside(rails->dev, &transport->dev);
}

int ring_rails_arm(struct ring_transport *transport)
{
	struct ring_rails *rails = transport->rails;

	if (!util_list_is_empty(&rails->waiting) || ring_takeover_is_due(rails))
		return -FI_EAGAIN;
	return rails->dev ? transport->dev_ops->arm(rails->dev) : 0;
}
