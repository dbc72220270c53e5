/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Defaults and limits of struct crl_options. Called when a channel is opened. */
#include <errno.h>

#include "local/crl_shape.h"
#include "util/bits.h"

#define CRL_CLIENTS_DEFAULT 64u
#define CRL_BYTES_DEFAULT   256u
#define CRL_SPIN_US_DEFAULT 20

static uint32_t crl_options_or(uint32_t value, uint32_t standard)
{
	return value ? value : standard;
}

static int crl_options_reserved(const struct crl_options *options)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]); i++)
		bits |= options->reserved[i];
	return bits ? -EINVAL : 0;
}

int crl_options_check(struct crl_options *out, const struct crl_options *options, uint32_t depth)
{
	static const struct crl_options none;
	struct crl_options o = options ? *options : none;

	if (crl_options_reserved(&o))
		return -EINVAL;
	o.max_clients = crl_options_or(o.max_clients, CRL_CLIENTS_DEFAULT);
	o.depth = crl_options_or(o.depth, depth);
	o.request_max = crl_options_or(o.request_max, CRL_BYTES_DEFAULT);
	o.response_max = crl_options_or(o.response_max, CRL_BYTES_DEFAULT);
	o.spin_us = o.spin_us ? o.spin_us : CRL_SPIN_US_DEFAULT;
	if (o.max_clients > CRL_CLIENTS_MAX || o.depth > CRL_DEPTH_MAX ||
	    o.request_max > CRL_BYTES_MAX || o.response_max > CRL_BYTES_MAX)
		return -EINVAL;
	o.depth = (uint32_t)util_pow2_ceil(o.depth);
	*out = o;
	return 0;
}
