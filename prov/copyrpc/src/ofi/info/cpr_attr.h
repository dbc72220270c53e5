/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Can we give what the user asks for?
 *
 * Compares hints with the offer (cpr_offer.h), attribute by attribute. Every hint that cannot be
 * met leaves one FI_INFO line: hint, asked, offered. Members of hints may be NULL.
 *
 * Shown by test/unit/ofi/info/test_cpr_attr.c.
 */
#ifndef CPR_ATTR_H
#define CPR_ATTR_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>

bool cpr_attr_accepts(const struct fi_info *offer, const struct fi_info *hints, uint32_t version);

#endif
