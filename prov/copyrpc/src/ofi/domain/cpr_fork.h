/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handling of fork: makes inherited objects unusable in the child. Called by fi_fabric.
 *
 * Sockets and the memory of rings belong to the parent, too. A child that received or sent anything
 * would do so in the parent's name, and data received there would be lost. So before fork returns
 * in the child:
 *
 *	endpoints	refuse transfers, calls and replies (-FI_EOPBADSTATE), as before fi_enable
 *	queues		have an error completion (FI_EBADF) behind earlier ones; waiting on an empty
 *			queue fails (-FI_EBADF)
 *	progress	does nothing
 *	locks		are new: a thread of the parent may have held the old ones
 *
 * Resources of the kernel are not closed (cpr_domain_is_inherited). Inherited fabrics are no longer
 * listed, but domains can be opened in them, with a new control thread (eng_node.h).
 */
#ifndef OFI_DOMAIN_CPR_FORK_H
#define OFI_DOMAIN_CPR_FORK_H

/** Registers the fork handlers once; called when a fabric is opened. */
void cpr_fork_register(void);

#endif
