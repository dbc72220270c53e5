/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of the ports: LIDs from 1, MACs 02:c0:ff:ee:00:NN, and on RoCE the GIDs of a real port
 * (link local and IPv4, each as RoCE v1 and v2).
 */
#include "model/fabric/mdl_port.h"

#include <string.h>

static void port_fill_gid(struct mdl_port *port, uint32_t index, uint8_t type,
			  const uint8_t gid[16])
{
	memcpy(port->gid[index], gid, 16);
	port->gid_type[index] = type;
	port->gid_cnt = index + 1;
}

/*
 * Fills in a port. Port GUIDs are EUI-64s of the MAC, so that a RoCE link-local GID has its usual
 * form.
 */
void mdl_port_fill(struct mdl_port *port, uint32_t index, enum mdl_link link)
{
	uint8_t mac[6] = { 0x02, 0xc0, 0xff, 0xee, 0x00, (uint8_t)(index + 1) };
	uint8_t eui[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] };
	uint8_t local[16] = { 0xfe, 0x80 };
	uint8_t ipv4[16] = { [10] = 0xff, 0xff, 10, 212, 0, (uint8_t)(index + 1) };

	memcpy(port->mac, mac, sizeof(mac));
	memcpy(local + 8, eui, sizeof(eui));
	for (int i = 0; i < 8; i++)
		port->guid = port->guid << 8 | eui[i];
	port->lid = link == MDL_LINK_IB ? (uint16_t)(index + 1) : 0;
	port_fill_gid(port, 0, 0, local);
	if (link == MDL_LINK_IB)
		return;
	port_fill_gid(port, 1, 2, local);
	port_fill_gid(port, 2, 0, ipv4);
	port_fill_gid(port, 3, 2, ipv4);
}
