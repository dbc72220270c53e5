/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies between flat memory and I/O vectors: see copy.h. */
#include "util/copy.h"

#include "util/bits.h"

size_t util_iov_slice(struct iovec *out, size_t out_max, const struct iovec *iov, size_t iov_cnt,
		      size_t skip, size_t len)
{
	size_t out_cnt = 0;
	size_t i, part;

	for (i = 0; i < iov_cnt && len && out_cnt < out_max; i++) {
		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		part = iov[i].iov_len - skip;
		part = part < len ? part : len;
		out[out_cnt].iov_base = (uint8_t *)iov[i].iov_base + skip;
		out[out_cnt++].iov_len = part;
		len -= part;
		skip = 0;
	}
	return out_cnt;
}

void util_iov_gather(void *dst, const struct iovec *iov, size_t iov_cnt, size_t skip, size_t len)
{
	uint8_t *d = dst;
	struct iovec one;

	while (len) {
		if (!util_iov_slice(&one, 1, iov, iov_cnt, skip, len))
			return;
		util_copy(d, one.iov_base, one.iov_len);
		d += one.iov_len;
		skip += one.iov_len;
		len -= one.iov_len;
	}
}

void util_iov_scatter(const struct iovec *iov, size_t iov_cnt, size_t skip, const void *src,
		      size_t len)
{
	const uint8_t *s = src;
	struct iovec one;

	while (len) {
		if (!util_iov_slice(&one, 1, iov, iov_cnt, skip, len))
			return;
		util_copy(one.iov_base, s, one.iov_len);
		s += one.iov_len;
		skip += one.iov_len;
		len -= one.iov_len;
	}
}
