/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options, name and cancellation of an endpoint (fi_endpoint(3), fi_cm(3)): ofi/ep/cpr_ep_opt.c. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>

#include "ofi/base/cpr_offer.h"
#include "unit/ofi/ofi_fixture.h"

static struct ofi_pair p;

Test(cpr_ep_opt, getname_is_concrete_after_fi_enable)
{
	struct sockaddr_in sin;
	size_t len = 4;

	ofi_open_unbound(&p);
	ofi_bind_all(&p);
	cr_assert_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_getname(&p.ep[0]->fid, &sin, &len), -FI_ETOOSMALL);
	cr_expect_eq(len, sizeof(sin));
	cr_expect_eq(fi_getname(&p.ep[0]->fid, &sin, &len), 0);
	cr_expect_eq(sin.sin_family, AF_INET);
	cr_expect_eq(sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect_neq(sin.sin_port, 0);
	len = 0;
	cr_expect_eq(fi_getname(&p.ep[0]->fid, NULL, &len), -FI_ETOOSMALL);
	ofi_pair_close(&p);
}

Test(cpr_ep_opt, setname_counts_until_fi_enable)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in got;
	size_t len = sizeof(got);

	inet_pton(AF_INET, "127.0.0.5", &sin.sin_addr);
	ofi_open_unbound(&p);
	ofi_bind_all(&p);
	cr_expect_eq(fi_setname(&p.ep[0]->fid, &sin, 4), -FI_EINVAL);
	cr_expect_eq(fi_setname(&p.ep[0]->fid, &sin, sizeof(sin)), 0);
	cr_assert_eq(fi_enable(p.ep[0]), 0);
	cr_expect_eq(fi_getname(&p.ep[0]->fid, &got, &len), 0);
	cr_expect_eq(got.sin_addr.s_addr, sin.sin_addr.s_addr);
	cr_expect_eq(fi_setname(&p.ep[0]->fid, &sin, sizeof(sin)), -FI_EOPBADSTATE);
	ofi_pair_close(&p);
}

Test(cpr_ep_opt, options_of_device_memory_are_not_supported)
{
	struct ofi_options opts = { 0 };
	int p2p = FI_HMEM_P2P_REQUIRED;
	size_t len = sizeof(p2p);

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_setopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, len),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_XPU_TRIGGER, &p2p, &len),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(fi_setopt(&p.ep[0]->fid, 99, FI_OPT_FI_HMEM_P2P, &p2p, len), -FI_ENOPROTOOPT,
		     "another level");
	ofi_pair_close(&p);
}

Test(cpr_ep_opt, options_are_those_of_multi_receive)
{
	struct ofi_options opts = { 0 };
	size_t val = 0, len = sizeof(val);

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, &len),
		     0);
	cr_expect_eq(val, CPR_MULTI_RECV_MIN);
	val = 1000;
	cr_expect_eq(
		fi_setopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, sizeof(val)),
		0);
	val = 0;
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, &len),
		     0);
	cr_expect_eq(val, 1000);
	len = 1;
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, &len),
		     -FI_ETOOSMALL);
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &val, &len),
		     -FI_ENOPROTOOPT);
	cr_expect_eq(fi_setopt(&p.ep[0]->fid, 99, FI_OPT_MIN_MULTI_RECV, &val, sizeof(val)),
		     -FI_ENOPROTOOPT);
	ofi_pair_close(&p);
}

/** A refused name leaves the earlier one. */
Test(cpr_ep_opt, setname_refuses_addresses_of_other_hosts)
{
	struct sockaddr_in ours = { .sin_family = AF_INET }, far = ours, got;
	struct sockaddr_in6 other = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	size_t len = sizeof(got);

	inet_pton(AF_INET, "127.0.0.6", &ours.sin_addr);
	inet_pton(AF_INET, "192.0.2.1", &far.sin_addr); /* RFC 5737: no host has it */
	ofi_open_unbound(&p);
	ofi_bind_all(&p);
	cr_assert_eq(fi_setname(&p.ep[0]->fid, &ours, sizeof(ours)), 0);
	cr_expect_eq(fi_setname(&p.ep[0]->fid, &far, sizeof(far)), -FI_EADDRNOTAVAIL);
	cr_expect_eq(fi_setname(&p.ep[0]->fid, &other, sizeof(other)), -FI_EINVAL);
	cr_assert_eq(fi_enable(p.ep[0]), 0);
	cr_assert_eq(fi_getname(&p.ep[0]->fid, &got, &len), 0);
	cr_expect_eq(got.sin_addr.s_addr, ours.sin_addr.s_addr);
	ofi_pair_close(&p);
}

Test(cpr_ep_opt, an_option_has_its_size_or_stays_as_it_was)
{
	struct ofi_options opts = { 0 };
	size_t val = 77, len = sizeof(val);

	ofi_pair_open(&p, &opts);
	for (size_t bad = 0; bad <= 2 * sizeof(val); bad++)
		if (bad != sizeof(val))
			cr_expect_eq(fi_setopt(&p.ep[0]->fid, FI_OPT_ENDPOINT,
					       FI_OPT_MIN_MULTI_RECV, &val, bad),
				     -FI_EINVAL, "%zu bytes", bad);
	cr_expect_eq(fi_getopt(&p.ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val, &len),
		     0);
	cr_expect_eq(val, CPR_MULTI_RECV_MIN);
	ofi_pair_close(&p);
}

/** Of several receives with one context each call cancels one; then there is none. */
Test(cpr_ep_opt, each_cancelled_receive_ends_once)
{
	struct ofi_options opts = { 0 };
	char in[3], other;

	ofi_pair_open(&p, &opts);
	cr_expect_eq(fi_cancel(&p.ep[1]->fid, in), -FI_ENOENT);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(fi_trecv(p.ep[1], &in[i], 1, NULL, FI_ADDR_UNSPEC, i, 0, in), 0);
	cr_assert_eq(fi_trecv(p.ep[1], &other, 1, NULL, FI_ADDR_UNSPEC, 3, 0, &other), 0);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(fi_cancel(&p.ep[1]->fid, in), 0);
		ofi_pair_expect_error(&p, 1, FI_TAGGED | FI_RECV, FI_ECANCELED, in);
	}
	cr_expect_eq(fi_cancel(&p.ep[1]->fid, in), -FI_ENOENT);
	cr_assert_eq(OFI_RETRY(&p, fi_tinject(p.ep[0], "x", 1, p.addr[1], 3)), 0);
	ofi_pair_expect(&p, 1, FI_TAGGED | FI_RECV, &other);
	cr_expect_eq(other, 'x');
	ofi_pair_close(&p);
}
