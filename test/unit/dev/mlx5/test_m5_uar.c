/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/mlx5/m5_uar.h"

#include <criterion/criterion.h>
#include <stdalign.h>
#include <string.h>

#include "bytes.h"

TestSuite(m5_uar, .timeout = 200);

struct desk {
	struct m5_uar uar;
	uint32_t record[2];
	alignas(64) uint8_t reg[512];
	alignas(64) uint8_t wqe[256];
};

static struct desk *desk_make(uint32_t half)
{
	static struct desk d;
	size_t i;

	memset(&d, 0, sizeof(d));
	for (i = 0; i < sizeof(d.wqe); i++)
		d.wqe[i] = (uint8_t)(i + 1);
	m5_uar_init(&d.uar, d.reg, half);
	d.uar.wide = false;
	return &d;
}

Test(m5_uar, the_8_byte_doorbell_is_the_head_of_the_control_segment)
{
	struct desk *d = desk_make(256);

	m5_uar_ring8(&d->uar, &d->record[1], 0x1234, (void *)d->wqe);
	EXPECT_AT(d->reg, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0);
	EXPECT_AT(d->record, 0, 0, 0, 0, 0, 0, 0x12, 0x34);
}

Test(m5_uar, doorbells_alternate_between_the_halves)
{
	struct desk *d = desk_make(256);
	uint8_t zero[256] = { 0 };

	m5_uar_ring_bf(&d->uar, &d->record[1], 1, d->wqe, 1);
	cr_expect_arr_eq(d->reg, d->wqe, 64);
	cr_expect_arr_eq(d->reg + 256, zero, 256);
	m5_uar_ring8(&d->uar, &d->record[1], 2, (void *)d->wqe);
	cr_expect_arr_eq(d->reg + 256, d->wqe, 8);
	cr_expect_arr_eq(d->reg + 264, zero, 248);
	memset(d->reg, 0, sizeof(d->reg));
	m5_uar_ring_bf(&d->uar, &d->record[1], 3, d->wqe, 4);
	cr_expect_arr_eq(d->reg, d->wqe, 256);
	cr_expect_arr_eq(d->reg + 256, zero, 256);
}

Test(m5_uar, page_without_write_combining_gets_eight_bytes_in_one_place)
{
	struct desk *d = desk_make(0);

	cr_expect(!m5_uar_fits(&d->uar, 1));
	m5_uar_ring8(&d->uar, &d->record[1], 1, (void *)d->wqe);
	m5_uar_ring8(&d->uar, &d->record[1], 2, (void *)d->wqe);
	cr_expect_eq(d->uar.off, 0);
	cr_expect_eq(d->reg[8], 0);
	cr_expect_eq(d->reg[256], 0);
}

Test(m5_uar, fits_compares_with_half_a_register)
{
	struct desk *d = desk_make(256);

	cr_expect(m5_uar_fits(&d->uar, 4));
	cr_expect(!m5_uar_fits(&d->uar, 5));
	m5_uar_init(&d->uar, d->reg, 64);
	cr_expect(m5_uar_fits(&d->uar, 1));
	cr_expect(!m5_uar_fits(&d->uar, 2));
}

Test(m5_uar, the_record_has_16_bits)
{
	struct desk *d = desk_make(256);

	m5_uar_ring8(&d->uar, &d->record[1], 0xffff, (void *)d->wqe);
	EXPECT_AT(&d->record[1], 0, 0, 0xff, 0xff);
	m5_uar_ring8(&d->uar, &d->record[1], (uint16_t)0x10000, (void *)d->wqe);
	EXPECT_AT(&d->record[1], 0, 0, 0, 0);
}
