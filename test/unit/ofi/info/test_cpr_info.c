/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_getinfo as a whole: addresses, layering, and hints of real clients. */
#include "ofi/info/cpr_info.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/base/cpr_addr.h"
#include "ofi/base/cpr_offer.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/param.h"

static struct fi_info *get(const char *node, const char *service, uint64_t flags,
			   const struct fi_info *hints)
{
	struct fi_info *info = NULL;

	cr_assert_eq(ofi_provider()->getinfo(OFI_API, node, service, flags, hints, &info), 0);
	cr_assert_not_null(info);
	/* Datagrams are last, and ud endpoints behind all endpoints with rings. */
	for (struct fi_info *it = info; it->next; it = it->next)
		cr_expect(it->ep_attr->type != FI_EP_DGRAM ||
			  it->next->ep_attr->type == FI_EP_DGRAM);
	return info;
}

static int get_ret(const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int ret = ofi_provider()->getinfo(OFI_API, node, service, flags, hints, &info);

	cr_expect(ret == 0 || info == NULL);
	fi_freeinfo(info);
	return ret;
}

static void expect_addr(const void *addr, size_t len, const char *want)
{
	char buf[CPR_ADDR_STR_MAX];

	cr_assert_not_null(addr);
	cr_expect_eq(len,
		     cpr_addr_len(cpr_addr_format(((const struct sockaddr *)addr)->sa_family)));
	cpr_addr_print(addr, buf, sizeof(buf));
	cr_expect_str_eq(buf, want);
}

Test(cpr_info, no_hints_get_one_complete_info)
{
	struct fi_info *info = get(NULL, NULL, 0, NULL);

	cr_expect_not_null(info->src_addr);
	cr_expect_eq(info->src_addrlen, sizeof(struct sockaddr_in));
	cr_expect_eq(info->addr_format, FI_SOCKADDR_IN);
	cr_expect_null(info->dest_addr);
	cr_expect_str_eq(info->fabric_attr->name, CPR_RC_NAME);
	cr_expect_str_eq(info->domain_attr->name, CPR_RC_NAME);
	cr_expect_null(info->fabric_attr->prov_name, "libfabric's core fills it in");
	cr_expect_null(info->nic);
	fi_freeinfo(info);
}

static void expect_kind(const struct fi_info *info, int type, uint32_t protocol, const char *name)
{
	cr_assert_not_null(info);
	cr_expect_eq((int)info->ep_attr->type, type);
	cr_expect_eq(info->ep_attr->protocol, protocol);
	cr_expect_str_eq(info->fabric_attr->name, name);
	cr_expect_str_eq(info->domain_attr->name, name);
}

Test(cpr_info, each_kind_of_endpoint_is_listed_once_the_best_one_first)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info = get(NULL, NULL, 0, NULL);

	expect_kind(info, FI_EP_RDM, CPR_RC_PROTO, CPR_RC_NAME);
	expect_kind(info->next, FI_EP_MSG, CPR_RC_PROTO, CPR_RC_NAME);
	expect_kind(info->next->next, FI_EP_RDM, CPR_UD_PROTO, CPR_UD_NAME);
	fi_freeinfo(info);
	hints->ep_attr->type = FI_EP_MSG;
	info = get(NULL, NULL, 0, hints);
	expect_kind(info, FI_EP_MSG, CPR_RC_PROTO, CPR_RC_NAME);
	cr_expect_null(info->next);
	fi_freeinfo(info);
	hints->ep_attr->type = FI_EP_RDM;
	info = get(NULL, NULL, 0, hints);
	expect_kind(info, FI_EP_RDM, CPR_RC_PROTO, CPR_RC_NAME);
	expect_kind(info->next, FI_EP_RDM, CPR_UD_PROTO, CPR_UD_NAME);
	cr_expect_null(info->next->next);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/** Returns the first protocol when only these are offered, or the error. */
static int first_protocol(const char *endpoint, const char *paths, uint32_t *protocol)
{
	struct fi_provider *prov = ofi_provider(); /* loads parameters, the first time */
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	hints->ep_attr->type = FI_EP_RDM;
	util_params.endpoint = endpoint;
	util_params.paths = paths;
	ret = prov->getinfo(OFI_API, NULL, NULL, 0, hints, &info);
	*protocol = info ? info->ep_attr->protocol : 0;
	if (endpoint && *endpoint && info)
		cr_expect_null(info->next, "one kind alone");
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return ret;
}

Test(cpr_info, a_parameter_restricts_the_kind_of_endpoint)
{
	uint32_t protocol;

	cr_expect_eq(first_protocol("rc", "shm,nic,udp", &protocol), 0);
	cr_expect_eq(protocol, CPR_RC_PROTO);
	cr_expect_eq(first_protocol("ud", "shm,nic,udp", &protocol), 0);
	cr_expect_eq(protocol, CPR_UD_PROTO);
	cr_expect_eq(first_protocol("", "shm,udp", &protocol), 0);
	cr_expect_eq(protocol, CPR_RC_PROTO);
	cr_expect_eq(first_protocol("ud", "shm", &protocol), -FI_ENODATA, "it has no rings");
	cr_expect_eq(first_protocol("tcp", "shm,udp", &protocol), -FI_ENODATA);
}

Test(cpr_info, a_connected_endpoint_has_no_sources_to_choose_from)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info;

	hints->ep_attr->type = FI_EP_MSG;
	info = get(NULL, NULL, 0, hints);
	cr_expect_not(info->caps & (FI_DIRECTED_RECV | FI_SOURCE));
	cr_expect_not(info->rx_attr->caps & (FI_DIRECTED_RECV | FI_SOURCE));
	cr_expect(info->caps & FI_MSG);
	cr_expect(info->caps & FI_TAGGED);
	fi_freeinfo(info);
	hints->caps = FI_MSG | FI_DIRECTED_RECV;
	cr_expect_eq(get_ret(NULL, NULL, 0, hints), -FI_ENODATA);
	hints->caps = FI_MSG | FI_SOURCE;
	cr_expect_eq(get_ret(NULL, NULL, 0, hints), -FI_ENODATA);
	fi_freeinfo(hints);
}

Test(cpr_info, node_and_service_are_the_destination)
{
	struct fi_info *info = get("127.0.0.1", "9228", 0, NULL);

	expect_addr(info->dest_addr, info->dest_addrlen, "fi_sockaddr_in://127.0.0.1:9228");
	expect_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://127.0.0.1:0");
	fi_freeinfo(info);
}

Test(cpr_info, with_fi_source_they_are_the_source)
{
	struct fi_info *info = get("127.0.0.1", "9228", FI_SOURCE, NULL);

	expect_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://127.0.0.1:9228");
	cr_expect_null(info->dest_addr);
	fi_freeinfo(info);
	info = get(NULL, "9228", FI_SOURCE, NULL);
	expect_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://0.0.0.0:9228");
	fi_freeinfo(info);
}

Test(cpr_info, addresses_in_the_hints_are_kept)
{
	struct fi_info *hints = ofi_hints();
	struct sockaddr_in dest = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct fi_info *info;

	dest.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	hints->dest_addr = malloc(sizeof(dest));
	memcpy(hints->dest_addr, &dest, sizeof(dest));
	hints->dest_addrlen = sizeof(dest);
	info = get(NULL, NULL, 0, hints);
	expect_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://127.0.0.1:0");
	expect_addr(info->dest_addr, info->dest_addrlen, "fi_sockaddr_in://127.0.0.1:7");
	fi_freeinfo(info);
	/* A node wins over the hint. */
	info = get("127.0.0.2", "8", 0, hints);
	expect_addr(info->dest_addr, info->dest_addrlen, "fi_sockaddr_in://127.0.0.2:8");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_info, ipv6_comes_by_format_or_by_address)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info;

	hints->addr_format = FI_SOCKADDR_IN6;
	info = get("::1", "7", 0, hints);
	cr_expect_eq(info->addr_format, FI_SOCKADDR_IN6);
	cr_expect_eq(info->src_addrlen, sizeof(struct sockaddr_in6));
	expect_addr(info->dest_addr, info->dest_addrlen, "fi_sockaddr_in6://[::1]:7");
	fi_freeinfo(info);
	hints->addr_format = FI_FORMAT_UNSPEC;
	info = get("::1", "7", 0, hints);
	cr_expect_eq(info->addr_format, FI_SOCKADDR_IN6);
	fi_freeinfo(info);
	hints->addr_format = FI_SOCKADDR_IN;
	cr_expect_eq(get_ret("::1", "7", 0, hints), -FI_ENODATA);
	fi_freeinfo(hints);
}

Test(cpr_info, unresolved_names_return_no_data)
{
	cr_expect_eq(get_ret("no.such.host.invalid", "1", FI_NUMERICHOST, NULL), -FI_ENODATA);
	cr_expect_eq(get_ret("127.0.0.1", "no-such-service", 0, NULL), -FI_ENODATA);
	cr_expect_eq(get_ret(NULL, NULL, FI_SOURCE, NULL), -FI_ENODATA);
	cr_expect_eq(get_ret("198.51.100.77", "1", FI_SOURCE, NULL), -FI_ENODATA,
		     "not an address of this host");
}

Test(cpr_info, layers_are_declined)
{
	cr_expect_eq(get_ret(NULL, NULL, CPR_FLAG_CORE_PROV_ONLY, NULL), -FI_ENODATA);
	util_params.layering = 1;
	cr_expect_eq(get_ret(NULL, NULL, CPR_FLAG_CORE_PROV_ONLY, NULL), 0);
}

Test(cpr_info, a_layer_is_offered_no_more_to_inject_than_its_buffers)
{
	struct fi_info *info;

	ofi_provider(); /* loads the parameters */
	util_params.layering = 1;
	util_params.eager_max = 1 << 20;
	info = get(NULL, NULL, CPR_FLAG_CORE_PROV_ONLY, NULL);
	cr_expect_eq(info->tx_attr->inject_size, 16 << 10);
	fi_freeinfo(info);
	info = get(NULL, NULL, 0, NULL);
	cr_expect_eq(info->tx_attr->inject_size, 1 << 20);
	fi_freeinfo(info);
}

Test(cpr_info, a_named_layer_is_accepted)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("copyrpc");
	cr_expect_eq(get_ret(NULL, NULL, CPR_FLAG_CORE_PROV_ONLY, hints), 0);
	fi_freeinfo(hints);
}

Test(cpr_info, internal_flag_bits_change_nothing_else)
{
	cr_expect_eq(get_ret(NULL, NULL, (1ull << 58) | (1ull << 60) | (1ull << 61), NULL), 0);
}

Test(cpr_info, hints_of_open_mpi_are_met)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info = NULL;

	hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->op_flags = FI_COMPLETION;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->cq_data_size = 4;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_MAP;
	cr_assert_eq(ofi_provider()->getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info), 0);
	cr_expect_eq(info->tx_attr->op_flags, FI_COMPLETION, "or its sends complete in silence");
	cr_expect_eq(info->rx_attr->op_flags, FI_COMPLETION);
	cr_expect(info->caps & FI_DIRECTED_RECV);
	cr_expect_geq(info->domain_attr->cq_data_size, 4);
	cr_expect_eq(info->domain_attr->threading, FI_THREAD_DOMAIN);
	cr_expect_eq(info->mode, 0, "contexts stay the user's");
	cr_expect_leq(info->src_addrlen, 64);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

Test(cpr_info, a_returned_info_is_accepted_as_a_hint)
{
	struct fi_info *info = get(NULL, NULL, 0, NULL);

	cr_expect_eq(get_ret(NULL, NULL, 0, info), 0);
	fi_freeinfo(info);
}

Test(cpr_info, unsupported_requests_return_no_data)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG | FI_MULTICAST;
	cr_expect_eq(get_ret(NULL, NULL, 0, hints), -FI_ENODATA);
	hints->caps = FI_RMA | FI_HMEM;
	cr_expect_eq(get_ret(NULL, NULL, 0, hints), -FI_ENODATA);
	fi_freeinfo(hints);
}

Test(cpr_info, opened_objects_are_named)
{
	struct ofi_options opts = { 0 };
	struct ofi_pair p;
	struct fi_info *info;

	ofi_domain_open(&p, &opts);
	info = get(NULL, NULL, 0, NULL);
	cr_expect_eq(info->fabric_attr->fabric, p.fabric);
	cr_expect_eq(info->domain_attr->domain, p.domain);
	fi_freeinfo(info);
	ofi_pair_close(&p);
	info = get(NULL, NULL, 0, NULL);
	cr_expect_null(info->fabric_attr->fabric);
	cr_expect_null(info->domain_attr->domain);
	fi_freeinfo(info);
}

/* Returns the number of infos, which all must have this domain name. */
static unsigned count_of_domain(const struct fi_info *info, const char *name)
{
	unsigned cnt = 0;

	for (; info; info = info->next, cnt++)
		cr_expect_str_eq(info->domain_attr->name, name);
	return cnt;
}

Test(cpr_info, an_opened_object_in_the_hints_selects_its_infos)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct ofi_options opts = { 0 };
	struct ofi_pair p;

	ofi_domain_open(&p, &opts);
	hints->fabric_attr->fabric = p.fabric;
	info = get(NULL, NULL, 0, hints);
	cr_expect_gt(count_of_domain(info, CPR_RC_NAME), 0);
	cr_expect_eq(info->fabric_attr->fabric, p.fabric);
	fi_freeinfo(info);
	hints->fabric_attr->fabric = NULL;
	hints->domain_attr->domain = p.domain;
	info = get(NULL, NULL, 0, hints);
	cr_expect_gt(count_of_domain(info, CPR_RC_NAME), 0);
	cr_expect_eq(info->domain_attr->domain, p.domain);
	fi_freeinfo(info);
	hints->domain_attr->name = strdup(CPR_UD_NAME);
	cr_expect_eq(get_ret(NULL, NULL, 0, hints), -FI_ENODATA);
	fi_freeinfo(hints);
	ofi_pair_close(&p);
}

Test(cpr_info, a_fabric_in_the_hints_is_returned_with_its_own_domain)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *second;
	struct ofi_options opts = { 0 };
	struct ofi_pair p;

	ofi_domain_open(&p, &opts);
	cr_assert_eq(ofi_provider()->fabric(p.info->fabric_attr, &second, NULL), 0);
	hints->fabric_attr->fabric = second;
	info = get(NULL, NULL, 0, hints);
	cr_expect_eq(info->fabric_attr->fabric, second);
	cr_expect_null(info->domain_attr->domain);
	fi_freeinfo(info);
	hints->fabric_attr->fabric = p.fabric;
	info = get(NULL, NULL, 0, hints);
	cr_expect_eq(info->domain_attr->domain, p.domain);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	cr_expect_eq(fi_close(&second->fid), 0);
	ofi_pair_close(&p);
}
