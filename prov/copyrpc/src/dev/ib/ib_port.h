/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Choice of the RDMA port. Called by ib_dev.c.
 */
#ifndef DEV_IB_IB_PORT_H
#define DEV_IB_IB_PORT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/** Parsed FI_COPYRPC_DEVICE, or one name of it, and FI_COPYRPC_GID_INDEX. */
struct ib_selection {
	char device[IBV_SYSFS_NAME_MAX]; /* empty: any */
	unsigned port;                   /* 0: any */
	int gid_index;                   /* -1: any */
	/* Port that is in use: another one with its link layer is chosen. NULL: there is none */
	const char *beside;
	unsigned beside_port;
	uint8_t beside_layer;
};

/**
 * Parses the settings. Returns 0, or -FI_EINVAL with a log line. NULL or an empty string selects
 * any.
 */
int ib_selection_parse(const char *device, const char *gid_index, struct ib_selection *selection);

/** Returns the bits per second of all the port's transports, or 0 for unknown codes. */
uint64_t ib_port_speed(uint8_t active_width, uint8_t active_speed);

struct ib_port {
	struct ibv_context *ctx; /* NULL: none */
	struct ibv_port_attr attr;
	uint8_t num;
	uint64_t speed;
};

/**
 * Opens the device of the best selected port: active, fastest, first among equals. Returns 0,
 * -FI_ENODEV (no such device, or no active port) or -FI_EACCES (no permission), with a text for the
 * log in *why.
 */
int ib_port_open(const struct ib_selection *selection, bool (*fits)(struct ibv_device *),
		 struct ib_port *port, const char **why);

#endif
