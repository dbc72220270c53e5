/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls between nodes, as a daemon or a client with connections of its own makes them. Two
 * implementations: kv_net_rpc.c (copyrpc's calls over libfabric) and kv_net_mpi.c (MPI messages).
 *
 * A net is used by one thread. Targets are the endpoints of other nodes, numbered by the caller of
 * kv_net_connect. Every accepted call ends with exactly one kv_net_end, whose status is not 0 if
 * the target does not respond.
 *
 * Functions return 0 or a count, or a negative errno.
 */
#ifndef KV_NET_H
#define KV_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KV_NAME_MAX 64u

struct kv_net;

/** Address of an endpoint, for other nodes. */
struct kv_name {
	uint32_t len;
	uint8_t bytes[KV_NAME_MAX];
};

/** Request from another node. May be copied. */
struct kv_net_request {
	const void *data; /* valid until the reply */
	size_t len;
	uint64_t own[6]; /* the implementation's */
};

/** End of a call. */
struct kv_net_end {
	void *context;
	const void *data; /* response, valid until kv_net_ops.release */
	size_t len;
	int status; /* 0 or a negative errno */
	uint64_t own;
};

struct kv_net_ops {
	/*
	 * Calls `target`. `buf` may be reused on return. May wait for flush. Returns 0, -EAGAIN
	 * without room towards this target, or the error of the connection.
	 */
	int (*call)(struct kv_net *net, uint32_t target, const void *buf, size_t len,
		    void *context);
	int (*poll)(struct kv_net *net, struct kv_net_end *ends, int max);
	/* Frees the response of an end whose status is 0. */
	void (*release)(struct kv_net *net, const struct kv_net_end *end);
	int (*take)(struct kv_net *net, struct kv_net_request *requests, int max);
	/* Replies once. The caller may have gone: then the response is dropped. */
	void (*reply)(struct kv_net *net, const struct kv_net_request *request, const void *buf,
		      size_t len);
	/* Sends the calls and replies that wait. */
	void (*flush)(struct kv_net *net);
	/*
	 * Prepares for sleep on *fd, which becomes readable when there is something to poll or
	 * take; *fd is -1 if there is no such descriptor. Returns 0, or -EAGAIN if there is
	 * something now.
	 */
	int (*arm)(struct kv_net *net, int *fd);
	int (*connect)(struct kv_net *net, const struct kv_name *names, uint32_t count);
	void (*close)(struct kv_net *net);
};

struct kv_net {
	const struct kv_net_ops *ops;
	struct kv_name name;
	uint32_t self; /* the target that stands for this node itself, if any */
};

/**
 * Opens an endpoint for requests of up to `request_max` bytes and responses of up to
 * `response_max`. Prints the reason on failure.
 */
int kv_net_open_rpc(struct kv_net **net, size_t request_max, size_t response_max);

/** Opens MPI messages to all ranks as targets; the process has MPI_THREAD_MULTIPLE. */
int kv_net_open_mpi(struct kv_net **net, size_t request_max, size_t response_max);

#endif
