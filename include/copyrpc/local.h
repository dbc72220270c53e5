/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Local channels: many clients of one host share one server, which owns the connections to others.
 * Library: copyrpc-local (pkg-config). Manual page: copyrpc_local(7). Needs neither libfabric nor
 * MPI.
 *
 *	client					server
 *	crl_client_open(&c, "kv", 1000)		crl_server_open(&s, CRL_IPC, "kv", NULL)
 *	crl_client_call(c, request, ...)
 *						n = crl_server_take(s, requests, 64)
 *						crl_server_reply(s, requests[i].handle, ...)
 *	n = crl_client_poll(c, responses, 64)
 *
 * A call carries a byte string and is replied to with one, now or later, in any order. Every
 * accepted call ends with exactly one response, or with an error when the server is gone. No
 * function blocks except crl_client_open, the ..._wait functions, and crl_server_open while another
 * process opens a server of a path in the same directory.
 *
 * Functions return 0 or a count on success, or a negative errno. An object is used by one thread
 * at a time; different objects are independent. The memory of an object is not in a forked child:
 * the child may close its copy of an object, which changes nothing for the parent, and any other
 * use of it ends with SIGSEGV.
 */
#ifndef COPYRPC_LOCAL_H
#define COPYRPC_LOCAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of channels between the clients and the server of a name. */
enum crl_kind {
	CRL_DELEGATION = 1, /* the server looks at one shared ring: for many, mostly idle clients */
	CRL_IPC = 2,        /* the server looks at each client: for few or busy clients */
};

/** Largest values of struct crl_options. */
#define CRL_CLIENTS_MAX 1024u
#define CRL_DEPTH_MAX   1024u
#define CRL_BYTES_MAX   (1024u * 1024u)

/** Options of a channel, chosen by its owner. A field of 0 selects the default. */
struct crl_options {
	uint32_t max_clients;  /* clients at a time; default 64, at most CRL_CLIENTS_MAX */
	uint32_t depth;        /* calls in flight of a client, rounded up to a power of two;
				  default 32 (flux: 256), at most CRL_DEPTH_MAX */
	uint32_t request_max;  /* bytes of a request; default 256, at most CRL_BYTES_MAX */
	uint32_t response_max; /* bytes of a response; default 256, at most CRL_BYTES_MAX */
	int32_t spin_us;       /* time that a ..._wait function spins before it sleeps, on both
				  sides; default 20, negative: sleeps at once */
	uint32_t reserved[7];  /* 0 */
};

/** Flag of a call: further calls follow at once, the last one without this flag. */
#define CRL_MORE 1u

/** Request that was taken. May be copied. */
struct crl_request {
	const void *data; /* copy of the request at a multiple of 16 bytes, owned by the channel,
			     valid until the reply */
	size_t len;       /* bytes of data */
	uint64_t handle;  /* argument of the reply */
	uint32_t client;  /* id of the client, below max_clients; flux: the calling member */
	uint32_t reserved;
};

/** End of a call. */
struct crl_response {
	void *context;    /* argument of the call */
	const void *data; /* response, owned by the channel, valid until the next poll */
	size_t len;       /* bytes of data */
	int status;       /* 0, or -EPIPE: the server was gone before it replied */
	uint32_t peer;    /* flux: the member that replied; otherwise 0 */
};

/** Counters of a server since it was opened. */
struct crl_counters {
	uint64_t clients;   /* connected now */
	uint64_t accepted;  /* clients that have connected */
	uint64_t refused;   /* connections: another user, max_clients reached, no descriptor left */
	uint64_t expelled;  /* clients disconnected because their memory was not valid */
	uint64_t taken;     /* requests taken */
	uint64_t replied;   /* replies written */
	uint64_t discarded; /* replies to clients that were gone */
	uint64_t wakeups;   /* system calls that woke clients */
	uint64_t sleeps;    /* times that the server was armed to sleep */
	uint64_t repaired;  /* invalid words found in the shared ring */
	uint64_t swept;     /* requests found without their word in the shared ring */
	uint64_t reserved[5];
};

struct crl_server;
struct crl_client;

/**
 * Opens the server of `name`. A name that begins with '/' is the path of a Unix socket, which is
 * removed by crl_server_close (and, after a crash, by the next server; while a server opens, a lock
 * of the directory, flock(2), keeps others out); any other name of at most 64 bytes is valid for
 * the user in this network namespace and leaves nothing behind. Only processes of the same
 * effective user can connect. `options` may be NULL.
 *
 * Returns 0, -EINVAL for options beyond their limits, -EADDRINUSE if the name has a server,
 * -ENAMETOOLONG, or the error of the system. Where the socket of a crashed server cannot be removed
 * without the lock: -EBUSY if another process has held it for 10 s, -EACCES if the user may not
 * read the directory.
 */
int crl_server_open(struct crl_server **server, enum crl_kind kind, const char *name,
		    const struct crl_options *options);

/** Closes the server. Open calls of its clients end with -EPIPE. Requests taken become invalid. */
void crl_server_close(struct crl_server *server);

/**
 * Stores up to `max` requests in `requests`, accepts clients and notices those that ended. The
 * requests of one client are in their order. Each must be replied to once. Requests of a client
 * that has ended meanwhile stay valid until their reply.
 *
 * A server that replies at once takes few at a time, such as a quarter of `depth`: its clients then
 * go on while it replies. One that collects requests, to send them on together, takes many.
 *
 * Returns their number, 0 if there is none.
 */
int crl_server_take(struct crl_server *server, struct crl_request *requests, int max);

/**
 * Replies to a request. `data` may be reused on return. There is always room.
 *
 * Returns 0, -EPIPE if the client is gone (the request has ended), -EMSGSIZE beyond response_max
 * (the request is still open), or -EINVAL if no request is open under `handle`.
 */
int crl_server_reply(struct crl_server *server, uint64_t handle, const void *data, size_t len);

/**
 * Waits until there may be something to take: spins for spin_us, then sleeps. Accepts clients and
 * notices those that ended while it sleeps. timeout_ms: at most so long; negative: without limit.
 * Returns 0, -ETIMEDOUT, or -EINTR after a signal.
 */
int crl_server_wait(struct crl_server *server, int timeout_ms);

/**
 * Returns a descriptor for epoll or poll, owned by the server. After crl_server_arm has returned 0,
 * it becomes readable when there is something to take or a client comes or goes. The next
 * crl_server_take disarms it.
 */
int crl_server_fd(const struct crl_server *server);

/** Prepares for sleep on crl_server_fd. Returns 0, or -EAGAIN if there is something to take. */
int crl_server_arm(struct crl_server *server);

/** Stores the counters. */
void crl_server_counters(const struct crl_server *server, struct crl_counters *counters);

/**
 * Connects to the server of `name`, waiting at most timeout_ms (negative: without limit) until it
 * accepts. The server must run crl_server_take meanwhile; crl_server_wait accepts while it sleeps.
 *
 * Returns 0, -ECONNREFUSED or -ENOENT without a server, -EUSERS if max_clients are connected,
 * -EMFILE if the server or this process has no descriptor left, -EACCES if the server belongs to
 * another user, -ETIMEDOUT, -EPROTO if the server is of another version, or the error of the
 * system.
 */
int crl_client_open(struct crl_client **client, const char *name, int timeout_ms);

/** Disconnects. Open calls end without a response. */
void crl_client_close(struct crl_client *client);

/** Stores the options that the server was opened with. */
void crl_client_options(const struct crl_client *client, struct crl_options *options);

/**
 * Calls the server. `data` may be reused on return. flags: 0 or CRL_MORE.
 *
 * Returns 0, -EAGAIN if `depth` calls are in flight, -EMSGSIZE beyond request_max, or -EPIPE if
 * the server is gone. On error nothing is sent, and no response follows.
 */
int crl_client_call(struct crl_client *client, const void *data, size_t len, void *context,
		    unsigned int flags);

/** Ends a series of calls with CRL_MORE whose last call failed or did not follow. */
void crl_client_flush(struct crl_client *client);

/** Returns the number of calls in flight. */
uint32_t crl_client_pending(const struct crl_client *client);

/**
 * Stores up to `max` responses in `responses`. Their data is valid until the next poll. When the
 * server is gone, the open calls follow with status -EPIPE.
 *
 * Returns their number, 0 if there is none yet, or -EPIPE if the server is gone and no call is
 * open.
 */
int crl_client_poll(struct crl_client *client, struct crl_response *responses, int max);

/**
 * Waits until there is a response or the server is gone: spins for spin_us, then sleeps.
 * timeout_ms: at most so long; negative: without limit. Returns 0, -ETIMEDOUT, or -EINTR after a
 * signal.
 */
int crl_client_wait(struct crl_client *client, int timeout_ms);

/**
 * Returns a descriptor for epoll or poll, owned by the client. After crl_client_arm has returned 0,
 * it becomes readable when there is a response or the server is gone. The next crl_client_poll
 * disarms it.
 */
int crl_client_fd(const struct crl_client *client);

/** Prepares for sleep on crl_client_fd. Returns 0, or -EAGAIN if there is something to poll. */
int crl_client_arm(struct crl_client *client);

#ifdef __cplusplus
}
#endif

#endif
