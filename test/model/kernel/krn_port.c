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

/* Raises an event in the contexts whose device had not failed until `failed_ns`. */
static void port_raise(uint32_t type, uint64_t failed_ns)
{
	for (uint32_t index = 0; index < MDL_CTX_MAX; index++) {
		struct krn_ctx *ctx = krn_ctx_get(index);

		if (ctx && ctx->async_chan && ctx->opened_ns >= failed_ns)
			krn_chan_push(ctx->async_chan, KRN_PORT, type, 0);
	}
}

uint64_t krn_port_service(uint64_t now)
{
	static bool was_down, was_dead;
	bool down = nic_fault_link_down(), dead = nic_fault_dead();
	uint64_t failed_ns = mdl_self.proc->fatal_ns;

	if (dead && !was_dead) {
		nic_fault_fail(now);
		port_raise(KRN_DEVICE_FATAL, failed_ns);
	}
	if (down != was_down) {
		__atomic_store_n(&mdl_self.proc->port_down, down, __ATOMIC_RELEASE);
		port_raise(down ? KRN_PORT_ERR : KRN_PORT_ACTIVE, mdl_self.proc->fatal_ns);
	}
	was_down = down;
	was_dead = dead;
	return nic_fault_due(now);
}
