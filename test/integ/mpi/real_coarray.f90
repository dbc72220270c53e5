! SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
!
! Coarrays: every image writes its number into its right neighbour, sums are formed over all images,
! and each image reads a piece of the last one's array.
program real_coarray
  implicit none
  integer :: box[*], me, n, left, total
  real(8) :: wave(1000)[*], seen(1000)
  integer :: i

  me = this_image()
  n = num_images()
  left = merge(n, me - 1, me == 1)

  box[merge(1, me + 1, me == n)] = me
  sync all
  if (box /= left) error stop 'the neighbour wrote something else'

  total = me
  call co_sum(total)
  if (total /= n * (n + 1) / 2) error stop 'the sum is wrong'

  wave = [(real(me * i, 8), i = 1, 1000)]
  sync all
  seen = wave(:)[n]
  if (any(seen /= [(real(n * i, 8), i = 1, 1000)])) error stop 'the array is wrong'
  sync all
  if (me == 1) print '(a,i0,a)', 'real_coarray: ok on ', n, ' images'
end program
