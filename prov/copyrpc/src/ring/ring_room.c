/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Use of a connection's rings: see ring_room.h. */
#include "ring/ring_room.h"

#include "engine/eng_room.h"
#include "ring/ring_len.h"
#include "util/clock.h"
#include "util/param.h"

uint64_t ring_room_len(const struct ring_transport *transport, const struct core_engine *engine,
		       enum eng_size size)
{
	return ring_len_next(util_params.mem, eng_mem_left(engine),
			     ring_transport_registers(transport), util_params.ring_size, size);
}

void ring_room_refused(struct ring_conn *conn)
{
	uint64_t pos = conn->tx.flow.producer, len = conn->tx.len;
	struct ring_room *room = &conn->room;

	if (len >= RING_LEN_DEFAULT || pos - room->refused_pos < len / 2)
		return;
	room->refused_pos = pos;
	if (++room->refused_cnt % RING_ROOM_REFUSALS == 0)
		eng_room_want(&conn->eng);
}

bool ring_room_grows(const struct eng_conn *eng)
{
	const struct ring_conn *conn = (const struct ring_conn *)eng;

	return ring_room_len(ring_conn_transport(conn), eng->engine, ENG_SIZE_LARGE) > conn->rx.len;
}

/** Returns a number that changes when something is sent, received or accessed. */
static uint64_t ring_room_traffic(const struct ring_conn *conn)
{
	return conn->rx.producer + conn->tx.flow.producer + conn->link->access_cnt;
}

bool ring_room_shrinks(struct eng_conn *eng)
{
	struct ring_conn *conn = (struct ring_conn *)eng;
	uint64_t now_ns = util_clock_ns(), traffic = ring_room_traffic(conn);
	struct ring_room *room = &conn->room;

	if (!room->seen_ns || room->seen != traffic) {
		room->seen = traffic;
		room->seen_ns = now_ns;
		return false;
	}
	return now_ns - room->seen_ns >= RING_ROOM_QUIET_NS &&
	       ring_room_len(ring_conn_transport(conn), eng->engine, ENG_SIZE_DEFAULT) <
		       conn->rx.len;
}
