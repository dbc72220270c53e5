/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Size of the memory that a connection gets for its peer's bytes (eng_room.h). */
#ifndef ENGINE_ENG_SIZE_H
#define ENGINE_ENG_SIZE_H

enum eng_size {
	ENG_SIZE_DEFAULT, /* by the memory that is left */
	ENG_SIZE_LARGE,   /* the peer sends much */
	ENG_SIZE_SMALL,   /* the peer was quiet while memory was short */
};

#endif
