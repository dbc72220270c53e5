/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Identity of the process among its forked parents and children. Used by the files that open and
 * close objects: a child has copies of its parent's objects and may only close them, which must
 * change nothing that the parent uses.
 */
#ifndef LOCAL_CRL_FORK_H
#define LOCAL_CRL_FORK_H

#include <stdint.h>

/** Returns a number that this process shares with none of its forked parents and children. */
uint32_t crl_fork_id(void);

#endif
