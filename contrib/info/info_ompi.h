/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Selection of an Open MPI for messages: the output of ompi_info, and what it means for copyrpc.
 *
 * ompi_info reads variables, parameter files and component directories exactly as a job does, and
 * names the source of each value. Options of mpirun are not known here. Both functions are pure;
 * probe_openmpi.c runs the program.
 */
#ifndef INFO_INFO_OMPI_H
#define INFO_INFO_OMPI_H

#include <stdbool.h>

struct info_report;

/** A parameter; the texts are empty where Open MPI does not know it. */
struct info_mca {
	char value[256];
	char source[256]; /* "default", "environment", "file (...)" */
};

struct info_ompi {
	char version[32];
	char pkglibdir[256];  /* directory of components */
	bool has_pml_copyrpc; /* components that it finds */
	bool has_pml_cm;
	bool has_mtl_ofi;
	struct info_mca pml;
	struct info_mca mtl;
	struct info_mca include;       /* mtl_ofi_provider_include */
	struct info_mca provider_path; /* pml_copyrpc_provider_path */
};

/** Parses the output of `ompi_info --all --parsable`. Returns false if it is something else. */
bool info_ompi_parse(const char *text, struct info_ompi *ompi);

/** Returns whether a list such as "a,b" or "^c,d" selects `name`; an empty list selects all. */
bool info_mca_permits(const char *value, const char *name);

/** Returns whether the list names `name` to be used. */
bool info_mca_names(const char *value, const char *name);

/** Adds what a job of this Open MPI does. `fi_provider`: FI_PROVIDER, or NULL. */
void info_ompi_judge(const struct info_ompi *ompi, const char *fi_provider,
		     struct info_report *report);

#endif
