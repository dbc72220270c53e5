/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection requests: handles are looked up, and one endpoint takes a request. */
#include "ofi/conn/cpr_connreq.h"

#include <criterion/criterion.h>

#include "ofi/base/cpr_fabric.h"

static struct cpr_fabric fabric[2];

static void setup(void)
{
	for (int i = 0; i < 2; i++) {
		pthread_mutex_init(&fabric[i].request_lock, NULL);
		util_list_init(&fabric[i].requests);
	}
}

TestSuite(cpr_connreq, .init = setup);

Test(cpr_connreq, a_request_is_found_by_its_handle_in_its_fabric_only)
{
	struct cpr_connreq *request[3];
	struct fid other = { .fclass = FI_CLASS_CONNREQ };

	for (int i = 0; i < 3; i++) {
		request[i] = cpr_connreq_new(&fabric[0], NULL);
		cr_assert(request[i]);
		cr_expect_eq(request[i]->fid.fclass, FI_CLASS_CONNREQ);
	}
	cr_expect_null(cpr_connreq_take(&fabric[0], NULL));
	cr_expect_null(cpr_connreq_take(&fabric[0], &other));
	cr_expect_null(cpr_connreq_take(&fabric[1], &request[1]->fid));
	cr_expect_eq(cpr_connreq_take(&fabric[0], &request[1]->fid), request[1]);
	cr_expect_eq(cpr_connreq_take(&fabric[0], &request[2]->fid), request[2]);
	for (int i = 0; i < 3; i++)
		cpr_connreq_free(request[i]);
	cr_expect(util_list_is_empty(&fabric[0].requests));
}

Test(cpr_connreq, a_request_is_taken_once)
{
	struct cpr_connreq *request = cpr_connreq_new(&fabric[0], NULL);
	struct fid *handle = &request->fid;

	cr_assert_eq(cpr_connreq_take(&fabric[0], handle), request);
	cr_expect_null(cpr_connreq_take(&fabric[0], handle));
	cpr_connreq_free(request);
	cr_expect_null(cpr_connreq_take(&fabric[0], handle));
}
