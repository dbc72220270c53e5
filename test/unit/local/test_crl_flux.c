/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Members call each other and themselves; replies may be deferred. */
#include <copyrpc/flux.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define MEMBERS 3

Test(crl_flux, every_member_calls_every_member)
{
	struct crl_flux *flux = NULL;
	struct crl_member *members[MEMBERS];
	struct crl_request requests[MEMBERS];
	struct crl_response responses[MEMBERS];

	cr_assert_eq(crl_flux_open(&flux, MEMBERS, NULL), 0);
	for (uint32_t i = 0; i < MEMBERS; i++)
		members[i] = crl_flux_member(flux, i);
	for (uint32_t from = 0; from < MEMBERS; from++)
		for (uint32_t to = 0; to < MEMBERS; to++)
			cr_assert_eq(crl_member_call(members[from], to, &from, sizeof(from),
						     members[to], 0),
				     0);
	for (uint32_t to = 0; to < MEMBERS; to++) {
		cr_assert_eq(crl_member_take(members[to], requests, MEMBERS), MEMBERS);
		for (uint32_t i = 0; i < MEMBERS; i++) {
			cr_assert_eq(memcmp(requests[i].data, &requests[i].client, 4), 0);
			cr_assert_eq(
				crl_member_reply(members[to], requests[i].handle, &to, sizeof(to)),
				0);
		}
	}
	for (uint32_t from = 0; from < MEMBERS; from++) {
		cr_assert_eq(crl_member_poll(members[from], responses, MEMBERS), MEMBERS);
		for (uint32_t i = 0; i < MEMBERS; i++) {
			cr_assert_eq(responses[i].context, members[responses[i].peer]);
			cr_assert_eq(memcmp(responses[i].data, &responses[i].peer, 4), 0);
		}
	}
	crl_flux_close(flux);
}
