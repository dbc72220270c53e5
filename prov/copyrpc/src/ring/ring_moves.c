/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Policy of moves: see ring_moves.h. */
#include "ring/ring_moves.h"

#include <string.h>

/* Inserts into an ordered list of RING_MOVES_MAX entries. `sign` 1: largest first, -1: smallest. */
static void ring_moves_insert(struct ring_moves_candidate *list, uint32_t *cnt, int sign,
			      struct ring_moves_conn *conn)
{
	uint32_t at = *cnt;

	while (at && (sign > 0 ? list[at - 1].traffic < conn->traffic
			       : list[at - 1].traffic > conn->traffic))
		at--;
	if (at == RING_MOVES_MAX)
		return;
	if (*cnt < RING_MOVES_MAX)
		++*cnt;
	memmove(&list[at + 1], &list[at], (*cnt - at - 1) * sizeof(*list));
	list[at] = (struct ring_moves_candidate){ conn->traffic, conn };
}

/* Records where the connection is. Returns true if it has moved. */
static bool ring_moves_update(struct ring_moves_conn *conn, bool is_own)
{
	bool has_moved = conn->is_own != is_own;

	conn->age += conn->age < RING_MOVES_REST_MAX;
	if (!has_moved)
		return false;
	conn->is_own = is_own;
	conn->is_asked = false;
	conn->age = 0;
	conn->rest = RING_MOVES_REST;
	return true;
}

bool ring_moves_see(struct ring_moves *look, struct ring_moves_conn *conn, uint64_t total,
		    bool is_own)
{
	bool has_moved = ring_moves_update(conn, is_own);

	conn->traffic = (conn->traffic + (total - conn->total)) / 2;
	conn->total = total;
	/* Asked to give its queue pair up, or has just done so. A new connection has no `rest`. */
	if (conn->rest && conn->age < RING_MOVES_FREEING && conn->is_asked == is_own)
		look->freeing++;
	if (conn->age < (conn->rest ? conn->rest : RING_MOVES_REST))
		return has_moved;
	if (is_own)
		ring_moves_insert(look->idle, &look->idle_cnt, -1, conn);
	else if (conn->traffic >= RING_MOVES_LEAST)
		ring_moves_insert(look->busy, &look->busy_cnt, 1, conn);
	return has_moved;
}

/* Returns true if the busy one should have the queue pair of the idle one. */
static bool ring_moves_pays(const struct ring_moves_candidate *busy,
			    const struct ring_moves_candidate *idle)
{
	return busy->traffic / 2 > idle->traffic;
}

uint32_t ring_moves_decide(const struct ring_moves *look, uint32_t free_cnt,
			   struct ring_move *moves)
{
	uint32_t cnt = 0, idle = 0, freeing = look->freeing;

	for (uint32_t i = 0; i < look->busy_cnt; i++) {
		if (free_cnt) {
			free_cnt--;
			moves[cnt++] = (struct ring_move){ look->busy[i].conn, true };
		} else if (freeing) {
			freeing--;
		} else if (idle < look->idle_cnt &&
			   ring_moves_pays(&look->busy[i], &look->idle[idle])) {
			moves[cnt++] = (struct ring_move){ look->idle[idle++].conn, false };
		}
	}
	return cnt;
}

void ring_moves_asked(struct ring_moves_conn *conn)
{
	uint32_t rest = conn->rest ? conn->rest : RING_MOVES_REST;

	conn->rest = !conn->is_asked                  ? rest
		     : rest < RING_MOVES_REST_MAX / 2 ? 2 * rest
						      : RING_MOVES_REST_MAX;
	conn->is_asked = true;
	conn->age = 0;
}
