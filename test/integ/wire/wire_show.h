/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lines of output of wire_decode: a field of a frame, with the name that the dissector gives it.
 */
#ifndef WIRE_SHOW_H
#define WIRE_SHOW_H

#include <stddef.h>
#include <stdint.h>

extern uint32_t wire_show_frame; /* number of the frame whose fields are printed */

/** Prints "0x1f". */
void wire_show(const char *name, uint64_t value);
/** Prints ":0a1b". */
void wire_show_bytes(const char *name, const void *bytes, size_t len);

/** Print a member of a structure as the field of that name in the group. */
#define SHOW(group, object, member) wire_show(group "." #member, (object)->member)
#define SHOW_BYTES(group, object, member)                                                          \
	wire_show_bytes(group "." #member, (object)->member, sizeof((object)->member))

#endif
