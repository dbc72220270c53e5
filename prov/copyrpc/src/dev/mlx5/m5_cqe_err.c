/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Error CQEs: the syndromes of the programmer's manual, with libfabric's error and a remedy.
 *
 * A vendor syndrome names the unit of the device that found the error. One is public
 * (<infiniband/mlx5dv.h>). The log shows all of them.
 */
#include "dev/mlx5/m5_cqe_err.h"

#include <endian.h>
#include <rdma/fi_errno.h>
#include <stddef.h>

#define M5_VENDOR_PAGE_FAULT 0x93

struct m5_syndrome {
	uint8_t code;
	int status;
	const char *name;
	const char *advice;
};

static const struct m5_syndrome m5_syndromes[] = {
	{ 0x01, -FI_EIO, "local length error",
	  "a message was longer than the device's limit or the peer's buffer; please report it" },
	{ 0x02, -FI_EIO, "local queue pair operation error",
	  "the device refused a work request as malformed; please report it with the vendor code" },
	{ 0x04, -FI_EACCES, "local protection error",
	  "the device may not read a local buffer: it was unmapped or freed before its operation "
	  "had completed, or the process forked without RDMAV_FORK_SAFE=1" },
	{ 0x05, -FI_ECANCELED, "flushed", "the queue pair failed earlier; see its first error" },
	{ 0x06, -FI_EIO, "memory window bind error", "please report it with the vendor code" },
	{ 0x10, -FI_EIO, "bad response",
	  "the peer's response had an unexpected opcode; look for a bad cable or switch "
	  "(perfquery, ethtool -S)" },
	{ 0x11, -FI_EACCES, "local access error",
	  "the peer wrote or read memory of ours that is not, or no longer, registered for it" },
	{ 0x12, -FI_EIO, "remote invalid request",
	  "the peer's device refused the request; compare firmware and MTU of both ends "
	  "(ibv_devinfo -v)" },
	{ 0x13, -FI_EACCES, "remote access error",
	  "the peer's memory was unregistered, or the peer was restarted, while in use" },
	{ 0x14, -FI_EIO, "remote operation error",
	  "the peer's queue pair failed while it served the request; see its log" },
	{ 0x15, -FI_ETIMEDOUT, "retries exceeded",
	  "the peer does not respond: its process is gone, its host is down, or the network "
	  "between is (ibv_devinfo: port state; RoCE: GID index and PFC or ECN of the switches)" },
	{ 0x16, -FI_ETIMEDOUT, "receiver-not-ready retries exceeded",
	  "the peer did not make progress for too long: it must call fi_cq_read now and then" },
	{ 0x22, -FI_ECONNABORTED, "remote aborted", "the peer ended the operation; see its log" },
};

static const struct m5_syndrome m5_syndrome_unknown = {
	0, -FI_EIO, "unknown syndrome",
	"please report it with the vendor code and the firmware's version"
};

static const struct m5_syndrome *m5_syndrome_find(uint8_t code)
{
	size_t i;

	for (i = 0; i < sizeof(m5_syndromes) / sizeof(m5_syndromes[0]); i++)
		if (m5_syndromes[i].code == code)
			return &m5_syndromes[i];
	return &m5_syndrome_unknown;
}

void m5_cqe_err_decode(const struct m5_cqe *cqe, struct m5_err *err)
{
	const struct m5_err_cqe *bad = (const void *)cqe;
	const struct m5_syndrome *syndrome = m5_syndrome_find(bad->syndrome);

	*err = (struct m5_err){
		.status = syndrome->status,
		.syndrome = bad->syndrome,
		.vendor = bad->vendor_syndrome,
		.qpn = be32toh(bad->sop_qpn) & M5_QPN_MASK,
		.wqe_counter = be16toh(bad->wqe_counter),
		.wqe_opcode = (uint8_t)(be32toh(bad->sop_qpn) >> 24),
		.requester = bad->op_own >> 4 == M5_CQE_REQ_ERR,
		.flushed = bad->syndrome == 0x05,
		.name = syndrome->name,
		.advice = syndrome->advice,
	};
	if (err->vendor == M5_VENDOR_PAGE_FAULT)
		err->advice =
			"an on-demand page of memory could not be brought in: it was unmapped "
			"while the device used it";
}
