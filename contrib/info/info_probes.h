/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The probes, each in a file of its name. info_main.c runs them in this order; facts of struct info
 * flow from earlier ones to later ones. To add one, write its file, declare it here, and add a row
 * to the table in info_main.c.
 */
#ifndef INFO_INFO_PROBES_H
#define INFO_INFO_PROBES_H

struct info;

/** Open MPI: version, components, and what its parameters select. */
void info_probe_openmpi(struct info *info);
/** libfabric, and the file of the provider. */
void info_probe_fabric(struct info *info);
/** Endpoints that fi_getinfo offers. */
void info_probe_offer(struct info *info);
/** Two processes exchange messages over it. */
void info_probe_trial(struct info *info);
/** Names of FI_COPYRPC_* variables, and the job key. */
void info_probe_param(struct info *info);
/** RDMA devices and their ports. */
void info_probe_rdma(struct info *info);
/** Network interfaces. */
void info_probe_net(struct info *info);
/** Shared memory, and copies by the kernel. */
void info_probe_memory(struct info *info);
/** Limits of this process. */
void info_probe_limits(struct info *info);
/** Namespaces, containers and their limits. */
void info_probe_container(struct info *info);
/** Processors: frequency, idle states, number. */
void info_probe_cpu(struct info *info);

#endif
