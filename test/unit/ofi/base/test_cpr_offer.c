/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes offered for hints: fi_getinfo(3), fi_endpoint(3), fi_domain(3), fi_mr(3). */
#include "ofi/base/cpr_offer.h"

#include <criterion/criterion.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/fi_old.h"
#include "util/param.h"

#define PRIMARY (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV)

static struct fi_info *offered(void)
{
	struct fi_info *info = fi_allocinfo();

	ofi_provider();
	cr_assert_eq(cpr_offer_fill(info), 0);
	return info;
}

static struct fi_info *narrowed(const struct fi_info *hints, uint32_t version)
{
	struct fi_info *info = offered();

	cpr_offer_narrow(info, hints, version);
	return info;
}

Test(cpr_offer, no_hints_get_all_capabilities)
{
	struct fi_info *info = narrowed(NULL, OFI_API);

	cr_expect_eq(info->caps, CPR_CAPS);
	cr_expect_eq(info->tx_attr->caps, CPR_TX_CAPS);
	cr_expect_eq(info->rx_attr->caps, CPR_RX_CAPS);
	cr_expect_eq(info->mode, 0);
	cr_expect_eq(info->domain_attr->mr_mode, 0);
	fi_freeinfo(info);
}

Test(cpr_offer, no_primary_capability_beyond_the_hints)
{
	static const uint64_t bits[] = { FI_MSG, FI_TAGGED, FI_DIRECTED_RECV };
	unsigned i, b;

	for (i = 1; i < 8; i++) {
		uint64_t hints = 0;

		for (b = 0; b < 3; b++)
			hints |= i & (1u << b) ? bits[b] : 0;
		cr_expect_eq(cpr_offer_caps(hints) & PRIMARY, hints);
	}
}

Test(cpr_offer, directions_are_both_unless_one_was_named)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info;

	cr_expect_eq(cpr_offer_caps(FI_TAGGED) & (FI_SEND | FI_RECV), FI_SEND | FI_RECV);
	hints->caps = FI_TAGGED | FI_SEND;
	info = narrowed(hints, OFI_API);
	cr_expect_eq(info->caps & (FI_SEND | FI_RECV), FI_SEND);
	cr_expect_eq(info->tx_attr->caps, FI_TAGGED | FI_SEND);
	cr_expect_eq(info->rx_attr->caps, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_offer, directions_of_rma_are_all_unless_one_was_named)
{
	const uint64_t all = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info;

	cr_expect_eq(cpr_offer_caps(FI_RMA) & (all | FI_SEND | FI_RECV), all);
	cr_expect_eq(cpr_offer_caps(FI_RMA | FI_MSG | FI_SEND) & all, all);
	cr_expect_eq(cpr_offer_caps(FI_MSG) & all, 0);
	hints->caps = FI_RMA | FI_REMOTE_WRITE;
	info = narrowed(hints, OFI_API);
	cr_expect_eq(info->caps & all, FI_REMOTE_WRITE);
	cr_expect_eq(info->tx_attr->caps, 0);
	cr_expect_eq(info->rx_attr->caps, FI_RMA | FI_REMOTE_WRITE);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_offer, rma_order_is_kept_on_request_at_any_size)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info = narrowed(NULL, OFI_API);

	cr_expect_eq(info->tx_attr->msg_order, FI_ORDER_SAS);
	cr_expect_eq(info->ep_attr->max_order_waw_size, 0);
	fi_freeinfo(info);
	hints->tx_attr->msg_order = FI_ORDER_WAW | FI_ORDER_SAW;
	info = narrowed(hints, OFI_API);
	cr_expect_eq(info->tx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_SAW);
	cr_expect_eq(info->ep_attr->max_order_waw_size, info->ep_attr->max_msg_size);
	cr_expect_eq(info->ep_attr->max_order_raw_size, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_offer, an_order_that_only_has_a_size_is_kept)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info;

	hints->ep_attr->max_order_raw_size = 1;
	hints->ep_attr->max_order_waw_size = 4096;
	info = narrowed(hints, OFI_API);
	cr_expect_eq(info->tx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW);
	cr_expect_eq(info->rx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW);
	cr_expect_eq(info->ep_attr->max_order_raw_size, 1);
	cr_expect_eq(info->ep_attr->max_order_war_size, 0);
	cr_expect_eq(info->ep_attr->max_order_waw_size, 4096);
	fi_freeinfo(info);
	hints->ep_attr->max_order_raw_size = 0;
	hints->ep_attr->max_order_war_size = 8;
	hints->tx_attr->msg_order = FI_ORDER_ATOMIC_WAW;
	info = narrowed(hints, OFI_API);
	cr_expect_eq(info->tx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_WAR | FI_ORDER_ATOMIC_WAW,
		     "an order is what its flags say, not more");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_offer, attribute_capabilities_are_a_subset_of_the_endpoints)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info;

	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE;
	hints->tx_attr->caps = FI_MSG;
	info = narrowed(hints, OFI_API);
	cr_expect_eq(info->tx_attr->caps, FI_MSG | FI_SEND);
	cr_expect_eq(info->rx_attr->caps & ~info->caps, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_offer, requested_values_are_echoed)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info;

	hints->tx_attr->op_flags = FI_COMPLETION;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->tx_attr->inject_size = 64;
	hints->tx_attr->size = 7;
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->resource_mgmt = FI_RM_DISABLED;
	hints->domain_attr->av_type = FI_AV_MAP;
	hints->ep_attr->mem_tag_format = 0xFF;
	hints->ep_attr->max_order_waw_size = 17;
	info = narrowed(hints, OFI_API);
	cr_expect_eq(info->tx_attr->op_flags, FI_COMPLETION);
	cr_expect_eq(info->rx_attr->op_flags, FI_COMPLETION);
	cr_expect_eq(info->tx_attr->inject_size, 64);
	cr_expect_eq(info->tx_attr->size, 7);
	cr_expect_eq(info->domain_attr->threading, FI_THREAD_COMPLETION);
	cr_expect_eq(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
	cr_expect_eq(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	cr_expect_eq(info->domain_attr->resource_mgmt, FI_RM_DISABLED);
	cr_expect_eq(info->domain_attr->av_type, FI_AV_MAP);
	cr_expect_eq(info->ep_attr->mem_tag_format, 0xFF);
	cr_expect_eq(info->ep_attr->max_order_waw_size, 17);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_offer, without_hints_defaults_are_offered)
{
	struct fi_info *info = narrowed(NULL, OFI_API);

	cr_expect_eq(info->ep_attr->type, FI_EP_RDM);
	cr_expect(info->ep_attr->protocol & FI_PROV_SPECIFIC);
	cr_expect_eq(info->domain_attr->threading, FI_THREAD_SAFE);
	cr_expect_eq(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	cr_expect_eq(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
	cr_expect_eq(info->tx_attr->inject_size, util_params.eager_max);
	cr_expect_eq(info->tx_attr->op_flags, 0);
	cr_expect_eq(info->ep_attr->mem_tag_format, CPR_TAG_FORMAT);
	cr_expect_eq(info->domain_attr->cq_data_size, 8);
	fi_freeinfo(info);
}

Test(cpr_offer, returned_mr_mode_is_a_subset_of_the_hint)
{
	static const struct {
		uint32_t version;
		int asked, got;
	} cases[] = {
		{ FI_VERSION(1, 17), 0, 0 },
		{ FI_VERSION(1, 17), FI_MR_BASIC, FI_MR_BASIC },
		{ FI_VERSION(1, 17), FI_MR_SCALABLE, FI_MR_SCALABLE },
		{ FI_VERSION(1, 5), FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
		  FI_MR_ALLOCATED },
		{ FI_VERSION(1, 5), FI_MR_VIRT_ADDR | FI_MR_PROV_KEY, 0 },
		{ FI_VERSION(1, 17), ~(FI_MR_BASIC | FI_MR_SCALABLE), FI_MR_ALLOCATED },
		{ FI_VERSION(1, 0), FI_MR_UNSPEC, FI_MR_SCALABLE },
		{ FI_VERSION(1, 0), FI_MR_BASIC, FI_MR_BASIC },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fi_info *hints = fi_allocinfo();
		struct fi_info *info;

		hints->domain_attr->mr_mode = cases[i].asked;
		info = narrowed(hints, cases[i].version);
		cr_expect_eq(info->domain_attr->mr_mode, cases[i].got, "case %zu", i);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}
