/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The report in its two forms. Called by info_main.c. */
#ifndef INFO_INFO_PRINT_H
#define INFO_INFO_PRINT_H

#include <stdbool.h>
#include <stdio.h>

struct info_plan;
struct info_report;

/** Prints findings for people; `quiet`: those that are slow or broken only. */
void info_text_print(FILE *out, const struct info_report *report, bool quiet);

/** Prints one object as copyrpc_info(1) describes it. `plan`: NULL if none was requested. */
void info_json_print(FILE *out, const struct info_report *report, const struct info_plan *plan);

/** Prints a JSON string. Bytes that are not UTF-8 become U+FFFD. */
void info_json_string(FILE *out, const char *text);

#endif
