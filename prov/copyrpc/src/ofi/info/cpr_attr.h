/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Comparison of hints with the offer (cpr_offer.h), attribute by attribute. Called by fi_getinfo.
 *
 * Every hint that cannot be met leaves one FI_INFO line: hint, requested value, offered value.
 * Members of hints may be NULL.
 */
#ifndef OFI_INFO_CPR_ATTR_H
#define OFI_INFO_CPR_ATTR_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>

bool cpr_attr_accepts(const struct fi_info *offer, const struct fi_info *hints, uint32_t version);

#endif
