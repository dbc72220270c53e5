/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does an error mean here, and what can the user do?
 *
 * prov_errno of a failed completion or event is one of libfabric's codes. fi_strerror has a word
 * for each; this has a sentence for those that completions and events of this provider carry.
 *
 * Shown by test/unit/ofi/queue/test_cpr_strerror.c.
 */
#ifndef CPR_STRERROR_H
#define CPR_STRERROR_H

#include <stddef.h>

/** For fi_cq_strerror and fi_eq_strerror: constant text, also copied into buf if there is one. */
const char *cpr_strerror(int prov_errno, char *buf, size_t len);

#endif
