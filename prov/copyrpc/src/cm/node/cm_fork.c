/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fork handlers for all nodes of the process: see cm_fork.h. */
#include "cm/node/cm_fork.h"

#include <pthread.h>

#include "cm/base/cm.h"
#include "cm/node/cm_closer.h"
#include "cm/node/cm_node.h"
#include "util/list.h"

/* Lock order: this lock, then the nodes' locks, then that of the closer. */
static pthread_mutex_t cm_fork_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t cm_fork_once = PTHREAD_ONCE_INIT;
static struct util_list cm_fork_nodes = { &cm_fork_nodes, &cm_fork_nodes };

static struct cm_node *cm_fork_node(struct util_list *it)
{
	return UTIL_CONTAINER_OF(it, struct cm_node, fork_link);
}

static void cm_fork_before(void)
{
	pthread_mutex_lock(&cm_fork_lock);
	for (struct util_list *it = cm_fork_nodes.next; it != &cm_fork_nodes; it = it->next)
		cm_node_lock(cm_fork_node(it));
	cm_closer_fork_before();
}

static void cm_fork_in_parent(void)
{
	cm_closer_fork_in_parent();
	for (struct util_list *it = cm_fork_nodes.next; it != &cm_fork_nodes; it = it->next)
		cm_node_unlock(cm_fork_node(it));
	pthread_mutex_unlock(&cm_fork_lock);
}

static void cm_fork_in_child(void)
{
	cm_closer_fork_in_child();
	for (struct util_list *it = cm_fork_nodes.next; it != &cm_fork_nodes; it = it->next)
		cm_node_become_inert(cm_fork_node(it));
	pthread_mutex_unlock(&cm_fork_lock);
}

/* The handlers stay registered: the library is never unloaded (-z nodelete). */
static void cm_fork_register(void)
{
	pthread_atfork(cm_fork_before, cm_fork_in_parent, cm_fork_in_child);
}

void cm_guard_fork(void)
{
	pthread_once(&cm_fork_once, cm_fork_register);
}

void cm_fork_add(struct cm_node *node)
{
	cm_guard_fork();
	pthread_mutex_lock(&cm_fork_lock);
	util_list_push_back(&cm_fork_nodes, &node->fork_link);
	pthread_mutex_unlock(&cm_fork_lock);
}

void cm_fork_remove(struct cm_node *node)
{
	pthread_mutex_lock(&cm_fork_lock);
	util_list_remove(&node->fork_link);
	pthread_mutex_unlock(&cm_fork_lock);
}
