/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Warning about memory that other hosts can reach: ofi/base/cpr_exposed.c. */
#include "ofi/base/cpr_exposed.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "ofi/base/cpr_domain.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/param.h"

static struct ofi_pair p;
static char buf[64];
static struct fid_mr *mr;

static void reg(uint64_t access)
{
	cr_assert_eq(fi_mr_reg(p.domain, buf, sizeof(buf), access, 0, 1, 0, &mr, NULL), 0);
}

static void close_all(void)
{
	cr_assert_eq(fi_close(&mr->fid), 0);
	ofi_pair_close(&p);
}

/** Sets `sin` to an address of an interface other than loopback. */
static void find_public(struct sockaddr_in *sin)
{
	struct ifaddrs *all, *it;
	bool found = false;

	cr_assert(!getifaddrs(&all));
	for (it = all; it && !found; it = it->ifa_next) {
		if (!it->ifa_addr || it->ifa_addr->sa_family != AF_INET ||
		    it->ifa_flags & IFF_LOOPBACK || !(it->ifa_flags & IFF_UP))
			continue;
		memcpy(sin, it->ifa_addr, sizeof(*sin));
		found = true;
	}
	freeifaddrs(all);
	if (!found)
		cr_skip_test("this host has no address but loopback");
}

/** Opens a domain with one endpoint at a public address. */
static void open_public(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct ofi_options opts = { 0 };
	struct sockaddr_in sin;

	find_public(&sin);
	ofi_domain_open(&p, &opts);
	memcpy(p.info->src_addr, &sin, sizeof(sin));
	((struct sockaddr_in *)p.info->src_addr)->sin_port = 0;
	cr_assert_eq(fi_av_open(p.domain, &av_attr, &p.av, NULL), 0);
	cr_assert_eq(fi_cq_open(p.domain, &cq_attr, &p.cq[0], NULL), 0);
	cr_assert_eq(fi_endpoint(p.domain, p.info, &p.ep[0], NULL), 0);
	cr_assert_eq(fi_ep_bind(p.ep[0], &p.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(p.ep[0], &p.cq[0]->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_enable(p.ep[0]), 0);
}

static struct cpr_domain *domain(void)
{
	return cpr_domain_of(p.domain);
}

Test(cpr_exposed, only_loopback_is_not_public)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_expect_not(cpr_exposed_is_public((struct sockaddr *)&in));
	in.sin_addr.s_addr = htonl(0x7FFFFFFE);
	cr_expect_not(cpr_exposed_is_public((struct sockaddr *)&in));
	in.sin_addr.s_addr = htonl(0xC0A80001);
	cr_expect(cpr_exposed_is_public((struct sockaddr *)&in));
	cr_expect_not(cpr_exposed_is_public((struct sockaddr *)&in6));
	in6.sin6_addr.s6_addr[0] = 0xFD;
	cr_expect(cpr_exposed_is_public((struct sockaddr *)&in6));
}

Test(cpr_exposed, memory_behind_loopback_gives_no_warning)
{
	struct ofi_options opts = { 0 };

	ofi_pair_open(&p, &opts);
	reg(FI_REMOTE_READ);
	cr_expect_not(cpr_exposed_check(domain()));
	close_all();
}

/* The registration itself has warned: the check has nothing left to report. */
Test(cpr_exposed, remote_memory_behind_a_public_address_gives_one_warning)
{
	open_public();
	reg(FI_SEND);
	cr_expect_not(cpr_exposed_check(domain()));
	cr_assert_eq(fi_close(&mr->fid), 0);
	util_params.job_key = "key";
	reg(FI_REMOTE_READ);
	cr_expect_not(cpr_exposed_check(domain()));
	util_params.job_key = NULL;
	util_params.paths = "shm";
	cr_expect_not(cpr_exposed_check(domain()));
	util_params.paths = "shm,nic,udp";
	cr_expect(cpr_exposed_check(domain()));
	cr_expect_not(cpr_exposed_check(domain()));
	close_all();
}
