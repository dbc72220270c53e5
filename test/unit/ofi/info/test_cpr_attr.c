/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Acceptance of hints: one attribute at a time, at, below and above the offer. */
#include "ofi/info/cpr_attr.h"

#include <criterion/criterion.h>
#include <string.h>

#include "ofi/base/cpr_offer.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/fi_old.h"
#include "util/param.h"

static struct fi_info *offer;
static struct fi_info *hints;

static void setup(void)
{
	ofi_provider();
	offer = fi_allocinfo();
	hints = fi_allocinfo();
	cr_assert_eq(cpr_offer_fill(offer), 0);
}

static void teardown(void)
{
	fi_freeinfo(offer);
	fi_freeinfo(hints);
}

TestSuite(cpr_attr, .init = setup, .fini = teardown);

static bool accepts(void)
{
	return cpr_attr_accepts(offer, hints, OFI_API);
}

/* Expects `field` to be accepted at `most` and rejected at `most` + 1. */
#define EXPECT_MAX(field, most)                                                                    \
	do {                                                                                       \
		hints->field = (most);                                                             \
		cr_expect(accepts(), #field " at its limit");                                      \
		hints->field = (most) + 1;                                                         \
		cr_expect_not(accepts(), #field " above its limit");                               \
		hints->field = 0;                                                                  \
	} while (0)

/* Expects `field` to be accepted with `good` and rejected with `bad`. */
#define EXPECT_BITS(field, good, bad)                                                              \
	do {                                                                                       \
		hints->field = (good);                                                             \
		cr_expect(accepts(), #field " " #good);                                            \
		hints->field = (bad);                                                              \
		cr_expect_not(accepts(), #field " " #bad);                                         \
		hints->field = 0;                                                                  \
	} while (0)

Test(cpr_attr, empty_hints_and_none_are_accepted)
{
	struct fi_info none = { 0 }; /* libfabric's own calls may carry no attributes */

	cr_expect(accepts());
	cr_expect(cpr_attr_accepts(offer, NULL, OFI_API));
	cr_expect(cpr_attr_accepts(offer, &none, OFI_API));
}

Test(cpr_attr, capabilities_and_flags_are_subsets_of_the_offer)
{
	EXPECT_BITS(caps, FI_MSG | FI_TAGGED | FI_SOURCE | FI_RMA, FI_MSG | FI_MULTICAST);
	EXPECT_BITS(caps, FI_DIRECTED_RECV | FI_RMA_EVENT | FI_COLLECTIVE, FI_VARIABLE_MSG);
	EXPECT_BITS(caps, FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TRIGGER, FI_TAGGED | FI_HMEM);
	EXPECT_BITS(caps, FI_TAGGED | FI_MULTI_RECV, FI_SOURCE | FI_SOURCE_ERR);
	EXPECT_BITS(tx_attr->caps, FI_MSG | FI_RECV, FI_MSG | FI_RMA_PMEM);
	EXPECT_BITS(rx_attr->caps, FI_TAGGED | FI_SEND, FI_NAMED_RX_CTX);
	EXPECT_BITS(tx_attr->op_flags, FI_DELIVERY_COMPLETE | FI_COMPLETION, FI_COMMIT_COMPLETE);
	EXPECT_BITS(tx_attr->op_flags, FI_MATCH_COMPLETE, FI_MULTICAST);
	EXPECT_BITS(rx_attr->op_flags, FI_COMPLETION, FI_MATCH_COMPLETE);
	EXPECT_BITS(rx_attr->op_flags, FI_COMPLETION | FI_MULTI_RECV, FI_INJECT);
	EXPECT_BITS(tx_attr->msg_order, FI_ORDER_SAS | FI_ORDER_RAW, FI_ORDER_SAS | FI_ORDER_DATA);
	EXPECT_BITS(rx_attr->msg_order, FI_ORDER_STRICT, FI_ORDER_DATA);
	EXPECT_BITS(tx_attr->comp_order, FI_ORDER_NONE, FI_ORDER_STRICT);
	EXPECT_BITS(domain_attr->caps, FI_LOCAL_COMM, FI_SHARED_AV);
}

Test(cpr_attr, sizes_and_counts_have_a_limit)
{
	EXPECT_MAX(tx_attr->inject_size, util_params.eager_max);
	EXPECT_MAX(tx_attr->size, CPR_CTX_SIZE_MAX);
	EXPECT_MAX(rx_attr->size, CPR_CTX_SIZE_MAX);
	EXPECT_MAX(tx_attr->iov_limit, CPR_IOV_LIMIT);
	EXPECT_MAX(rx_attr->iov_limit, CPR_IOV_LIMIT);
	EXPECT_MAX(tx_attr->rma_iov_limit, CPR_IOV_LIMIT);
	EXPECT_MAX(ep_attr->max_msg_size, CPR_MSG_MAX);
	EXPECT_MAX(ep_attr->protocol_version, CPR_RC_PROTO_VERSION);
	EXPECT_MAX(ep_attr->tx_ctx_cnt, 1u);
	EXPECT_MAX(ep_attr->rx_ctx_cnt, 1u);
	EXPECT_MAX(ep_attr->auth_key_size, 0u);
	EXPECT_MAX(domain_attr->cq_data_size, 8u);
	EXPECT_MAX(domain_attr->mr_key_size, 8u);
	EXPECT_MAX(domain_attr->max_ep_tx_ctx, 1u);
	EXPECT_MAX(domain_attr->max_err_data, 0u);
}

Test(cpr_attr, contexts_are_one_or_shared)
{
	EXPECT_BITS(ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT, 2);
	EXPECT_BITS(ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT, 2);
}

Test(cpr_attr, endpoint_type_and_protocol_match_or_are_unset)
{
	EXPECT_BITS(ep_attr->type, FI_EP_RDM, FI_EP_MSG); /* a separate info */
	EXPECT_BITS(ep_attr->type, FI_EP_UNSPEC, FI_EP_DGRAM);
	EXPECT_BITS(ep_attr->protocol, CPR_RC_PROTO, FI_PROTO_SHM);
}

Test(cpr_attr, every_threading_and_progress_model_is_accepted)
{
	EXPECT_BITS(domain_attr->threading, FI_THREAD_SAFE, 99);
	EXPECT_BITS(domain_attr->threading, FI_THREAD_FID, 99);
	EXPECT_BITS(domain_attr->threading, FI_THREAD_COMPLETION, 99);
	EXPECT_BITS(domain_attr->threading, FI_THREAD_ENDPOINT, 99);
	EXPECT_BITS(domain_attr->threading, FI_THREAD_DOMAIN, 99);
	EXPECT_BITS(domain_attr->data_progress, FI_PROGRESS_AUTO, 99);
	EXPECT_BITS(domain_attr->control_progress, FI_PROGRESS_MANUAL, 99);
	EXPECT_BITS(domain_attr->av_type, FI_AV_MAP, 99);
	EXPECT_BITS(domain_attr->resource_mgmt, FI_RM_DISABLED, 99);
}

Test(cpr_attr, old_mr_modes_stand_alone)
{
	EXPECT_BITS(domain_attr->mr_mode, FI_MR_BASIC, FI_MR_BASIC | FI_MR_LOCAL);
	EXPECT_BITS(domain_attr->mr_mode, FI_MR_SCALABLE, FI_MR_SCALABLE | FI_MR_BASIC);
	hints->domain_attr->mr_mode = FI_MR_LOCAL;
	cr_expect(cpr_attr_accepts(offer, hints, FI_VERSION(1, 5)));
	cr_expect_not(cpr_attr_accepts(offer, hints, FI_VERSION(1, 4)));
}

Test(cpr_attr, names_are_exact)
{
	hints->domain_attr->name = strdup(CPR_RC_NAME);
	hints->fabric_attr->name = strdup(CPR_RC_NAME);
	cr_expect(accepts());
	hints->domain_attr->name[0] = 'x';
	cr_expect_not(accepts());
	hints->domain_attr->name[0] = CPR_RC_NAME[0];
	hints->fabric_attr->name[0] = 'x';
	cr_expect_not(accepts());
}

Test(cpr_attr, address_formats_are_ip)
{
	EXPECT_BITS(addr_format, FI_SOCKADDR_IN, FI_ADDR_STR);
	EXPECT_BITS(addr_format, FI_SOCKADDR_IN6, FI_SOCKADDR_IB);
	EXPECT_BITS(addr_format, FI_SOCKADDR, FI_ADDR_EFA);
}

Test(cpr_attr, any_mode_may_be_allowed_because_none_is_needed)
{
	hints->mode = ~0ull;
	hints->domain_attr->mode = ~0ull;
	hints->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
	cr_expect(accepts());
}
