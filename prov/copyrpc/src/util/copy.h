/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How are a few bytes moved without a call?
 *
 * Most messages are small and their length is not known at compile time; memcpy's call and dispatch cost
 * more than the move. Up to 64 bytes go with two or four overlapping loads and stores; more goes to memcpy.
 * Shown by test/unit/util/test_copy.c.
 */
#ifndef UTIL_COPY_H
#define UTIL_COPY_H

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

#define UTIL_COPY_SHORT 64u /* up to here nothing is called */

/** memcpy of at most UTIL_COPY_SHORT bytes. The areas do not overlap. */
static inline void util_copy_short(void *dst, const void *src, size_t len)
{
	if (len > 32) {
		UTIL_COPY_PAIR(unsigned __int128, dst, src, len);
		UTIL_COPY_PAIR(unsigned __int128, (uint8_t *)dst + 16, (const uint8_t *)src + 16,
			       len - 32);
	} else if (len >= 16)
		UTIL_COPY_PAIR(unsigned __int128, dst, src, len);
	else if (len >= 8)
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

/** memcpy that is quick for short, variable lengths. The areas do not overlap. */
static inline void util_copy(void *dst, const void *src, size_t len)
{
	if (len > UTIL_COPY_SHORT)
		memcpy(dst, src, len);
	else
		util_copy_short(dst, src, len);
}

/** Gathers `len` bytes out of iov, from its byte `skip` on. iov holds at least skip + len. */
void util_iov_gather(void *dst, const struct iovec *iov, size_t iov_cnt, size_t skip, size_t len);

/** Scatters `len` bytes into iov, from its byte `skip` on. iov holds at least skip + len. */
void util_iov_scatter(const struct iovec *iov, size_t iov_cnt, size_t skip, const void *src,
		      size_t len);

/** The part [skip, skip + len) of iov as an iov of its own in out[]: its count (<= out_max). */
size_t util_iov_slice(struct iovec *out, size_t out_max, const struct iovec *iov, size_t iov_cnt,
		      size_t skip, size_t len);

static inline size_t util_iov_len(const struct iovec *iov, size_t iov_cnt)
{
	size_t len = 0;

	while (iov_cnt--)
		len += iov[iov_cnt].iov_len;
	return len;
}

#endif
