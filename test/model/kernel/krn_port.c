/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events of the devices.
 *
 * When an injected fault takes the port down, brings it back, gives it another LID or stops a
 * device, every context of it in this process gets the event that the kernel would raise. The
 * service thread calls when one is due.
 */
#include "model/kernel/krn_chan.h"
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_mode.h"
#include "model/fabric/mdl_nic.h"

/* Values of enum ibv_event_type. */
enum { KRN_DEVICE_FATAL = 8, KRN_PORT_ACTIVE = 9, KRN_PORT_ERR = 10, KRN_LID_CHANGE = 11 };

#define KRN_PORT 1 /* number of the port of each device */

/* Raises an event in the contexts of a device that had not failed until `failed_ns`. */
static void port_raise(uint32_t device, uint32_t type, uint64_t failed_ns)
{
	for (uint32_t index = 0; index < MDL_CTX_MAX; index++) {
		struct krn_ctx *ctx = krn_ctx_get(index);

		if (ctx && ctx->async_chan && ctx->device == device && ctx->opened_ns >= failed_ns)
			krn_chan_push(ctx->async_chan, KRN_PORT, type, 0);
	}
}

/* The processes of a node share the port: each with the fault raises its own event. */
static void port_move(uint32_t device)
{
	struct mdl_port *port = &mdl_self.seg->port[mdl_own_port(device)];

	if (mdl_self.seg->link != MDL_LINK_IB)
		return;
	__atomic_store_n(&port->lid, (uint16_t)(port->lid | MDL_LID_MOVED), __ATOMIC_RELEASE);
	port_raise(device, KRN_LID_CHANGE, mdl_self.proc->fatal_ns[device]);
}

static void port_look(uint32_t device, uint64_t now)
{
	static bool was_down[MDL_DEV_MAX], was_dead[MDL_DEV_MAX], was_moved[MDL_DEV_MAX];
	bool down = nic_fault_link_down(device), dead = nic_fault_dead(device);
	uint64_t failed_ns = mdl_self.proc->fatal_ns[device];

	if (dead && !was_dead[device]) {
		nic_fault_fail(device, now);
		port_raise(device, KRN_DEVICE_FATAL, failed_ns);
	}
	if (down != was_down[device]) {
		__atomic_store_n(&mdl_self.proc->port_down[device], down, __ATOMIC_RELEASE);
		port_raise(device, down ? KRN_PORT_ERR : KRN_PORT_ACTIVE,
			   mdl_self.proc->fatal_ns[device]);
	}
	if (nic_fault_moved(device) && !was_moved[device]) {
		was_moved[device] = true;
		port_move(device);
	}
	was_down[device] = down;
	was_dead[device] = dead;
}

uint64_t krn_port_service(uint64_t now)
{
	for (uint32_t device = 0; device < MDL_DEV_MAX; device++)
		port_look(device, now);
	return nic_fault_due(now);
}
