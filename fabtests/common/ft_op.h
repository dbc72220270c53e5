/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The account of operations: has each of them had exactly the completions that it may have?
 *
 * An operation is taken from ft_op_new(), its context goes into the call, and ft_poll() books what the
 * completion queues say. It ends the case at once when a completion comes that nobody expects: a
 * second one, one for an operation that was not posted, a success for one that asked for none.
 * Given back operations are reused as late as possible, so that a late second completion is found.
 *
 * FT_ONE   exactly one, good or bad                    (the ordinary operation)
 * FT_NONE  none if it goes well; an error is booked    (selective completion)
 * FT_MANY  any number                                  (a multi-receive buffer)
 */
#ifndef FT_OP_H
#define FT_OP_H

#include "ft_fab.h"

enum ft_expect { FT_ONE, FT_NONE, FT_MANY };

struct ft_op {
	struct fi_context2 context; /* first */
	enum ft_expect expect;
	bool posted;
	int seen; /* completions so far */
	int err;  /* of the last one: positive, or 0 */
	uint64_t flags;
	size_t len, olen;
	void *buf;
	uint64_t data, tag;
	fi_addr_t src;                           /* FI_ADDR_NOTAVAIL without FI_SOURCE */
	uint64_t order;                          /* completions of this endpoint have numbers */
	void (*on)(struct ft_op *op, void *arg); /* called at each completion, if set */
	void *arg;
	struct ft_op *next;
};

struct ft_ops *ft_ops_open(void);
void ft_ops_close(struct ft_ops *ops);

struct ft_op *ft_op_new(struct ft_fab *fab, enum ft_expect expect);
/** Its completions have come; whatever comes from now on ends the case. */
void ft_op_put(struct ft_fab *fab, struct ft_op *op);

/** One step: progress, and at most one completion of each queue. How many were booked. */
int ft_poll(struct ft_fab *fab);
/** Until `op` has its completion. */
void ft_wait(struct ft_fab *fab, struct ft_op *op);
/** ... which must be good. Gives it back. */
void ft_wait_good(struct ft_fab *fab, struct ft_op *op);
/** ... which must be bad in this way. Gives it back. */
void ft_wait_bad(struct ft_fab *fab, struct ft_op *op, int err);
/** Nothing may come: progress for so long. Operations of FT_ONE that are still open stay so. */
void ft_quiet(struct ft_fab *fab, double seconds);

/** Errors that came without the context of an operation (of injected messages), and the last of them. */
unsigned ft_orphans(const struct ft_fab *fab, int *err);
/** Completions that no operation of this end has begun: writes of a peer with data; and the last one. */
unsigned ft_remotes(const struct ft_fab *fab, struct fi_cq_tagged_entry *last);
/** Operations that were posted and have no completion yet (FT_ONE only). */
unsigned ft_open_ops(const struct ft_fab *fab);

/** When this process gives up waiting: before the runner ends the case, to say for what it waits. */
double ft_deadline(const struct ft_fab *fab);
/** For a call that returned -FI_EAGAIN: progress, and the end of the case when that goes on. */
void ft_again(struct ft_fab *fab, double deadline);

/** Repeats a call as long as it returns -FI_EAGAIN, making progress; ends the case at another error. */
#define FT_POST(fab, call)                                                                         \
	do {                                                                                       \
		double ft_end = ft_deadline(fab);                                                  \
		long ft_ret;                                                                       \
		while ((ft_ret = (call)) == -FI_EAGAIN)                                            \
			ft_again(fab, ft_end);                                                     \
		if (ft_ret)                                                                        \
			ft_fail(__FILE__, __LINE__, "%s: %ld (%s)", #call, ft_ret,                 \
				ft_err_name(ft_ret));                                              \
	} while (0)

#endif
