/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Objects, and entries of op tables for calls that are not offered (cpr_fid.h). */
#include "ofi/base/cpr_fid.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

Test(cpr_fid, a_new_object_has_its_class_and_is_zero_behind_it)
{
	static struct fi_ops ops = CPR_FID_OPS(NULL, cpr_no_bind, cpr_no_control);
	struct {
		struct fid fid;
		uint8_t rest[100];
	} *object = cpr_fid_new(sizeof(*object), FI_CLASS_CQ, &ops, &ops);

	cr_assert(object);
	cr_expect_eq(object->fid.fclass, FI_CLASS_CQ);
	cr_expect_eq(object->fid.context, &ops);
	cr_expect_eq(object->fid.ops, &ops);
	cr_expect_eq(ops.bind, cpr_no_bind);
	cr_expect_eq(ops.ops_open, cpr_no_ops_open, "refused");
	for (size_t i = 0; i < sizeof(object->rest); i++)
		cr_expect_eq(object->rest[i], 0);
	free(object);
}

Test(cpr_fid, every_entry_refuses_and_touches_nothing)
{
	cr_expect_eq(cpr_no_bind(NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(cpr_no_control(NULL, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_ops_open(NULL, NULL, 0, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_tx_ctx(NULL, 0, NULL, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_rx_ctx(NULL, 0, NULL, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_size_left(NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_getpeer(NULL, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_connect(NULL, NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(cpr_no_listen(NULL), -FI_ENOSYS);
	cr_expect_eq(cpr_no_accept(NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(cpr_no_reject(NULL, NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(cpr_no_shutdown(NULL, 0), -FI_ENOSYS);
}

Test(cpr_fid, options_are_refused_as_unknown)
{
	cr_expect_eq(cpr_no_getopt(NULL, 0, 0, NULL, NULL), -FI_ENOPROTOOPT);
	cr_expect_eq(cpr_no_setopt(NULL, 0, 0, NULL, 0), -FI_ENOPROTOOPT);
}
