/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Accounting of operations: each has exactly the completions that it may have.
 *
 * An operation is taken from ft_op_new(), its context goes into the call, and ft_poll() accounts
 * for the entries of the completion queues. It ends the case at once at an unexpected completion: a
 * second one, one for an operation that was not posted, a success for one that requested none.
 * Returned operations are reused as late as possible, so that a late second completion is found.
 *
 * FT_ONE   exactly one, good or bad                    (the ordinary operation)
 * FT_NONE  none if it succeeds; an error is recorded   (selective completion)
 * FT_MANY  any number                                  (a multi-receive buffer)
 */
#ifndef FT_OP_H
#define FT_OP_H

#include "ft_fab.h"

enum ft_expect { FT_ONE, FT_NONE, FT_MANY };

struct ft_op {
	struct fi_context2 context; /* first member */
	enum ft_expect expect;
	bool posted;
	int seen; /* completions so far */
	int err;  /* error of the last one: positive, or 0 */
	uint64_t flags;
	size_t len, olen;
	void *buf;
	uint64_t data, tag;
	fi_addr_t src; /* FI_ADDR_NOTAVAIL without FI_SOURCE */
	/* sequence number among the completions of this endpoint */
	uint64_t order;
	void (*on)(struct ft_op *op, void *arg); /* called at each completion, if set */
	void *arg;
	struct ft_op *next;
};

struct ft_ops *ft_ops_open(void);
void ft_ops_close(struct ft_ops *ops);

struct ft_op *ft_op_new(struct ft_fab *fab, enum ft_expect expect);
/** Returns an operation whose completions have come. Any further one ends the case. */
void ft_op_put(struct ft_fab *fab, struct ft_op *op);

/** Makes progress and reads at most one completion of each queue. Returns their number. */
int ft_poll(struct ft_fab *fab);
/** Waits until `op` has its completion. */
void ft_wait(struct ft_fab *fab, struct ft_op *op);
/** Waits for the completion, which must be good, and returns the operation. */
void ft_wait_good(struct ft_fab *fab, struct ft_op *op);
/** Waits for the completion, which must have error `err`, and returns the operation. */
void ft_wait_bad(struct ft_fab *fab, struct ft_op *op, int err);
/**
 * Makes progress for `seconds`, in which nothing may complete. Posted operations of FT_ONE stay
 * posted.
 */
void ft_quiet(struct ft_fab *fab, double seconds);

/**
 * Returns the number of errors without the context of an operation (of injected messages), and the
 * last error.
 */
unsigned ft_orphans(const struct ft_fab *fab, int *err);
/**
 * Returns the number of completions that no operation of this end has begun (writes of a peer with
 * data), and the last one.
 */
unsigned ft_remotes(const struct ft_fab *fab, struct fi_cq_tagged_entry *last);
/** Returns the number of posted operations without a completion (FT_ONE only). */
unsigned ft_open_ops(const struct ft_fab *fab);

/**
 * Returns the time at which this process stops waiting: before the runner ends the case, so that it
 * can report the reason.
 */
double ft_deadline(const struct ft_fab *fab);
/** Makes progress after a call that returned -FI_EAGAIN. Ends the case after the deadline. */
void ft_again(struct ft_fab *fab, double deadline);

/** Repeats a call while it returns -FI_EAGAIN, with progress; ends the case at another error. */
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
