/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control thread: start, loop, stop, and its services to other threads. See cm_node.h. */
#include "cm/node/cm_node.h"

#include <assert.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cm/node/cm_fork.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/param.h"
#include "util/sig.h"

#define CM_NODE_EVENTS    32
#define CM_NODE_STACK     (256u << 10) /* up-calls run on it; includes thread-local storage */
#define CM_NODE_TIMEOUT_S 30
#define CM_NODE_TICK_MS   1000 /* longest period of ticks: how late an engine sees its devices */

void cm_node_lock(struct cm_node *node)
{
	int ret = pthread_mutex_lock(&node->lock);

	/* EDEADLK: an up-call has called cm. */
	assert(!ret);
	(void)ret;
}

void cm_node_unlock(struct cm_node *node)
{
	pthread_mutex_unlock(&node->lock);
}

void cm_src_init(struct cm_src *src, void (*ready)(struct cm_src *src, uint32_t events))
{
	src->fd = -1;
	src->ready = ready;
	util_list_init(&src->link);
}

int cm_src_open(struct cm_node *node, struct cm_src *src, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = src };

	if (epoll_ctl(node->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	src->fd = fd;
	util_list_push_back(&node->srcs, &src->link);
	return 0;
}

void cm_src_pause(struct cm_node *node, struct cm_src *src)
{
	epoll_ctl(node->epoll_fd, EPOLL_CTL_DEL, src->fd, NULL);
}

void cm_src_resume(struct cm_node *node, struct cm_src *src)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = src };

	epoll_ctl(node->epoll_fd, EPOLL_CTL_ADD, src->fd, &ev);
}

int cm_src_release(struct cm_node *node, struct cm_src *src)
{
	int fd = src->fd;

	if (fd < 0)
		return -1;
	epoll_ctl(node->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	util_list_remove(&src->link);
	src->fd = -1;
	return fd;
}

void cm_src_close(struct cm_node *node, struct cm_src *src)
{
	int fd = cm_src_release(node, src);

	if (fd < 0)
		return;
	/* Ends the connection even if a copy of the descriptor exists. */
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

static void cm_node_wake(struct cm_node *node)
{
	uint64_t one = 1;

	if (node->is_woken || node->is_inert)
		return;
	node->is_woken = true;
	while (write(node->wake.fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void cm_node_on_wake(struct cm_src *src, uint32_t events)
{
	struct cm_node *node = UTIL_CONTAINER_OF(src, struct cm_node, wake);
	uint64_t cnt;

	node->is_woken = false;
	while (read(src->fd, &cnt, sizeof(cnt)) < 0 && errno == EINTR)
		;
}

void cm_node_arm(struct cm_node *node, struct cm_timer *timer, uint64_t at_ns)
{
	cm_timer_arm(&node->timers, timer, at_ns);
	if (at_ns < node->sleep_ns)
		cm_node_wake(node);
}

void cm_src_back_off(struct cm_node *node, struct cm_src *src, struct cm_timer *timer,
		     uint32_t *pause_ms, int err)
{
	uint32_t ms = *pause_ms ? 2 * *pause_ms : CM_PAUSE_MS;

	if (!*pause_ms)
		UTIL_WARN_SELDOM(EP_CTRL, "cannot accept a connection (%s): raise `ulimit -n`\n",
				 fi_strerror(-err));
	*pause_ms = ms < CM_PAUSE_MAX ? ms : CM_PAUSE_MAX;
	cm_src_pause(node, src);
	cm_node_arm(node, timer, util_clock_ns() + *pause_ms * UTIL_NS_PER_MS);
}

void cm_node_disarm(struct cm_node *node, struct cm_timer *timer)
{
	cm_timer_cancel(&node->timers, timer);
}

void cm_node_defer_free(struct cm_node *node, struct cm_zombie *zombie, void *mem)
{
	zombie->mem = mem;
	util_list_push_back(&node->zombies, &zombie->link);
	cm_node_wake(node);
}

void cm_node_wait_pass(struct cm_node *node)
{
	uint64_t before = node->pass_cnt;

	if (node->is_inert || node->is_halted)
		return;
	assert(!pthread_equal(pthread_self(), node->thread));
	cm_node_wake(node);
	while (node->pass_cnt == before)
		pthread_cond_wait(&node->passed, &node->lock);
}

/* Frees deferred memory. No event is being handled, so nothing refers to it. */
static void cm_node_pass(struct cm_node *node)
{
	struct util_list *first;

	while ((first = util_list_pop(&node->zombies)))
		free(UTIL_CONTAINER_OF(first, struct cm_zombie, link)->mem);
	node->pass_cnt++;
	pthread_cond_broadcast(&node->passed);
}

/* Returns the milliseconds to the next deadline, rounded up, or -1 for none; sets sleep_ns. */
static int cm_node_plan_sleep(struct cm_node *node)
{
	uint64_t now = util_clock_ns(), left, ms;

	if (!node->timers.root) {
		node->sleep_ns = UINT64_MAX;
		return -1;
	}
	node->sleep_ns = node->timers.root->at_ns;
	left = node->sleep_ns > now ? node->sleep_ns - now : 0;
	ms = (left + UTIL_NS_PER_MS - 1) / UTIL_NS_PER_MS;
	return ms < 3600000 ? (int)ms : 3600000;
}

static void cm_node_turn(struct cm_node *node)
{
	struct epoll_event ev[CM_NODE_EVENTS];
	int timeout_ms = cm_node_plan_sleep(node);
	int cnt;

	cm_node_unlock(node);
	cnt = epoll_wait(node->epoll_fd, ev, CM_NODE_EVENTS, timeout_ms);
	cm_node_lock(node);
	node->sleep_ns = 0;
	for (int i = 0; i < cnt; i++) {
		struct cm_src *src = ev[i].data.ptr;

		if (src->fd >= 0)
			src->ready(src, ev[i].events);
	}
	cm_timers_run(&node->timers, util_clock_ns());
	cm_node_pass(node);
}

static void *cm_node_main(void *arg)
{
	struct cm_node *node = arg;

	pthread_setname_np(pthread_self(), "copyrpc-cm");
	cm_node_lock(node);
	while (!node->is_stopping)
		cm_node_turn(node);
	cm_node_unlock(node);
	return NULL;
}

static int cm_node_start_thread(struct cm_node *node)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int ret;

	util_sig_others(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CM_NODE_STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&node->thread, &attr, cm_node_main, node);
	if (ret == EINVAL) /* thread-local storage exceeds the stack size */
		ret = pthread_create(&node->thread, NULL, cm_node_main, node);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -ret;
}

static int cm_node_open_fds(struct cm_node *node)
{
	int fd, ret;

	cm_src_init(&node->wake, cm_node_on_wake);
	node->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (node->epoll_fd < 0)
		return -errno;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0) {
		ret = -errno;
		goto err_close_epoll;
	}
	ret = cm_src_open(node, &node->wake, fd);
	if (!ret)
		return 0;
	close(fd);
err_close_epoll:
	close(node->epoll_fd);
	return ret;
}

static void cm_node_init_locks(struct cm_node *node)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&node->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_cond_init(&node->passed, NULL);
}

void cm_node_become_inert(struct cm_node *node)
{
	struct util_list *first;

	/* The parent shares the epoll set and connections: only close the copies. */
	while ((first = util_list_pop(&node->srcs))) {
		struct cm_src *src = UTIL_CONTAINER_OF(first, struct cm_src, link);

		close(src->fd);
		src->fd = -1;
	}
	close(node->epoll_fd);
	node->epoll_fd = -1;
	node->is_inert = true;
	cm_node_init_locks(node);
}

static void cm_node_init(struct cm_node *node, const struct cm_cfg *cfg)
{
	cm_node_init_locks(node);
	util_list_init(&node->srcs);
	util_list_init(&node->zombies);
	util_list_init(&node->fork_link);
	node->cfg = *cfg;
	node->cfg.job_key = NULL;
	cm_mac_key_set(&node->key, cfg->job_key);
	node->peer_timeout_ns = CM_NODE_TIMEOUT_S * UTIL_NS_PER_S;
	if (cfg->peer_timeout_ms > 0)
		node->peer_timeout_ns = (uint64_t)cfg->peer_timeout_ms * UTIL_NS_PER_MS;
}

static void cm_node_fini(struct cm_node *node)
{
	cm_mac_key_wipe(&node->key);
	pthread_cond_destroy(&node->passed);
	pthread_mutex_destroy(&node->lock);
	free(node);
}

int cm_node_open_cfg(const struct cm_cfg *cfg, struct cm_node **out)
{
	struct cm_node *node;
	int ret = cm_mac_init();

	if (ret)
		return ret;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -FI_ENOMEM;
	cm_node_init(node, cfg);
	ret = cm_node_open_fds(node);
	if (ret)
		goto err_free;
	ret = cm_node_start_thread(node);
	if (ret)
		goto err_close_fds;
	cm_fork_add(node);
	*out = node;
	return 0;

err_close_fds:
	close(node->wake.fd);
	close(node->epoll_fd);
err_free:
	UTIL_WARN(FABRIC, "no control thread: %s; look at `ulimit -n` and `ulimit -u`\n",
		  fi_strerror(-ret));
	cm_node_fini(node);
	return ret;
}

/* Returns the shortest of the periods for which users of ticks are set. */
static int cm_node_tick_ms(void)
{
	int watch = util_param_watch_ms();
	int moves = util_params.rc_interval_ms;
	int tick = CM_NODE_TICK_MS;

	tick = watch && watch < tick ? watch : tick;
	return moves && moves < tick ? moves : tick;
}

int cm_node_open(struct cm_node **node)
{
	struct cm_cfg cfg = {
		.job_key = util_params.job_key,
		.peer_timeout_ms = util_params.peer_timeout_ms,
		.tick_ms = cm_node_tick_ms(),
	};

	return cm_node_open_cfg(&cfg, node);
}

void cm_node_halt(struct cm_node *node)
{
	if (node->is_inert || node->is_halted)
		return;
	cm_node_lock(node);
	node->is_stopping = true;
	cm_node_wake(node);
	cm_node_unlock(node);
	pthread_join(node->thread, NULL);
	node->is_halted = true;
}

void cm_node_close(struct cm_node *node)
{
	cm_fork_remove(node);
	cm_node_lock(node);
	assert(!node->cep_cnt);
	cm_node_unlock(node);
	cm_node_halt(node);
	if (!node->is_inert) {
		close(node->wake.fd);
		close(node->epoll_fd);
	}
	cm_node_pass(node);
	cm_node_fini(node);
}
