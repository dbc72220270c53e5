/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Texts for error codes, with a remedy. Called by fi_cq_strerror, fi_eq_strerror and fi_domain.
 *
 * prov_errno of a failed completion or event is one of libfabric's codes. fi_strerror has a word
 * for each; this file has a sentence for those that completions and events of this provider carry.
 */
#ifndef OFI_QUEUE_CPR_STRERROR_H
#define OFI_QUEUE_CPR_STRERROR_H

#include <stddef.h>

/** Returns a constant text, also copied into buf if buf is not NULL. */
const char *cpr_strerror(int prov_errno, char *buf, size_t len);

#endif
