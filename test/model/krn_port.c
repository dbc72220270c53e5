/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does the device say of itself?
 *
 * When a fault that was ordered takes the port down or brings it back, or ends the device, every
 * context of this process gets the asynchronous event that the kernel would raise. The service
 * thread looks when one is due.
 */
#include "model/krn_chan.h"
#include "model/krn_ctx.h"
#include "model/krn_mode.h"
#include "model/mdl_nic.h"

/* As enum ibv_event_type numbers them. */
enum { KRN_DEVICE_FATAL = 8, KRN_PORT_ACTIVE = 9, KRN_PORT_ERR = 10, KRN_PORT = 1 };

static void port_tell(uint32_t type)
{
	for (uint32_t index = 0; index < MDL_CTX_MAX; index++) {
		struct krn_ctx *ctx = krn_ctx_get(index);

		if (ctx && ctx->async_chan)
			krn_chan_push(ctx->async_chan, KRN_PORT, type, 0);
	}
}

uint64_t krn_port_service(uint64_t now)
{
	static bool was_down, was_dead;
	bool down = nic_fault_link_down(), dead = nic_fault_dead();

	if (dead && !was_dead)
		port_tell(KRN_DEVICE_FATAL);
	if (down != was_down)
		port_tell(down ? KRN_PORT_ERR : KRN_PORT_ACTIVE);
	was_down = down;
	was_dead = dead;
	return nic_fault_due(now);
}
