/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Vector registers in an XSAVE area. A register spans up to three components. A component whose bit
 * is clear in the header is all zero, whatever its bytes. Offsets of the the AVX-512 components
 * differ between processors; CPUID leaf 13 reports them.
 */
#include "model/kernel/krn_vector.h"

#include <cpuid.h>
#include <string.h>

enum {
	XSAVE_XMM = 160,
	XSAVE_HEADER = 512,
	XSAVE_YMM = 576,
	COMPONENT_SSE = 1,
	COMPONENT_AVX = 2,
	COMPONENT_ZMM_HIGH = 6, /* upper halves of registers 0 to 15 */
	COMPONENT_ZMM_MORE = 7, /* registers 16 to 31 */
	PARTS = 3,
};

/* Bounds of a register's parts: bytes 0..15, 16..31, 32..63. */
static const uint32_t part_start[PARTS + 1] = { 0, 16, 32, 64 };

struct place {
	uint32_t component, component_off, component_len, off;
};

static uint32_t component_offset(uint32_t component)
{
	static uint32_t offsets[COMPONENT_ZMM_MORE + 1];
	uint32_t a, b, c, d, known = __atomic_load_n(&offsets[component], __ATOMIC_RELAXED);

	if (known)
		return known;
	__cpuid_count(13, component, a, b, c, d);
	(void)a;
	__atomic_store_n(&offsets[component], b, __ATOMIC_RELAXED);
	return b;
}

static struct place place_of(uint32_t reg, uint32_t part)
{
	uint32_t start;

	if (reg >= 16) {
		start = component_offset(COMPONENT_ZMM_MORE);
		return (struct place){ COMPONENT_ZMM_MORE, start, 1024,
				       start + (reg - 16) * 64 + part_start[part] };
	}
	if (part == 0)
		return (struct place){ COMPONENT_SSE, XSAVE_XMM, 256, XSAVE_XMM + reg * 16 };
	if (part == 1)
		return (struct place){ COMPONENT_AVX, XSAVE_YMM, 256, XSAVE_YMM + reg * 16 };
	start = component_offset(COMPONENT_ZMM_HIGH);
	return (struct place){ COMPONENT_ZMM_HIGH, start, 512, start + reg * 32 };
}

static uint64_t components(const char *area)
{
	uint64_t bits;

	memcpy(&bits, area + XSAVE_HEADER, sizeof(bits));
	return bits;
}

void krn_vector_get(const void *area, uint32_t reg, void *to, uint32_t len)
{
	const char *from = area;
	uint64_t bits = components(from);
	char value[64] = { 0 };

	for (uint32_t part = 0; part < PARTS && part_start[part] < len; part++) {
		struct place place = place_of(reg, part);

		if (bits >> place.component & 1)
			memcpy(value + part_start[part], from + place.off,
			       part_start[part + 1] - part_start[part]);
	}
	memcpy(to, value, len);
}

void krn_vector_set(void *area, uint32_t reg, const void *from, uint32_t len, bool zero_upper)
{
	char *to = area;
	uint64_t bits = components(to);
	char value[64] = { 0 };

	memcpy(value, from, len);
	for (uint32_t part = 0; part < PARTS; part++) {
		bool reached = part_start[part] < len;
		struct place place;

		if (!reached && !zero_upper)
			break;
		place = place_of(reg, part);
		if (!reached && !(bits >> place.component & 1))
			continue;
		if (!(bits >> place.component & 1))
			memset(to + place.component_off, 0, place.component_len);
		bits |= 1ull << place.component;
		memcpy(to + place.off, value + part_start[part],
		       part_start[part + 1] - part_start[part]);
	}
	memcpy(to + XSAVE_HEADER, &bits, sizeof(bits));
}
