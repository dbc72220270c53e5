/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that are replaced for the size of their rings: see eng_room.h. */
#include "engine/eng_room.h"

#include "cm/base/cm.h"
#include "engine/eng_event.h"
#include "util/clock.h"

void eng_room_want(struct eng_conn *conn)
{
	conn->engine->cramped_cnt += !conn->wants_room;
	conn->wants_room = true;
	eng_event_push_look(conn->eep, ENG_EVENT_LOOK);
}

void eng_room_forget(struct eng_conn *conn)
{
	conn->engine->cramped_cnt -= conn->wants_room;
	conn->wants_room = false;
}

void eng_room_note_short(struct core_engine *engine)
{
	__atomic_store_n(&engine->short_ns, util_clock_ns() + ENG_ROOM_SHORT_NS, __ATOMIC_RELAXED);
}

bool eng_room_is_short(const struct core_engine *engine)
{
	uint64_t short_ns = __atomic_load_n(&engine->short_ns, __ATOMIC_RELAXED);

	return short_ns && util_clock_ns() < short_ns;
}

bool eng_room_is_due(const struct core_engine *engine)
{
	return engine->cramped_cnt || eng_room_is_short(engine);
}

void eng_chan_resize(struct core_chan *chan, bool is_larger)
{
	const struct eng_conn *conn = eng_conn_of(chan);
	struct core_engine *engine = conn->engine;
	struct eng_room_note note = { .incarnation = cm_conn_incarnation(conn->cm),
				      .end_ns = util_clock_ns() + ENG_ROOM_NOTE_NS,
				      .size = is_larger ? ENG_SIZE_LARGE : ENG_SIZE_SMALL };

	pthread_mutex_lock(&engine->lock);
	engine->notes[engine->note_cnt++ % ENG_ROOM_NOTES] = note;
	pthread_mutex_unlock(&engine->lock);
}

/** Returns the size in the latest note of a peer. The lock is held. */
static enum eng_size eng_room_noted(const struct core_engine *engine, uint64_t incarnation)
{
	uint64_t now_ns = util_clock_ns();

	for (uint32_t i = 1; i <= engine->note_cnt && i <= ENG_ROOM_NOTES; i++) {
		const struct eng_room_note *note =
			&engine->notes[(engine->note_cnt - i) % ENG_ROOM_NOTES];

		if (note->incarnation == incarnation && now_ns < note->end_ns)
			return note->size;
	}
	return ENG_SIZE_DEFAULT;
}

enum eng_size eng_room_size(struct core_engine *engine, uint64_t incarnation)
{
	enum eng_size ret;

	pthread_mutex_lock(&engine->lock);
	ret = eng_room_noted(engine, incarnation);
	pthread_mutex_unlock(&engine->lock);
	return ret;
}

static uint32_t eng_room_asks(struct eng_conn *conn)
{
	const struct eng_transport_ops *ops = conn->transport->ops;
	uint32_t reasons = conn->wants_room ? CORE_BETTER_ROOM : 0;

	if (ops->shrinks && ops->shrinks(conn))
		reasons |= CORE_BETTER_QUIET;
	return reasons;
}

static uint32_t eng_room_agrees(const struct eng_conn *conn)
{
	const struct eng_transport_ops *ops = conn->transport->ops;
	uint32_t reasons = ops->shrinks ? CORE_BETTER_QUIET : 0;

	if (ops->grows && ops->grows(conn))
		reasons |= CORE_BETTER_ROOM;
	return reasons;
}

uint32_t eng_room_reasons(struct eng_conn *conn, bool asks)
{
	uint32_t reasons = asks ? eng_room_asks(conn) : eng_room_agrees(conn);

	return reasons && cm_conn_resizes(conn->cm) ? reasons : 0;
}
