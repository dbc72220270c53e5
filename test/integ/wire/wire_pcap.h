/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Capture files (pcap, Ethernet) of UDP datagrams, for wire_packets and wire_decode.
 *
 * Datagrams are IPv4 or IPv6 without options or fragments. Every call that fails ends the program.
 */
#ifndef WIRE_PCAP_H
#define WIRE_PCAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIRE_PCAP_MAX 70000u /* longest packet with its headers */

/** End of a datagram: 4 or 16 bytes of address. */
struct wire_pcap_end {
	uint8_t family; /* 4 or 6 */
	uint8_t ip[16];
	uint16_t port;
};

/** Datagram in a capture. */
struct wire_pcap_udp {
	uint32_t frame; /* number in the file, from 1 */
	struct wire_pcap_end src;
	struct wire_pcap_end dst;
	const uint8_t *data;
	uint32_t len;      /* bytes that were sent */
	uint32_t captured; /* bytes of these in the file */
};

static inline void wire_pcap_check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static inline bool wire_pcap_end_same(const struct wire_pcap_end *a, const struct wire_pcap_end *b)
{
	return a->family == b->family && a->port == b->port &&
	       !memcmp(a->ip, b->ip, a->family == 4 ? 4 : 16);
}

static inline uint16_t wire_pcap_get_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/** Writes the head of a file. */
static inline void wire_pcap_begin(FILE *file)
{
	const uint32_t head[6] = { 0xA1B2C3D4, 4u << 16 | 2, 0, 0, WIRE_PCAP_MAX, 1 };

	wire_pcap_check(fwrite(head, sizeof(head), 1, file) == 1, "the capture cannot be written");
}

/** Opens a capture and reads its head. */
static inline FILE *wire_pcap_open(const char *name)
{
	FILE *file = fopen(name, "rb");
	uint32_t head[6];

	wire_pcap_check(file && fread(head, sizeof(head), 1, file) == 1, "no capture to read");
	wire_pcap_check(head[0] == 0xA1B2C3D4 || head[0] == 0xA1B23C4D, "no pcap file");
	wire_pcap_check(head[5] == 1, "no capture of Ethernet or loopback");
	return file;
}

/** Finds the UDP datagram in a packet of `len` bytes. Returns false if there is none. */
static inline bool wire_pcap_find_udp(const uint8_t *packet, uint32_t len, struct wire_pcap_udp *u)
{
	uint32_t ip = 14, udp, addr, addr_len;
	bool is_4;

	if (len < ip + 40)
		return false;
	is_4 = wire_pcap_get_be16(packet + 12) == 0x0800;
	if (!is_4 && wire_pcap_get_be16(packet + 12) != 0x86DD)
		return false;
	if (packet[ip + (is_4 ? 9 : 6)] != 17)
		return false;
	udp = ip + (is_4 ? 20 : 40);
	if (len < udp + 8)
		return false;
	addr = ip + (is_4 ? 12 : 8);
	addr_len = is_4 ? 4 : 16;
	u->src = (struct wire_pcap_end){ .family = is_4 ? 4 : 6 };
	u->dst = u->src;
	memcpy(u->src.ip, packet + addr, addr_len);
	memcpy(u->dst.ip, packet + addr + addr_len, addr_len);
	u->src.port = wire_pcap_get_be16(packet + udp);
	u->dst.port = wire_pcap_get_be16(packet + udp + 2);
	u->len = wire_pcap_get_be16(packet + udp + 4) - 8u;
	u->data = packet + udp + 8;
	u->captured = len - udp - 8;
	if (u->captured > u->len)
		u->captured = u->len;
	return true;
}

/** Reads up to the next UDP datagram; its bytes are in `packet`. Returns false at the end. */
static inline bool wire_pcap_next(FILE *file, uint8_t *packet, uint32_t *frame,
				  struct wire_pcap_udp *u)
{
	uint32_t head[4];

	while (fread(head, sizeof(head), 1, file) == 1) {
		wire_pcap_check(head[2] <= WIRE_PCAP_MAX, "a packet that is too long");
		wire_pcap_check(!head[2] || fread(packet, head[2], 1, file) == 1, "a short file");
		u->frame = ++*frame;
		if (wire_pcap_find_udp(packet, head[2], u))
			return true;
	}
	return false;
}

#endif
