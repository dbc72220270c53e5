/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The routes of a request (cm_route.h): found when a probe begins, and tried one after the other,
 * in the order and for the time that cm_req.h states. Called by cm_req.c.
 *
 * Tested by test/unit/cm/conn/test_cm_route.c.
 */
#ifndef CM_CONN_CM_REQ_ROUTE_H
#define CM_CONN_CM_REQ_ROUTE_H

#include "cm/conn/cm_req.h"

/** Finds the routes to the peer. The first is the one that it last replied by. */
void cm_req_route_find(struct cm_req *req);
/** Chooses the route of the next REQ of a probe. */
void cm_req_route_choose(struct cm_req *req);
/** Moves on to the next route that does not lead to another process. */
void cm_req_route_next(struct cm_req *req);
/** Returns the index of a route, or route_cnt. */
uint32_t cm_req_route_via(const struct cm_req *req, const struct cm_route *via);
/** Returns the index of the route to `to`, or route_cnt. */
uint32_t cm_req_route_index(const struct cm_req *req, const union cm_addr *to);

#endif
