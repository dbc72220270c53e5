/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables of required results: a rule is a line with a sentence, a call, and the error that a page
 * names for it. Rules are independent: each violation is reported, and the case fails when it ends.
 *
 * RULE     exactly this result
 * REFUSED  the page forbids it and names no error: any but "again"
 * OURS     an addition of fi_copyrpc(7); needs `ft`
 * FAILS    end of an access: an error, and of copyrpc this one
 */
#ifndef FT_RULE_H
#define FT_RULE_H

#include "ft_msg.h"

#include <string.h>

#define BAD_FLAG (1ull << 62)

static inline void ft_rule(const char *file, int line, const char *sentence, const char *call,
			   long got, long want)
{
	if (got != want)
		ft_complain(file, line, "%s: %s is %ld (%s), not %ld (%s)", sentence, call, got,
			    ft_err_name(got), want, ft_err_name(want));
}

static inline void ft_rule_refusal(const char *file, int line, const char *sentence,
				   const char *call, long got)
{
	if (got >= 0 || got == -FI_EAGAIN)
		ft_complain(file, line, "%s: %s is %ld (%s), not refused", sentence, call, got,
			    ft_err_name(got));
}

static inline bool ft_is_ours(const struct ft *ft)
{
	return !strcmp(ft->opts->provider, "copyrpc");
}

#define RULE(sentence, call, want)                                                                 \
	ft_rule(__FILE__, __LINE__, sentence, #call, (long)(call), (long)(want))
#define REFUSED(sentence, call) ft_rule_refusal(__FILE__, __LINE__, sentence, #call, (long)(call))
#define OURS(sentence, call, want)                                                                 \
	do {                                                                                       \
		if (ft_is_ours(ft))                                                                \
			RULE(sentence, call, want);                                                \
	} while (0)
#define FAILS(sentence, call, ours)                                                                \
	do {                                                                                       \
		int fails_err = (call);                                                            \
		RULE(sentence, !fails_err, false);                                                 \
		OURS(sentence, fails_err, ours);                                                   \
	} while (0)

/** Returns the error, positive, or 0, with which the operation of an accepted call ends. */
#define ENDS(fab, op, call)                                                                        \
	({                                                                                         \
		struct ft_op *(op) = ft_op_new(fab, FT_ONE);                                       \
		int ends_err;                                                                      \
		FT_POST(fab, call);                                                                \
		ft_wait(fab, op);                                                                  \
		ends_err = (op)->err;                                                              \
		ft_op_put(fab, op);                                                                \
		ends_err;                                                                          \
	})

/** Opens everything but an endpoint. */
static inline void ft_rule_parts(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	want.alone = true;
	ft_fab_find(fab, ft, &want);
	ft_fab_domain(fab);
	ft_fab_queues(fab);
	fab->ops = ft_ops_open();
}

/** Opens an enabled endpoint that reaches itself. */
static inline void ft_rule_whole(struct ft_fab *fab, struct ft *ft, struct ft_want want)
{
	want.alone = true;
	if (ft->opts->type != FI_EP_RDM)
		ft_notrun("needs an endpoint that reaches itself");
	ft_fab_open(fab, ft, &want);
	ft_fab_meet(fab);
}

#endif
