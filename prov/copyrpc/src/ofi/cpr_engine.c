/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engines by name: see cpr_engine.h. */
#include "ofi/cpr_engine.h"

#include "ring/ring_engine.h"

const struct core_engine_ops *cpr_engine_rc(void)
{
	return ring_engine_rc();
}
