/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of short, variable length without a function call, and copies to and from I/O vectors.
 *
 * Most messages are small and their length is not known at compile time. The call and the dispatch
 * of memcpy then cost more than the copy. Up to 64 bytes take two or four overlapping loads and
 * stores; longer copies call memcpy.
 */
#ifndef UTIL_COPY_H
#define UTIL_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#define UTIL_COPY_PAIR(type, dst, src, len)                                                        \
	do {                                                                                       \
		type first_, last_;                                                                \
		memcpy(&first_, (src), sizeof(type));                                              \
		memcpy(&last_, (const uint8_t *)(src) + (len) - sizeof(type), sizeof(type));       \
		memcpy((dst), &first_, sizeof(type));                                              \
		memcpy((uint8_t *)(dst) + (len) - sizeof(type), &last_, sizeof(type));             \
	} while (0)

#define UTIL_COPY_SHORT 64u /* bytes copied without a function call */

/** Copies at most UTIL_COPY_SHORT bytes. The areas must not overlap. */
static inline void util_copy_short(void *dst, const void *src, size_t len)
{
	if (len > 16) {
		UTIL_COPY_PAIR(unsigned __int128, dst, src, len);
		if (len > 32)
			UTIL_COPY_PAIR(unsigned __int128, (uint8_t *)dst + 16,
				       (const uint8_t *)src + 16, len - 32);
	} else if (len >= 8)
		UTIL_COPY_PAIR(uint64_t, dst, src, len);
	else if (len >= 4)
		UTIL_COPY_PAIR(uint32_t, dst, src, len);
	else if (len) {
		uint8_t *d = dst;
		const uint8_t *s = src;

		d[0] = s[0];
		d[len / 2] = s[len / 2];
		d[len - 1] = s[len - 1];
	}
}

/** Copies `len` bytes; fast for short, variable lengths. The areas must not overlap. */
static inline void util_copy(void *dst, const void *src, size_t len)
{
	if (len > UTIL_COPY_SHORT)
		memcpy(dst, src, len);
	else
		util_copy_short(dst, src, len);
}

/**
 * Copies `len` bytes from iov, starting at its byte `skip`. iov holds at least skip + len bytes.
 */
void util_iov_gather(void *dst, const struct iovec *iov, size_t iov_cnt, size_t skip, size_t len);

/**
 * Copies `len` bytes into iov, starting at its byte `skip`. iov holds at least skip + len bytes.
 */
void util_iov_scatter(const struct iovec *iov, size_t iov_cnt, size_t skip, const void *src,
		      size_t len);

/**
 * Stores the part [skip, skip + len) of iov in out[]. Returns the entries used, at most out_max.
 */
size_t util_iov_slice(struct iovec *out, size_t out_max, const struct iovec *iov, size_t iov_cnt,
		      size_t skip, size_t len);

/**
 * Adds up the lengths of a vector that a user passed. Returns false if they are more than `max`
 * together, which no sum that overflows can hide; *len is set otherwise.
 */
static inline bool util_iov_sum(const struct iovec *iov, size_t iov_cnt, size_t max, size_t *len)
{
	size_t sum = 0;

	for (size_t i = 0; i < iov_cnt; i++) {
		if (iov[i].iov_len > max - sum)
			return false;
		sum += iov[i].iov_len;
	}
	*len = sum;
	return true;
}

/** Returns the bytes of a vector whose sum util_iov_sum has checked. */
static inline size_t util_iov_len(const struct iovec *iov, size_t iov_cnt)
{
	size_t len = 0;

	while (iov_cnt--)
		len += iov[iov_cnt].iov_len;
	return len;
}

#endif
