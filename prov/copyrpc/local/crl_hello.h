/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that a server and its clients share, and the message by which a client gets it. Used by
 * crl_server.c, crl_accept.c and crl_client.c.
 *
 * Three memories: the client's own (control words and the two rings; the client and the server
 * write it), the page of the server (only the server writes it, all clients read it) and, for
 * delegation, the ring of tokens (all write it).
 */
#ifndef LOCAL_CRL_HELLO_H
#define LOCAL_CRL_HELLO_H

#include <copyrpc/local.h>
#include <stdatomic.h>
#include <stdint.h>

#include "local/crl_shape.h"
#include "util/bits.h"

#define CRL_HELLO_MAGIC   0x31304c4352595043ull /* "CPYRCL01" */
#define CRL_HELLO_VERSION 1u

/** The only message: from the server, with the descriptors of the memories in this order. */
struct crl_hello {
	uint64_t magic;
	uint32_t version;
	int32_t status; /* 0 or a negative errno: the connection is refused */
	uint32_t kind;
	uint32_t client; /* id */
	struct crl_options options;
};

/** First part of a client's own memory. */
struct crl_control {
	_Alignas(UTIL_CACHE_LINE) _Atomic uint32_t sleep; /* crl_sleep.h: the client sleeps */
	_Alignas(UTIL_CACHE_LINE) _Atomic uint32_t token; /* 1: the server will look here */
};

/** Page of the server. */
struct crl_page {
	_Atomic uint32_t sleep; /* crl_sleep.h: the server sleeps */
};

static inline size_t crl_hello_bytes(const struct crl_options *options)
{
	struct crl_shape shape = crl_options_shape(options);

	return sizeof(struct crl_control) + crl_shape_bytes(&shape);
}

#endif
