/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A handle of the user's is looked up, not believed; and a request has one taker. */
#include "ofi/conn/cpr_request.h"

#include <criterion/criterion.h>

#include "ofi/domain/cpr_fabric.h"

static struct cpr_fabric fabric[2];

static void setup(void)
{
	for (int i = 0; i < 2; i++) {
		pthread_mutex_init(&fabric[i].request_lock, NULL);
		util_list_init(&fabric[i].requests);
	}
}

TestSuite(cpr_request, .init = setup);

Test(cpr_request, is_found_by_its_handle_alone_and_in_its_fabric_alone)
{
	struct cpr_request *request[3];
	struct fid other = { .fclass = FI_CLASS_CONNREQ };

	for (int i = 0; i < 3; i++) {
		request[i] = cpr_request_new(&fabric[0], NULL);
		cr_assert(request[i]);
		cr_expect_eq(request[i]->fid.fclass, FI_CLASS_CONNREQ);
	}
	cr_expect_null(cpr_request_take(&fabric[0], NULL));
	cr_expect_null(cpr_request_take(&fabric[0], &other));
	cr_expect_null(cpr_request_take(&fabric[1], &request[1]->fid));
	cr_expect_eq(cpr_request_take(&fabric[0], &request[1]->fid), request[1]);
	cr_expect_eq(cpr_request_take(&fabric[0], &request[2]->fid), request[2]);
	for (int i = 0; i < 3; i++)
		cpr_request_free(request[i]);
	cr_expect(util_list_is_empty(&fabric[0].requests));
}

Test(cpr_request, is_taken_once_and_not_when_it_is_gone)
{
	struct cpr_request *request = cpr_request_new(&fabric[0], NULL);
	struct fid *handle = &request->fid;

	cr_assert_eq(cpr_request_take(&fabric[0], handle), request);
	cr_expect_null(cpr_request_take(&fabric[0], handle));
	cpr_request_free(request);
	cr_expect_null(cpr_request_take(&fabric[0], handle));
}
