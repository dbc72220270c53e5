/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Judges whether a transport key of Open MPI's launcher is a secret. Used by pml_copyrpc_fabric.c;
 * includes nothing of Open MPI, so that a unit test can.
 *
 * mpirun gives all processes of a job, those that are spawned included, 128 random bits in the
 * environment, as two numbers of 16 hexadecimal digits with a hyphen between them. Where no mpirun
 * starts the job (Slurm's srun), the two numbers are made of the job's and the step's, which every
 * user of the cluster can list. Where the launcher has no random numbers, both are below 2^32.
 */
#ifndef PML_COPYRPC_KEY_H
#define PML_COPYRPC_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PML_KEY_VARIABLE "OMPI_MCA_orte_precondition_transports"
#define PML_KEY_DIGITS   16u

/** Returns true if both halves of a number are in use, as in nearly all random ones. */
static inline bool pml_key_is_random(uint64_t number)
{
	return number >> 32 && (uint32_t)number;
}

/** Returns true if `key`, which may be NULL, has the form of a random transport key. */
static inline bool pml_key_is_secret(const char *key)
{
	uint64_t number[2];
	char *end;

	if (!key || strlen(key) != 2 * PML_KEY_DIGITS + 1 || key[PML_KEY_DIGITS] != '-' ||
	    strspn(key, "0123456789abcdefABCDEF") != PML_KEY_DIGITS ||
	    strspn(key + PML_KEY_DIGITS + 1, "0123456789abcdefABCDEF") != PML_KEY_DIGITS)
		return false;
	number[0] = strtoull(key, &end, 16);
	number[1] = strtoull(end + 1, &end, 16);
	return pml_key_is_random(number[0]) && pml_key_is_random(number[1]) &&
	       number[0] != number[1];
}

#endif
