/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A server and clients in one thread, for the tests of local channels. */
#ifndef LOCAL_PAIR_H
#define LOCAL_PAIR_H

#include <copyrpc/local.h>

/** Name of a server that no other process uses. A static buffer. */
const char *local_pair_name(const char *what);

/** Opens a server of that kind, or fails the test. */
struct crl_server *local_pair_server(enum crl_kind kind, const char *name,
				     const struct crl_options *options);

/** Connects a client while this thread runs the server, or fails the test. */
struct crl_client *local_pair_client(struct crl_server *server, const char *name);

/** Takes requests until there are `cnt`, for a minute at most. */
void local_pair_take(struct crl_server *server, struct crl_request *requests, int cnt);

/** Polls until there are `cnt` responses, for a minute at most. */
void local_pair_poll(struct crl_client *client, struct crl_response *responses, int cnt);

#endif
