/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of a port, computed equally in every process. */
#ifndef MDL_PORT_H
#define MDL_PORT_H

#include "model/fabric/mdl_objects.h"

/* Fills a zeroed port. */
void mdl_port_fill(struct mdl_port *port, uint32_t index, enum mdl_link link);

#endif /* MDL_PORT_H */
