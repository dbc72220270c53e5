/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All calls of libfabric that send and receive a message, behind two functions, so that a case can
 * iterate over them.
 *
 * The vector calls cut the buffer into as many pieces as the endpoint takes, one of them empty.
 */
#ifndef FT_MSG_H
#define FT_MSG_H

#include "ft_op.h"

enum ft_way { FT_PLAIN, FT_VECTOR, FT_BY_MSG, FT_DATA, FT_INJECT, FT_INJECT_DATA, FT_WAYS };
extern const char *const ft_way_names[FT_WAYS];

struct ft_msg {
	bool tagged;
	uint64_t tag, ignore;
	void *buf;
	size_t len;
	int rank; /* rank of the other end; -1: any source */
	/* CQ data of FT_DATA, FT_INJECT_DATA, and FT_BY_MSG with FI_REMOTE_CQ_DATA */
	uint64_t data;
	uint64_t flags;   /* flags of FT_BY_MSG */
	struct ft_op *op; /* NULL: no context */
};

/** Sends a message. Returns the result of the call. */
ssize_t ft_send(struct ft_fab *fab, enum ft_way way, const struct ft_msg *msg);
/** Posts a receive by FT_PLAIN, FT_VECTOR or FT_BY_MSG. */
ssize_t ft_recv(struct ft_fab *fab, enum ft_way way, const struct ft_msg *msg);

static inline bool ft_way_injects(enum ft_way way)
{
	return way == FT_INJECT || way == FT_INJECT_DATA;
}

static inline bool ft_way_has_data(enum ft_way way)
{
	return way == FT_DATA || way == FT_INJECT_DATA;
}

/** Sends a message and takes the completion, if it has one, which must be good. */
void ft_send_wait(struct ft_fab *fab, enum ft_way way, struct ft_msg msg);
/** Posts a receive of FT_PLAIN. Returns its operation. */
struct ft_op *ft_recv_post(struct ft_fab *fab, bool tagged, uint64_t tag, void *buf, size_t len);

#endif
