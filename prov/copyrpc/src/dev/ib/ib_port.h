/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which port does the user want, and which is the best one?
 *
 * Shown by test/unit/dev/ib/test_ib_port.c.
 */
#ifndef IB_IB_PORT_H
#define IB_IB_PORT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/** What FI_COPYRPC_DEVICE and FI_COPYRPC_GID_INDEX say. */
struct ib_selection {
	char device[IBV_SYSFS_NAME_MAX]; /* empty: any */
	unsigned port;                   /* 0: any */
	int gid_index;                   /* -1: any */
};

/** 0, or -FI_EINVAL with a line in the log. NULL and empty texts wish nothing. */
int ib_selection_parse(const char *device, const char *gid_index, struct ib_selection *selection);

/** Bits per second of a port's transports together; 0: unknown codes. */
uint64_t ib_port_speed(uint8_t active_width, uint8_t active_speed);

struct ib_port {
	struct ibv_context *ctx; /* NULL: none */
	struct ibv_port_attr attr;
	uint8_t num;
	uint64_t speed;
};

/**
 * Opens the device of the best port that is wished: active, the fastest, the first among equals.
 * 0, -FI_ENODEV (no such device, or no active port), or -FI_EACCES (no right to it). *why then is a
 * sentence for the log.
 */
int ib_port_open(const struct ib_selection *selection, bool (*fits)(struct ibv_device *),
		 struct ib_port *port, const char **why);

#endif
