/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Warning about memory that other hosts can reach. Called after fi_mr_reg and fi_enable.
 */
#ifndef OFI_BASE_CPR_EXPOSED_H
#define OFI_BASE_CPR_EXPOSED_H

#include <stdbool.h>
#include <sys/socket.h>

struct cpr_domain;

/**
 * Warns, and returns true, once in a process (of a job on a host in the first process only) if
 * memory of the domain is registered for remote access, one of its endpoints has an address that
 * other hosts can reach by a path other than shared memory, and there is no job key. No lock of the
 * domain is held.
 */
bool cpr_exposed_check(struct cpr_domain *domain);

/** Returns whether `addr` is not loopback. */
bool cpr_exposed_is_public(const struct sockaddr *addr);

#endif
