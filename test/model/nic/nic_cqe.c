/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "model/nic/nic_be.h"
#include "model/nic/nic_cqe.h"

/* Value of bytes that the device leaves undefined, so that software cannot rely on 0. */
enum { NIC_CQE_UNDEFINED = 0xa5 };

static void nic_cqe_scatter(uint8_t *slot, uint32_t size, const struct nic_cqe *cqe)
{
	uint8_t *to = size == 128 ? slot : slot + size - NIC_CQE_BYTES;

	memcpy(to, cqe->scatter, cqe->scatter_len);
}

static uint8_t nic_cqe_format(uint32_t size, const struct nic_cqe *cqe)
{
	if (!cqe->scatter_len)
		return 0;
	return size == 128 ? NIC_CQE_SCATTER_64 : NIC_CQE_SCATTER_32;
}

static void nic_cqe_encode_app(uint8_t *cqe64, const struct nic_cqe *cqe)
{
	memset(cqe64 + 40, 0, 4);
	if (!cqe->app_op)
		return;
	memcpy(cqe64, cqe->head, sizeof(cqe->head));
	cqe64[40] = NIC_CQE_APP_TM;
	cqe64[41] = cqe->app_op;
	nic_be16_put(cqe64 + 42, cqe->app_info);
}

static void nic_cqe_encode_tail(uint8_t *cqe64, const struct nic_cqe *cqe)
{
	bool error = cqe->op == NIC_CQE_REQ_ERR || cqe->op == NIC_CQE_RESP_ERR;

	nic_be32_put(cqe64 + 32, cqe->user_index & 0xffffff);
	memcpy(cqe64 + 36, &cqe->imm, sizeof(cqe->imm));
	nic_be32_put(cqe64 + 44, cqe->byte_cnt);
	if (error) {
		memset(cqe64 + 48, 0, 6);
		cqe64[54] = cqe->vendor_syndrome;
		cqe64[55] = cqe->syndrome;
	} else {
		nic_be64_put(cqe64 + 48, cqe->timestamp);
	}
	nic_be32_put(cqe64 + 56, (uint32_t)cqe->wqe_op << 24 | (cqe->qpn & 0xffffff));
	nic_be16_put(cqe64 + 60, cqe->wqe_counter);
	cqe64[62] = 0;
}

uint8_t nic_cqe_encode(uint8_t *slot, uint32_t size, const struct nic_cqe *cqe, bool owner)
{
	uint8_t *cqe64 = slot + size - NIC_CQE_BYTES;

	memset(slot, NIC_CQE_UNDEFINED, size - NIC_CQE_BYTES);
	memset(cqe64, 0, 32);
	nic_be16_put(cqe64 + 2, cqe->wqe_counter);
	cqe64[17] = cqe->path_bits & 0x7f;
	nic_be16_put(cqe64 + 22, cqe->slid);
	nic_be32_put(cqe64 + 24, (uint32_t)cqe->grh << 28 | (uint32_t)(cqe->sl & 0xf) << 24 |
					 (cqe->src_qpn & 0xffffff));
	nic_cqe_encode_app(cqe64, cqe);
	nic_cqe_encode_tail(cqe64, cqe);
	if (cqe->scatter_len)
		nic_cqe_scatter(slot, size, cqe);
	return cqe->op << 4 | nic_cqe_format(size, cqe) << 2 | cqe->solicited << 1 | owner;
}

void nic_cqe_publish(uint8_t *slot, uint32_t size, uint8_t op_own)
{
	__atomic_store_n(slot + size - 1, op_own, __ATOMIC_RELEASE);
}

bool nic_cqe_joins(const uint8_t *title, uint8_t title_op_own, const uint8_t *next,
		   uint8_t next_op_own, uint32_t k)
{
	bool requester = title_op_own >> 4 == NIC_CQE_REQ;

	if (title_op_own >> 1 != next_op_own >> 1 || title_op_own >> 4 >= NIC_CQE_RESIZE ||
	    (title_op_own >> 2 & 3) != 0 || title[40] || next[40])
		return false;
	if (memcmp(title, next, 2) != 0 || memcmp(title + 4, next + 4, 40) != 0 ||
	    memcmp(title + 57, next + 57, 3) != 0)
		return false;
	if (requester)
		return true;
	return title[56] == next[56] &&
	       nic_be16_get(next + 60) == (uint16_t)(nic_be16_get(title + 60) + k);
}

uint32_t nic_mini_place(uint32_t k, uint32_t *byte)
{
	*byte = k % NIC_MINI_PER_SLOT * NIC_MINI_BYTES;
	return k < NIC_MINI_PER_SLOT ? 1 : k / NIC_MINI_PER_SLOT * NIC_MINI_PER_SLOT;
}

void nic_mini_encode(uint8_t *at, const uint8_t *cqe64, bool requester)
{
	memset(at, 0, 4);
	if (requester) {
		memcpy(at, cqe64 + 60, 2);
		at[2] = cqe64[56];
	}
	memcpy(at + 4, cqe64 + 44, 4);
}

uint8_t nic_mini_title(uint8_t *cqe64, uint8_t op_own, uint32_t cnt)
{
	nic_be32_put(cqe64 + 44, cnt);
	return op_own | NIC_CQE_COMPRESSED << 2;
}

const char *nic_syndrome_name(uint8_t syndrome)
{
	switch (syndrome) {
	case NIC_SYN_LOCAL_LENGTH: return "local length error";
	case NIC_SYN_LOCAL_QP_OP: return "local QP operation error";
	case NIC_SYN_LOCAL_PROT: return "local protection error";
	case NIC_SYN_FLUSH: return "flushed";
	case NIC_SYN_BAD_RESPONSE: return "bad response";
	case NIC_SYN_LOCAL_ACCESS: return "local access error";
	case NIC_SYN_REMOTE_INVALID: return "remote invalid request";
	case NIC_SYN_REMOTE_ACCESS: return "remote access error";
	case NIC_SYN_REMOTE_OP: return "remote operation error";
	case NIC_SYN_RETRY_EXCEEDED: return "retry count exceeded";
	case NIC_SYN_RNR_EXCEEDED: return "RNR retry count exceeded";
	case NIC_SYN_REMOTE_ABORTED: return "remote aborted";
	default: return "no error";
	}
}
