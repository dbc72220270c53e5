/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Golden error CQE: origin, struct mlx5_err_cqe of rdma-core; syndromes, its enum. */
#include "dev/mlx5/m5_cqe_err.h"

#include <criterion/criterion.h>
#include <infiniband/mlx5dv.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/mlx5/m5_cq.h"

TestSuite(m5_cqe_err, .timeout = 200);

static struct m5_err decode(uint8_t op, uint8_t syndrome, uint8_t vendor)
{
	/* 56: WQE opcode READ, QP number; 60: counter */
	uint8_t bytes[64] = {
		[54] = vendor, [55] = syndrome, [56] = 0x10, 0x12, 0x34, 0x56, 0xab, 0xcd, 0, op
	};
	struct m5_cqe cqe;
	struct m5_err err;

	memcpy(&cqe, bytes, sizeof(cqe));
	cr_assert(m5_cqe_is_error(&cqe));
	m5_cqe_err_decode(&cqe, &err);
	return err;
}

Test(m5_cqe_err, decodes_qp_number_counter_and_opcode)
{
	struct m5_err err = decode(0xd1, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, 0x81);

	cr_expect_eq(err.status, -FI_ETIMEDOUT);
	cr_expect_eq(err.syndrome, 0x15);
	cr_expect_eq(err.vendor, 0x81);
	cr_expect_eq(err.qpn, 0x123456);
	cr_expect_eq(err.wqe_counter, 0xabcd);
	cr_expect_eq(err.wqe_opcode, M5_OP_READ);
	cr_expect(err.requester);
	cr_expect(!err.flushed);
	cr_expect(!decode(0xe0, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR, 0).requester);
}

Test(m5_cqe_err, every_syndrome_of_the_manual_has_its_own_advice)
{
	static const struct {
		uint8_t syndrome;
		int status;
	} known[] = {
		{ MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, -FI_EIO },
		{ MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, -FI_EIO },
		{ MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, -FI_EACCES },
		{ MLX5_CQE_SYNDROME_WR_FLUSH_ERR, -FI_ECANCELED },
		{ MLX5_CQE_SYNDROME_MW_BIND_ERR, -FI_EIO },
		{ MLX5_CQE_SYNDROME_BAD_RESP_ERR, -FI_EIO },
		{ MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR, -FI_EACCES },
		{ MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, -FI_EIO },
		{ MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, -FI_EACCES },
		{ MLX5_CQE_SYNDROME_REMOTE_OP_ERR, -FI_EIO },
		{ MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, -FI_ETIMEDOUT },
		{ MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, -FI_ETIMEDOUT },
		{ MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR, -FI_ECONNABORTED },
	};
	const char *unknown = decode(0xd0, 0x7f, 0).name;
	size_t i, k;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct m5_err err = decode(0xd0, known[i].syndrome, 0);

		cr_expect_eq(err.status, known[i].status, "%#x", known[i].syndrome);
		cr_expect_str_neq(err.name, unknown);
		cr_expect_gt(strlen(err.advice), 20);
		for (k = 0; k < i; k++)
			cr_expect_str_neq(err.name, decode(0xd0, known[k].syndrome, 0).name);
	}
}

Test(m5_cqe_err, unknown_syndrome_is_an_error)
{
	struct m5_err err = decode(0xd0, 0x7f, 0);

	cr_expect_eq(err.status, -FI_EIO);
	cr_expect_not_null(err.advice);
	cr_expect_eq(decode(0xd0, 0, 0).status, -FI_EIO);
}

Test(m5_cqe_err, only_the_flush_syndrome_is_marked_flushed)
{
	cr_expect(decode(0xd0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, 0xf9).flushed);
	cr_expect(!decode(0xd0, MLX5_CQE_SYNDROME_REMOTE_OP_ERR, 0xf9).flushed);
}

Test(m5_cqe_err, page_fault_of_on_demand_memory_has_its_own_advice)
{
	cr_expect_str_neq(decode(0xd0, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
				 MLX5_CQE_VENDOR_SYNDROME_ODP_PFAULT)
				  .advice,
			  decode(0xd0, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, 0x88).advice);
}
