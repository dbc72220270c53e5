/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_getinfo(3) for datagram endpoints. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include "ofi/dgram/cpr_dgram.h"
#include "ofi/base/cpr_offer.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/param.h"

static struct fi_info *hints;

static void setup(void)
{
	ofi_provider();
	util_params.paths = "shm,udp";
	hints = ofi_hints();
	hints->ep_attr->type = FI_EP_DGRAM;
}

static void teardown(void)
{
	fi_freeinfo(hints);
}

TestSuite(cpr_dgram_info, .init = setup, .fini = teardown);

static int ret_of(void)
{
	struct fi_info *info = NULL;
	int ret = ofi_getinfo(hints, &info);

	cr_expect(ret == 0 || info == NULL);
	fi_freeinfo(info);
	return ret;
}

Test(cpr_dgram_info, udp_offers_what_a_bare_datagram_can_carry)
{
	struct fi_info *info = NULL;

	cr_assert_eq(ofi_getinfo(hints, &info), 0);
	cr_expect_null(info->next);
	cr_expect_eq(info->ep_attr->type, FI_EP_DGRAM);
	cr_expect_eq(info->ep_attr->protocol, FI_PROTO_UDP);
	cr_expect_eq(info->addr_format, FI_SOCKADDR_IN);
	cr_expect_geq(info->ep_attr->max_msg_size, 1472, "the loopback's");
	cr_expect_eq(info->tx_attr->inject_size, info->ep_attr->max_msg_size);
	cr_expect_eq(info->caps & (FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV), 0);
	cr_expect_eq(info->caps & (FI_MSG | FI_SEND | FI_RECV | FI_SOURCE | FI_MULTI_RECV),
		     FI_MSG | FI_SEND | FI_RECV | FI_SOURCE | FI_MULTI_RECV);
	cr_expect_eq(info->tx_attr->msg_order, 0);
	cr_expect_eq(info->rx_attr->msg_order, 0);
	cr_expect_eq(info->domain_attr->cq_data_size, 0);
	cr_expect_eq(info->mode, 0, "no prefix for who cannot leave room for it");
	cr_expect_eq(info->ep_attr->msg_prefix_size, 0);
	cr_expect_str_eq(info->domain_attr->name, "copyrpc-dgram-udp");
	cr_expect_str_eq(info->fabric_attr->name, CPR_DGRAM_NAME);
	fi_freeinfo(info);
}

Test(cpr_dgram_info, features_beyond_datagrams_are_refused)
{
	static const uint64_t caps[] = { FI_TAGGED, FI_RMA, FI_ATOMIC, FI_MSG | FI_DIRECTED_RECV };

	cr_expect_eq(ret_of(), 0);
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		hints->caps = caps[i];
		cr_expect_eq(ret_of(), -FI_ENODATA);
	}
	hints->caps = FI_MSG;
	cr_expect_eq(ret_of(), 0);
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	cr_expect_eq(ret_of(), -FI_ENODATA);
	hints->tx_attr->msg_order = 0;
	hints->domain_attr->cq_data_size = 4;
	cr_expect_eq(ret_of(), -FI_ENODATA);
	hints->domain_attr->cq_data_size = 0;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	cr_expect_eq(ret_of(), -FI_ENODATA);
	hints->tx_attr->op_flags = FI_MATCH_COMPLETE;
	cr_expect_eq(ret_of(), -FI_ENODATA);
	hints->tx_attr->op_flags = FI_TRANSMIT_COMPLETE;
	cr_expect_eq(ret_of(), 0);
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	cr_expect_eq(ret_of(), -FI_ENODATA);
	hints->ep_attr->rx_ctx_cnt = 0;
	hints->ep_attr->max_msg_size = 1 << 16;
	cr_expect_eq(ret_of(), -FI_ENODATA);
}

Test(cpr_dgram_info, the_paths_parameter_selects_the_devices)
{
	util_params.paths = "udp";
	cr_expect_eq(ret_of(), 0);
	util_params.paths = "nic";
	hints->addr_format = FI_SOCKADDR_IN;
	cr_expect_eq(ret_of(), -FI_ENODATA, "no RDMA device has IP addresses for datagrams");
}

Test(cpr_dgram_info, a_returned_info_is_accepted_as_a_hint)
{
	struct fi_info *info = NULL, *again = NULL;

	cr_assert_eq(ofi_getinfo(hints, &info), 0);
	cr_assert_eq(ofi_getinfo(info, &again), 0);
	cr_expect_eq(again->ep_attr->max_msg_size, info->ep_attr->max_msg_size);
	cr_expect_str_eq(again->domain_attr->name, info->domain_attr->name);
	fi_freeinfo(info);
	fi_freeinfo(again);
}

Test(cpr_dgram_info, opened_objects_are_named)
{
	struct ofi_options opts = { .ep_type = FI_EP_DGRAM };
	struct fi_info *info = NULL;
	struct ofi_pair p;

	ofi_domain_open(&p, &opts);
	cr_assert_eq(ofi_getinfo(hints, &info), 0);
	cr_expect_eq(info->fabric_attr->fabric, p.fabric);
	cr_expect_eq(info->domain_attr->domain, p.domain);
	fi_freeinfo(info);
	hints->ep_attr->type = FI_EP_UNSPEC;
	hints->domain_attr->domain = p.domain;
	cr_assert_eq(ofi_getinfo(hints, &info), 0);
	cr_expect_eq(info->ep_attr->type, FI_EP_DGRAM);
	cr_expect_null(info->next);
	fi_freeinfo(info);
	ofi_pair_close(&p);
}

Test(cpr_dgram_info, node_and_service_are_the_destination_of_datagrams)
{
	struct fi_info *info = NULL;
	struct sockaddr_in *dest;

	cr_assert_eq(ofi_provider()->getinfo(OFI_API, "127.0.0.1", "9228", 0, hints, &info), 0);
	dest = info->dest_addr;
	cr_assert_not_null(dest);
	cr_expect_eq(ntohs(dest->sin_port), 9228);
	fi_freeinfo(info);
	cr_expect_eq(ofi_provider()->getinfo(OFI_API, "no such host", NULL, 0, hints, &info),
		     -FI_ENODATA);
}

Test(cpr_dgram_info, msg_prefix_size_is_reported_on_request)
{
	struct fi_info *info = NULL, *bare = NULL;

	cr_assert_eq(ofi_getinfo(hints, &bare), 0);
	hints->mode = FI_MSG_PREFIX | FI_CONTEXT;
	cr_assert_eq(ofi_getinfo(hints, &info), 0);
	cr_expect_eq(info->mode, FI_MSG_PREFIX);
	cr_expect_eq(info->tx_attr->mode, FI_MSG_PREFIX);
	cr_expect_eq(info->rx_attr->mode, FI_MSG_PREFIX);
	cr_expect_eq(info->ep_attr->msg_prefix_size, 40);
	cr_expect_eq(info->ep_attr->msg_prefix_size % 8, 0, "fi_endpoint(3)");
	cr_expect_eq(info->ep_attr->max_msg_size, bare->ep_attr->max_msg_size);
	cr_expect_eq(info->tx_attr->inject_size, bare->tx_attr->inject_size);
	fi_freeinfo(info);
	fi_freeinfo(bare);
}

Test(cpr_dgram_info, reliable_endpoints_have_no_prefix)
{
	struct fi_info *info = NULL;

	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_MSG_PREFIX;
	cr_assert_eq(ofi_getinfo(hints, &info), 0);
	cr_expect_eq(info->mode, 0);
	cr_expect_eq(info->ep_attr->msg_prefix_size, 0);
	fi_freeinfo(info);
}
