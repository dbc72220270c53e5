/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "model/nic/nic_be.h"
#include "model/nic/nic_wqe.h"

enum {
	NIC_PIECE_INLINE = 0x80000000u,
	NIC_CE_ALWAYS = 2,
	NIC_WQE_TM_BYTES = 32,
	NIC_WQE_LKEY_NONE = 0x100,
};

uint8_t nic_wqe_copy(uint8_t *out, const uint8_t *ring, uint32_t block_cnt, uint16_t index)
{
	uint32_t block = index & (block_cnt - 1);
	uint32_t blocks;
	uint8_t ds;

	memcpy(out, ring + (uint64_t)block * NIC_WQE_BLOCK, NIC_WQE_BLOCK);
	ds = nic_be32_get(out + 4) & 0x3f;
	blocks = (ds + 3u) / 4;
	for (uint32_t i = 1; i < blocks; i++) {
		block = (index + i) & (block_cnt - 1);
		memcpy(out + (uint64_t)i * NIC_WQE_BLOCK, ring + (uint64_t)block * NIC_WQE_BLOCK,
		       NIC_WQE_BLOCK);
	}
	return ds;
}

void nic_wqe_ctrl(struct nic_wqe *wqe, const uint8_t *bytes)
{
	uint32_t first = nic_be32_get(bytes);
	uint32_t second = nic_be32_get(bytes + 4);

	wqe->opcode = first & 0xff;
	wqe->index = first >> 8 & 0xffff;
	wqe->opmod = first >> 24;
	wqe->qpn = second >> 8;
	wqe->ds = second & 0x3f;
	wqe->blocks = (wqe->ds + 3) / 4;
	wqe->stream = nic_be16_get(bytes + 9);
	wqe->fence = bytes[11] >> 5;
	wqe->signalled = (bytes[11] >> 2 & 3) >= NIC_CE_ALWAYS;
	wqe->solicited = bytes[11] >> 1 & 1;
	memcpy(&wqe->imm, bytes + 12, sizeof(wqe->imm));
}

static const char *nic_wqe_remote(struct nic_wqe *wqe, const uint8_t *bytes, uint32_t *pos,
				  uint32_t end)
{
	if (*pos + 16 > end)
		return "the WQE ends before its remote address segment: DS is too small";
	wqe->raddr = nic_be64_get(bytes + *pos);
	wqe->rkey = nic_be32_get(bytes + *pos + 8);
	*pos += 16;
	return NULL;
}

static const char *nic_wqe_atomic(struct nic_wqe *wqe, const uint8_t *bytes, uint32_t *pos,
				  uint32_t end)
{
	if (*pos + 16 > end)
		return "the WQE ends before its atomic segment: DS is too small";
	wqe->swap_add = nic_be64_get(bytes + *pos);
	wqe->compare = nic_be64_get(bytes + *pos + 8);
	*pos += 16;
	return NULL;
}

static const char *nic_wqe_inline(struct nic_wqe *wqe, const uint8_t *bytes, uint32_t *pos,
				  uint32_t end, uint32_t len)
{
	struct nic_piece *piece = &wqe->piece[wqe->piece_cnt++];

	if (len > end - *pos - 4)
		return "inline data reaches beyond the WQE: DS must count (4 + length) rounded "
		       "up to 16 bytes";
	*piece = (struct nic_piece){ .inl = bytes + *pos + 4, .len = len };
	wqe->inline_len += len;
	*pos += (4 + len + 15) & ~15u;
	return NULL;
}

static const char *nic_wqe_pointer(struct nic_wqe *wqe, const uint8_t *bytes, uint32_t *pos,
				   uint32_t len)
{
	struct nic_piece *piece = &wqe->piece[wqe->piece_cnt++];

	if (len == 0)
		return wqe->inline_len
			       ? "a data segment of length 0 stands beside inline data: the "
				 "device fails with local length errors now and then; leave the "
				 "segment out"
			       : "a data segment of length 0 means 2 GiB to the device; omit it";
	*piece = (struct nic_piece){ .addr = nic_be64_get(bytes + *pos + 8),
				     .len = len,
				     .lkey = nic_be32_get(bytes + *pos + 4) };
	*pos += 16;
	return NULL;
}

static const char *nic_wqe_pieces(struct nic_wqe *wqe, const uint8_t *bytes, uint32_t pos,
				  uint32_t end)
{
	while (pos < end) {
		uint32_t word = nic_be32_get(bytes + pos);
		uint32_t len = word & ~NIC_PIECE_INLINE;
		const char *wrong = word & NIC_PIECE_INLINE
					    ? nic_wqe_inline(wqe, bytes, &pos, end, len)
					    : nic_wqe_pointer(wqe, bytes, &pos, len);

		if (wrong)
			return wrong;
		wqe->len += len;
	}
	return NULL;
}

static const char *nic_wqe_atomic_pieces(const struct nic_wqe *wqe)
{
	if (wqe->inline_len)
		return "an atomic operation takes no inline data";
	if (wqe->len != 8 || wqe->piece_cnt != 1)
		return "a 64-bit atomic operation needs one data segment of 8 bytes for what was "
		       "there before";
	return NULL;
}

static const char *nic_wqe_tm_piece(struct nic_wqe *wqe, const uint8_t *bytes)
{
	struct nic_piece *piece = &wqe->piece[0];

	*piece = (struct nic_piece){ .addr = nic_be64_get(bytes + 8),
				     .len = nic_be32_get(bytes),
				     .lkey = nic_be32_get(bytes + 4) };
	if (!piece->len && piece->lkey == NIC_WQE_LKEY_NONE)
		return NULL;
	if (!piece->len || piece->len & NIC_PIECE_INLINE)
		return "the buffer of an APPEND is one data segment; an empty one has length 0 and "
		       "lkey 0x100";
	wqe->piece_cnt = 1;
	wqe->len = piece->len;
	return NULL;
}

/* Decodes a list operation, which begins at BYTES and ends at END. */
static const char *nic_wqe_tm(struct nic_wqe *wqe, const uint8_t *bytes, const uint8_t *end)
{
	size_t left = (size_t)(end - bytes);

	if (left < NIC_WQE_TM_BYTES)
		return "the WQE ends before its segment of tag matching: DS is too small";
	wqe->tm = (struct nic_tm_seg){ .op = bytes[0] >> 4,
				       .flags = bytes[1],
				       .index = nic_be16_get(bytes + 2),
				       .sw_cnt = nic_be16_get(bytes + 6) };
	memcpy(&wqe->tm.tag, bytes + 16, sizeof(wqe->tm.tag));
	memcpy(&wqe->tm.mask, bytes + 24, sizeof(wqe->tm.mask));
	if (wqe->tm.op > NIC_TM_REMOVE)
		return "a list operation is NOP (0), APPEND (1) or REMOVE (2), in bits 4 to 7";
	if (wqe->tm.op != NIC_TM_APPEND)
		return left == NIC_WQE_TM_BYTES ? NULL : "only an APPEND has a data segment";
	if (left != NIC_WQE_TM_BYTES + NIC_WQE_SEG)
		return "an APPEND has one data segment: DS is 4";
	return nic_wqe_tm_piece(wqe, bytes + NIC_WQE_TM_BYTES);
}

static const char *nic_wqe_of_kind(struct nic_wqe *wqe, enum nic_transport transport)
{
	switch (wqe->opcode) {
	case NIC_OP_SEND:
	case NIC_OP_SEND_IMM: return NULL;
	case NIC_OP_WRITE:
	case NIC_OP_WRITE_IMM: return transport == NIC_UD ? "a UD queue pair only sends" : NULL;
	case NIC_OP_SEND_INVAL:
	case NIC_OP_READ:
	case NIC_OP_CAS:
	case NIC_OP_FETCH_ADD:
		return transport != NIC_RC && transport != NIC_DC
			       ? "only an RC queue pair or a DC initiator can do this operation"
			       : NULL;
	case NIC_OP_TAG_MATCHING:
		return transport != NIC_RC ? "list operations are posted to an RC queue pair"
					   : NULL;
	default: return "the model knows no such opcode";
	}
}

static bool nic_wqe_is_remote(uint8_t opcode)
{
	return opcode == NIC_OP_WRITE || opcode == NIC_OP_WRITE_IMM || opcode == NIC_OP_READ ||
	       opcode == NIC_OP_CAS || opcode == NIC_OP_FETCH_ADD;
}

static const char *nic_wqe_body(struct nic_wqe *wqe, const uint8_t *bytes,
				enum nic_transport transport)
{
	bool atomic = wqe->opcode == NIC_OP_CAS || wqe->opcode == NIC_OP_FETCH_ADD;
	uint32_t pos = NIC_WQE_SEG, end = wqe->ds * NIC_WQE_SEG;
	const char *wrong = NULL;

	if (transport == NIC_UD || transport == NIC_DC) {
		uint32_t av_len = nic_av_decode(&wqe->av, bytes + pos, end - pos);

		if (!av_len)
			return "the WQE ends before its address vector (48 bytes where bit 31 of "
			       "its QPN word is set): DS is too small";
		pos += av_len;
	}
	if (nic_wqe_is_remote(wqe->opcode))
		wrong = nic_wqe_remote(wqe, bytes, &pos, end);
	if (!wrong && atomic)
		wrong = nic_wqe_atomic(wqe, bytes, &pos, end);
	if (!wrong)
		wrong = nic_wqe_pieces(wqe, bytes, pos, end);
	if (!wrong && atomic)
		wrong = nic_wqe_atomic_pieces(wqe);
	if (!wrong && wqe->opcode == NIC_OP_READ && wqe->inline_len)
		wrong = "a READ takes no inline data";
	return wrong;
}

const char *nic_wqe_decode(struct nic_wqe *wqe, const uint8_t *bytes, enum nic_transport transport)
{
	const char *wrong;

	wqe->rkey = 0;
	wqe->raddr = wqe->swap_add = wqe->compare = wqe->len = 0;
	wqe->inline_len = wqe->piece_cnt = 0;
	nic_wqe_ctrl(wqe, bytes);
	if (wqe->ds == 0)
		return "DS is 0: a WQE has at least its control segment";
	if (wqe->opcode == NIC_OP_NOP)
		return NULL;
	wrong = nic_wqe_of_kind(wqe, transport);
	if (wrong)
		return wrong;
	if (wqe->opcode == NIC_OP_TAG_MATCHING)
		return nic_wqe_tm(wqe, bytes + NIC_WQE_SEG, bytes + wqe->ds * NIC_WQE_SEG);
	return nic_wqe_body(wqe, bytes, transport);
}

const char *nic_wqe_name(uint8_t opcode)
{
	switch (opcode) {
	case NIC_OP_NOP: return "NOP";
	case NIC_OP_SEND_INVAL: return "SEND_INVAL";
	case NIC_OP_WRITE: return "WRITE";
	case NIC_OP_WRITE_IMM: return "WRITE_IMM";
	case NIC_OP_SEND: return "SEND";
	case NIC_OP_SEND_IMM: return "SEND_IMM";
	case NIC_OP_READ: return "READ";
	case NIC_OP_CAS: return "CAS";
	case NIC_OP_FETCH_ADD: return "FETCH_ADD";
	case NIC_OP_TAG_MATCHING: return "TAG_MATCHING";
	default: return "unknown";
	}
}
