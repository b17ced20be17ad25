package lists_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/lists"
)

func isEven(n int) bool { return n%2 == 0 }

func TestMap(t *testing.T) {
	t.Parallel()

	require.Equal(t, []string{"3", "1"}, lists.Map([]int{3, 1}, strconv.Itoa))
	require.Equal(t, []string{}, lists.Map(nil, strconv.Itoa))
}

func TestFilter(t *testing.T) {
	t.Parallel()

	given := []int{4, 1, 2}
	require.Equal(t, []int{4, 2}, lists.Filter(given, isEven))
	require.Equal(t, []int{4, 1, 2}, given, "the list itself stays")
	require.Nil(t, lists.Filter([]int{1}, isEven))
}

func TestFirst(t *testing.T) {
	t.Parallel()

	require.Equal(t, 4, lists.First([]int{1, 4, 2}, isEven))
	require.Zero(t, lists.First([]int{1}, isEven))
}

func TestAdd(t *testing.T) {
	t.Parallel()

	require.Equal(t, []int{4, 1, 2}, lists.AddUnique([]int{4, 1}, 1, 2, 2))
	require.Nil(t, lists.AddUnique[int](nil))
}

func TestPick(t *testing.T) {
	t.Parallel()

	half := func(n int) (string, bool) { return strconv.Itoa(n / 2), isEven(n) }
	require.Equal(t, []string{"2", "1"}, lists.Pick([]int{4, 1, 2}, half))
	require.Nil(t, lists.Pick([]int{1}, half))
}

func TestIsSame(t *testing.T) {
	t.Parallel()
	list := []int{1, 2}
	require.True(t, lists.IsSame(list, list))
	require.True(t, lists.IsSame(nil, []int{}))
	require.False(t, lists.IsSame(list, []int{1, 2}))
	require.False(t, lists.IsSame(list, list[:1]))
}
