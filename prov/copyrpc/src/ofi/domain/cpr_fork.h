/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What can a forked child do with what its parent opened? Nothing, and it is told so.
 *
 * Sockets and the memory of rings are its parent's as well: whoever took in or sent anything in the child
 * would do so in the parent's name, and what he took would be lost there. So before fork returns in the child
 *
 *	endpoints	transfers, calls and answers are refused (-FI_EOPBADSTATE), as before fi_enable
 *	queues		have an error completion (FI_EBADF) behind those that were there; who sleeps on an
 *			empty one is refused (-FI_EBADF)
 *	progress	is none
 *	locks		are gone: a thread of the parent's may have had them, and there is only one here
 *
 * What holds resources of the kernel is not closed (cpr_domain_is_inherited). Fabrics of the parent's are not
 * listed any more, but domains can be opened in them; the control thread of those is a new one (eng_node.h).
 *
 * Shown by test/unit/ofi/domain/test_cpr_fork.c.
 */
#ifndef CPR_FORK_H
#define CPR_FORK_H

/** From the first fabric on. */
void cpr_fork_register(void);

#endif
