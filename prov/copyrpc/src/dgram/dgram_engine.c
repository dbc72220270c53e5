/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engine of datagram endpoints: see dgram_engine.h. */
#include "dgram/dgram_engine.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dgram/dgram_ep.h"
#include "dgram/dgram_outage.h"

int dgram_engine_watch(struct dgram_engine *engine, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(engine->base.wait_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int dgram_engine_open(const struct dgram_over *over, struct core_progress **out)
{
	struct dgram_engine *engine = calloc(1, sizeof(*engine));
	int ret;

	if (!engine)
		return -FI_ENOMEM;
	engine->over = over;
	engine->timer_fd = -1;
	util_list_init(&engine->eps);
	engine->base.wait_fd = epoll_create1(EPOLL_CLOEXEC);
	ret = engine->base.wait_fd < 0 ? -errno : 0;
	if (!ret && over->dev_ops)
		ret = dgram_outage_init(engine);
	if (ret) {
		dgram_engine_close(&engine->base);
		return ret;
	}
	*out = &engine->base;
	return 0;
}

void dgram_engine_close(struct core_progress *base)
{
	struct dgram_engine *engine = dgram_engine_of(base);

	dgram_outage_fini(engine);
	if (engine->base.wait_fd >= 0)
		close(engine->base.wait_fd);
	free(engine);
}

void dgram_engine_progress(struct core_progress *base)
{
	struct dgram_engine *engine = dgram_engine_of(base);
	struct util_list *it;

	for (it = engine->eps.next; it != &engine->eps; it = it->next)
		dgram_ep_progress(UTIL_CONTAINER_OF(it, struct dgram_ep, link));
}

void dgram_engine_disarm(struct core_progress *base)
{
	struct dgram_engine *engine = dgram_engine_of(base);
	struct util_list *it;

	for (it = engine->eps.next; it != &engine->eps; it = it->next)
		dgram_ep_disarm(UTIL_CONTAINER_OF(it, struct dgram_ep, link));
}

int dgram_engine_arm(struct core_progress *base)
{
	struct dgram_engine *engine = dgram_engine_of(base);
	struct util_list *it;
	int ret = 0;

	dgram_outage_read(engine);
	for (it = engine->eps.next; it != &engine->eps && !ret; it = it->next)
		ret = dgram_ep_arm(UTIL_CONTAINER_OF(it, struct dgram_ep, link));
	if (ret)
		dgram_engine_disarm(base);
	return ret;
}
