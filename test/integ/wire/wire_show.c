/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines of output: see wire_show.h. */
#include "wire_show.h"

#include <stdio.h>

uint32_t wire_show_frame;

void wire_show(const char *name, uint64_t value)
{
	printf("%u copyrpc.%s 0x%llx\n", wire_show_frame, name, (unsigned long long)value);
}

void wire_show_bytes(const char *name, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	printf("%u copyrpc.%s :", wire_show_frame, name);
	for (size_t i = 0; i < len; i++)
		printf("%02x", at[i]);
	printf("\n");
}
