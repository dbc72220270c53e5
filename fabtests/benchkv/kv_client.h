/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client: keeps `depth` requests in flight (a closed loop), checks each response, and measures
 * its latency. A thread of the node or a forked process; it uses the board, local channels and,
 * with the back end "direct", an endpoint of its own, but never MPI.
 */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "kv_board.h"
#include "kv_conf.h"

/** Largest length of the name of a local channel, with its end. */
#define KV_CHANNEL_NAME_MAX 48u

/** Number of the delegation ring where kv_channel_name expects that of a daemon. */
#define KV_CHANNEL_RING UINT32_MAX

/** Writes the name of the channel to a daemon of the node whose process is `pid`. */
void kv_channel_name(char name[KV_CHANNEL_NAME_MAX], int pid, uint32_t daemon);

struct kv_client;

/**
 * Opens client `index` of the node: connects it to the daemons, which have to run meanwhile.
 * Returns NULL with a message on failure.
 */
struct kv_client *kv_client_open(const struct kv_conf *conf, struct kv_board *board,
				 uint32_t index);

/**
 * Processes responses and, if `fill` is set, sends new requests, without waiting. Returns the
 * number of responses, or a negative errno that ends the client.
 */
int kv_client_advance(struct kv_client *client, bool fill);

void kv_client_close(struct kv_client *client);

/**
 * Runs client `index` of the node until the phase of the board is beyond KV_RUN and all requests
 * have their responses. Failures are printed and noted in the client's tally.
 */
void kv_client_run(const struct kv_conf *conf, struct kv_board *board, uint32_t index);

#endif
