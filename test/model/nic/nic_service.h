/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Work that waits for time, and processes that broke a rule. See nic_state.h. */
#ifndef NIC_SERVICE_H
#define NIC_SERVICE_H

#include "model/fabric/mdl_nic.h"

/*
 * Ends the process PROC, which broke a rule, with the message: at once or through its service
 * thread.
 */
void nic_blame(uint32_t proc, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
