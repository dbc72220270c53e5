/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Implements insn_lines.h: a hash table of lines, which grows. */
#include "insn_lines.h"

#include <stdbool.h>
#include <stdlib.h>

struct line {
	uint64_t number;        /* address / INSN_LINE_LEN; 0: the entry is free */
	uint64_t pc[INSN_ENDS]; /* 0: that end has not touched the line */
	uint32_t round;
	bool common; /* touched in several rounds */
};

static struct {
	struct line *all; /* `size` entries, a power of two */
	size_t size, cnt;
	uint32_t round;
	unsigned end;
} lines;

static struct line *lines_alloc(size_t size)
{
	struct line *all = calloc(size, sizeof(*all));

	if (!all) {
		fprintf(stderr, "insn_count: out of memory for cache lines\n");
		exit(EXIT_FAILURE);
	}
	return all;
}

/** Returns the entry of the line, or the free one that it gets. */
static struct line *lines_find(uint64_t number)
{
	size_t at = number * 0x9E3779B97F4A7C15ull >> 32 & (lines.size - 1);

	while (lines.all[at].number && lines.all[at].number != number)
		at = (at + 1) & (lines.size - 1);
	return &lines.all[at];
}

static void lines_grow(void)
{
	struct line *old = lines.all;
	size_t size = lines.size;

	lines.size *= 2;
	lines.all = lines_alloc(lines.size);
	for (size_t i = 0; i < size; i++)
		if (old[i].number)
			*lines_find(old[i].number) = old[i];
	free(old);
}

void insn_lines_begin(void)
{
	free(lines.all);
	lines.size = 1u << 16;
	lines.cnt = 0;
	lines.all = lines_alloc(lines.size);
}

void insn_lines_at(uint32_t round, unsigned end)
{
	lines.round = round;
	lines.end = end;
}

static void lines_touch_one(uint64_t number, uint64_t pc)
{
	struct line *line = lines_find(number);

	if (!line->number) {
		*line = (struct line){ .number = number, .round = lines.round };
		lines.cnt++;
	}
	line->common |= line->round != lines.round;
	if (!line->pc[lines.end])
		line->pc[lines.end] = pc;
	if (2 * lines.cnt > lines.size)
		lines_grow();
}

void insn_lines_touch(uint64_t addr, uint32_t len, uint64_t pc)
{
	uint64_t number = addr / INSN_LINE_LEN, last = (addr + len - 1) / INSN_LINE_LEN;

	for (; number <= last; number++)
		lines_touch_one(number, pc);
}

void insn_lines_each(void (*print)(void *arg, unsigned end, uint64_t addr, uint64_t pc), void *arg)
{
	for (size_t i = 0; i < lines.size; i++) {
		const struct line *line = &lines.all[i];

		if (!line->number || line->common)
			continue;
		for (unsigned end = 0; end < INSN_ENDS; end++)
			if (line->pc[end])
				print(arg, end, line->number * INSN_LINE_LEN, line->pc[end]);
	}
}
