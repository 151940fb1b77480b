package topology

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestMoves executes the moves of random rollouts in the worst order that they permit,
// and checks the number of machines against the limits.
func TestMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.IntRange(0, 8).Draw(t, "wanted")
		stay := rapid.IntRange(0, wanted).Draw(t, "stay")
		old := rapid.IntRange(0, 8).Draw(t, "old")
		surge := rapid.IntRange(0, 4).Draw(t, "surge")
		unavailable := rapid.IntRange(0, 4).Draw(t, "unavailable")
		if surge == 0 && unavailable == 0 {
			unavailable = 1
		}
		fresh := wanted - stay
		all := moves(wanted, stay, fresh, old, surge, unavailable)
		assert.Len(t, all, fresh+old)

		done := make([]bool, len(all))
		came, went := 0, 0     // finished moves of each kind, from the first
		launched, left := 0, 0 // finished moves in any order
		most := max(wanted+surge, stay+old)
		least := min(wanted-unavailable, stay+old)
		for range all {
			var can []int
			for i, x := range all {
				if !done[i] && (x.joins && went >= x.after || !x.joins && came >= x.after) {
					can = append(can, i)
				}
			}
			if len(can) == 0 {
				t.Fatalf("nothing can be done any more: %v", all)
			}
			i := rapid.SampledFrom(can).Draw(t, "next")
			done[i] = true
			if all[i].joins {
				launched++
			} else {
				left++
			}
			came, went = firsts(all, done, true), firsts(all, done, false)
			if machines := stay + old - left + launched; machines > most {
				t.Fatalf("%d machines, %d are allowed: %v", machines, most, all)
			}
			if ready := stay + old - left + launched; ready < least {
				t.Fatalf("%d machines, %d are needed: %v", ready, least, all)
			}
		}
	})
}

// firsts counts the finished moves of a kind, up to the first unfinished one.
func firsts(all []move, done []bool, joins bool) (n int) {
	for i, x := range all {
		if x.joins == joins {
			if !done[i] {
				return n
			}
			n++
		}
	}
	return n
}
