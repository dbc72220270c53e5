/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events of the device.
 *
 * When an injected fault takes the port down, brings it back or stops the device, every context of
 * this process gets the event that the kernel would raise. The service thread calls when one is
 * due.
 */
#include "model/kernel/krn_chan.h"
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_mode.h"
#include "model/fabric/mdl_nic.h"

/* Values of enum ibv_event_type. */
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
