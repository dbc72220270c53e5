/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Layout of a completion in memory.
 *
 *	byte	2	wqe_id					0..31: the message itself if it was
 *		17	path bits of the destination LID	scattered to the CQE (format 1)
 *		22	source LID
 *		24	GRH << 28 | SL << 24 | source QPN
 *		32	user index (version 1) or SRQ number (version 0)
 *		36	immediate, as the sender wrote it
 *		40	application: 1 tag matching; then its opcode, and at 42 a tag's index
 *		44	byte count
 *		48	timestamp		in an error: 54 vendor syndrome, 55 syndrome
 *		56	opcode << 24 | QPN
 *		60	WQE counter
 *		62	signature
 *		63	opcode << 4 | format << 2 | solicited << 1 | owner
 *
 * A CQE of tag matching has in its bytes 0 to 15 the header of a matched message, or for a list
 * operation a bit of success (31 of the first word) and the count of unexpected messages at 4.
 *
 * A CQE of 128 bytes has this in its second half; the first holds up to 64 scattered bytes (format
 * 2). The owner bit is the parity of the lap, so byte 63 is stored last, with release.
 *
 * Compression (basic layout). N >= 2 completions that agree in all but a few fields become a title,
 * which is the first of them with format 3 and N as its byte count, in slot i, and arrays of eight
 * 8-byte mini CQEs in slots i+1, i+8, i+16, ...: mini CQE k is for slot i+k. The other slots are
 * not written at all, and nothing writes an owner bit into an array: software does both. A mini CQE
 * is WQE counter (2), opcode (1), 0, byte count (4) for the requester; checksum or hash (4), byte
 * count (4) for the responder, whose WQE counter counts up from the title's.
 */
#ifndef NIC_CQE_H
#define NIC_CQE_H

#include <stdbool.h>
#include <stdint.h>

enum nic_cqe_op {
	NIC_CQE_REQ = 0,
	NIC_CQE_RESP_WRITE_IMM = 1,
	NIC_CQE_RESP_SEND = 2,
	NIC_CQE_RESP_SEND_IMM = 3,
	NIC_CQE_RESP_SEND_INV = 4,
	NIC_CQE_RESIZE = 5,
	NIC_CQE_NO_PACKET = 6,
	NIC_CQE_REQ_ERR = 13,
	NIC_CQE_RESP_ERR = 14,
	NIC_CQE_INVALID = 15,
};

/* Opcodes of tag matching. */
enum nic_app_op {
	NIC_APP_NONE = 0,
	NIC_APP_CONSUMED = 1, /* matched, the data follow */
	NIC_APP_EXPECTED = 2, /* the data of a match are there */
	NIC_APP_UNEXPECTED = 3,
	NIC_APP_NO_TAG = 4,
	NIC_APP_APPEND = 5,
	NIC_APP_REMOVE = 6,
	NIC_APP_NOOP = 7,
	NIC_APP_CONSUMED_MSG = 0xa,  /* matched, and the data are there */
	NIC_APP_CONSUMED_RNDV = 0xb, /* matched a rendezvous that software must finish */
	NIC_APP_CANCELED = 0xc,      /* the data of a match do not come */
};

enum nic_syndrome {
	NIC_SYN_OK = 0,
	NIC_SYN_LOCAL_LENGTH = 0x01,
	NIC_SYN_LOCAL_QP_OP = 0x02,
	NIC_SYN_LOCAL_PROT = 0x04,
	NIC_SYN_FLUSH = 0x05,
	NIC_SYN_BAD_RESPONSE = 0x10,
	NIC_SYN_LOCAL_ACCESS = 0x11,
	NIC_SYN_REMOTE_INVALID = 0x12,
	NIC_SYN_REMOTE_ACCESS = 0x13,
	NIC_SYN_REMOTE_OP = 0x14,
	NIC_SYN_RETRY_EXCEEDED = 0x15,
	NIC_SYN_RNR_EXCEEDED = 0x16,
	NIC_SYN_REMOTE_ABORTED = 0x22,
};

enum {
	NIC_CQE_BYTES = 64,
	NIC_CQE_HEAD_BYTES = 16,
	NIC_CQE_APP_TM = 1,
	NIC_CQE_SCATTER_32 = 1, /* formats */
	NIC_CQE_SCATTER_64 = 2,
	NIC_CQE_COMPRESSED = 3,
	NIC_MINI_BYTES = 8,
	NIC_MINI_PER_SLOT = 8,
};

struct nic_cqe {
	uint8_t op;       /* enum nic_cqe_op */
	uint8_t syndrome; /* vendor syndrome of an error */
	uint8_t vendor_syndrome;
	uint8_t wqe_op; /* the requester's opcode */
	uint8_t sl;
	uint8_t path_bits;
	bool grh;
	bool solicited;
	uint16_t slid;
	uint16_t wqe_counter;
	uint32_t qpn;
	uint32_t src_qpn;
	uint32_t user_index; /* or the SRQ number */
	uint32_t imm;        /* most significant byte first */
	uint32_t byte_cnt;
	uint64_t timestamp;
	uint8_t app_op; /* enum nic_app_op */
	uint16_t app_info;
	uint8_t head[NIC_CQE_HEAD_BYTES]; /* bytes 0 to 15 if app_op is not 0 */
	uint8_t scatter_len;              /* 0, or bytes of the message that go into the CQE */
	uint8_t scatter[64];
};

/*
 * Writes CQE without its byte 63 to SLOT of SIZE bytes (64 or 128) and returns that byte. OWNER is
 * the parity of the lap.
 */
uint8_t nic_cqe_encode(uint8_t *slot, uint32_t size, const struct nic_cqe *cqe, bool owner);

/* Passes the CQE to software. */
void nic_cqe_publish(uint8_t *slot, uint32_t size, uint8_t op_own);

/*
 * Returns true if the CQE whose 64 bytes are at NEXT fits as the K-th into the run whose title is
 * at TITLE. The last byte of each is a separate argument, because it is not published yet.
 */
bool nic_cqe_joins(const uint8_t *title, uint8_t title_op_own, const uint8_t *next,
		   uint8_t next_op_own, uint32_t k);

/* Returns the slot, counted from the title's, and the byte in it of mini CQE K of a run. */
uint32_t nic_mini_place(uint32_t k, uint32_t *byte);

/* Encodes the mini CQE of the completion whose 64 bytes are at CQE64. */
void nic_mini_encode(uint8_t *at, const uint8_t *cqe64, bool requester);

/* Converts the first CQE of a run of CNT into its title. Returns the byte to publish. */
uint8_t nic_mini_title(uint8_t *cqe64, uint8_t op_own, uint32_t cnt);

const char *nic_syndrome_name(uint8_t syndrome);

#endif
