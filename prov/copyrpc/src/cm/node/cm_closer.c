/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Closes descriptors whose release may wait: see cm_closer.h. */
#include "cm/node/cm_closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/sig.h"

#define CM_CLOSER_STACK (256u << 10) /* includes thread-local storage */

static struct {
	pthread_mutex_t lock;
	bool is_running; /* the thread closes, or will look for more */
	unsigned cnt;
	int fds[CM_CLOSER_MAX + CM_CLOSER_SPARE]; /* waiting for the thread */
} cm_closer = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *cm_closer_main(void *arg)
{
	pthread_setname_np(pthread_self(), "copyrpc-close");
	pthread_mutex_lock(&cm_closer.lock);
	while (cm_closer.cnt) {
		int fd = cm_closer.fds[--cm_closer.cnt];

		pthread_mutex_unlock(&cm_closer.lock);
		close(fd);
		pthread_mutex_lock(&cm_closer.lock);
	}
	cm_closer.is_running = false;
	pthread_mutex_unlock(&cm_closer.lock);
	return arg;
}

/* Creates the thread; stack_size 0: the default. Returns 0 or a positive error. */
static int cm_closer_create(size_t stack_size)
{
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack_size)
		pthread_attr_setstacksize(&attr, stack_size);
	ret = pthread_create(&thread, &attr, cm_closer_main, NULL);
	pthread_attr_destroy(&attr);
	return ret;
}

/* Returns whether there is a thread now. */
static bool cm_closer_spawn(void)
{
	sigset_t all, old;
	int ret;

	util_sig_others(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = cm_closer_create(CM_CLOSER_STACK);
	if (ret == EINVAL) /* thread-local storage exceeds the stack size */
		ret = cm_closer_create(0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !ret;
}

/* Starts the thread if there is work and none runs. Without one the next call tries again. */
static void cm_closer_start(void)
{
	if (cm_closer.cnt && !cm_closer.is_running)
		cm_closer.is_running = cm_closer_spawn();
}

bool cm_closer_has_room(void)
{
	bool has_room;

	pthread_mutex_lock(&cm_closer.lock);
	cm_closer_start();
	has_room = cm_closer.cnt < CM_CLOSER_MAX;
	pthread_mutex_unlock(&cm_closer.lock);
	return has_room;
}

void cm_closer_close(int fd)
{
	shutdown(fd, SHUT_RDWR);
	pthread_mutex_lock(&cm_closer.lock);
	if (cm_closer.cnt < CM_CLOSER_MAX + CM_CLOSER_SPARE)
		cm_closer.fds[cm_closer.cnt++] = fd;
	cm_closer_start();
	pthread_mutex_unlock(&cm_closer.lock);
}

void cm_closer_fork_before(void)
{
	pthread_mutex_lock(&cm_closer.lock);
}

void cm_closer_fork_in_parent(void)
{
	pthread_mutex_unlock(&cm_closer.lock);
}

/* Closing the copies could wait here: the child does that when it closes one of its own. */
void cm_closer_fork_in_child(void)
{
	cm_closer.is_running = false;
	pthread_mutex_unlock(&cm_closer.lock);
}
