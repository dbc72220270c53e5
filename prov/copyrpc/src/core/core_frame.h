/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages as core passes them to a channel: operation word, extension, bytes of the user, and
 * flags. A frame describes any message; a packed header describes one on the hot path, in a
 * register.
 */
#ifndef CORE_CORE_FRAME_H
#define CORE_CORE_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/wire_op.h"

#define CORE_FRAME_EXT_MAX 56

/** Message to send: operation word, extension bytes, user bytes. */
struct core_frame {
	uint32_t op; /* wire/wire_op.h */
	uint32_t ext_len;
	uint64_t ext[CORE_FRAME_EXT_MAX / 8];
	const struct iovec *iov;
	size_t iov_cnt;
	size_t iov_off; /* bytes of iov to skip */
	size_t len;     /* user bytes, from iov_off on */
};

enum core_send_flag {
	CORE_SEND_MORE = 1 << 0, /* FI_MORE: may wait for the next message or a flush */
	/*
	 * Leaves before the return: the sender may never call progress. Where the engine must wait
	 * for responses of the peer, the message may leave with the next progress; see
	 * CORE_SEND_STAYS.
	 */
	CORE_SEND_NOW = 1 << 1,
	/* For replies, never packed: ends a received message; its receiver may send one next. */
	CORE_SEND_ENDS = 1 << 2,
};

/*
 * Bits that send_buf may add to its result of 1. STAYS: the message, which had CORE_SEND_NOW or is
 * long, waits for responses of the peer. If it is complete for its sender, the caller sets
 * core_chan.stays and makes progress until that is false, but not for ever: the peer may not
 * respond. LONG: the message is of several packets.
 */
#define CORE_SEND_STAYS 2
#define CORE_SEND_LONG  4

/*
 * Packed header, an argument of send_buf: the operation word, the bytes of its extension, and enum
 * core_send_flag in the topmost bits. A flag makes the extension longer than any batch, so a
 * comparison with the free space of a batch fails without a separate test of the flags.
 */
#define CORE_PACKED_EXT_SHIFT  32
#define CORE_PACKED_FLAG_SHIFT 62

static inline uint64_t core_packed(uint32_t op, unsigned flags)
{
	return op | (uint64_t)wire_ext_len(op) << CORE_PACKED_EXT_SHIFT |
	       (uint64_t)flags << CORE_PACKED_FLAG_SHIFT;
}

/** Returns a packed header without flags with CORE_SEND_MORE. */
static inline uint64_t core_packed_more(uint64_t packed)
{
	return packed | (uint64_t)CORE_SEND_MORE << CORE_PACKED_FLAG_SHIFT;
}

static inline uint32_t core_packed_op(uint64_t packed)
{
	return (uint32_t)packed;
}

static inline uint32_t core_packed_ext_len(uint64_t packed)
{
	return (uint8_t)(packed >> CORE_PACKED_EXT_SHIFT);
}

static inline unsigned core_packed_flags(uint64_t packed)
{
	return (unsigned)(packed >> CORE_PACKED_FLAG_SHIFT);
}

#endif
