/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* In whose name do we speak? The provider that libfabric knows us by; ofi/ fills in its calls. */
#include "util/log.h"

struct fi_provider util_log_prov = {
	.name = "copyrpc",
};
