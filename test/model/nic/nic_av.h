/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vector of a send WQE of a UD queue pair or of a DC initiator.
 *
 *	byte	0	Q_Key; for DC 8 bytes of access key
 *		8	bit 31: extended (48 bytes; otherwise 16); bits 23..0 destination QPN or
 *			DCT number
 *		12	static rate << 4 | SL
 *		13	force loopback << 7 | source path bits
 *		14	destination LID (on RoCE: UDP source port)
 *		20	destination MAC, 6 bytes			extended from here on
 *		26	traffic class
 *		27	hop limit
 *		28	bit 30: GRH; bits 27..20 source GID index; bits 19..0 flow label
 *		32	destination GID, 16 bytes
 */
#ifndef NIC_AV_H
#define NIC_AV_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NIC_AV_BASE = 16,
	NIC_AV_EXTENDED = 48,
};

struct nic_av {
	uint64_t dc_key;
	uint32_t qkey;
	uint32_t qpn;
	uint32_t flow_label;
	uint16_t rlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sgid_index;
	bool extended;
	bool grh;
	uint8_t rmac[6];
	uint8_t rgid[16];
};

/*
 * Decodes the address vector at BYTES, of which LEN are valid. Returns its size, or 0 if LEN is too
 * small.
 */
uint32_t nic_av_decode(struct nic_av *av, const uint8_t *bytes, uint32_t len);

#endif
