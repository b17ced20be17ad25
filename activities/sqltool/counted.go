package sqltool

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Rows without a key are counted: of equal ones the first, the second and so on are known each by itself. A source
// that gives such a row twice has two of them, in one answer or in several, and a call that reads it again meets as
// many of them as were written before it writes one more. So a call must know how many of them it has met. Those that
// nobody knew when it was claimed it has written itself, and they are known. Of others, and of all once it has begun
// again, it keeps how many it has met, until the next claim.

// IsCounted reports whether rows of the write are counted.
func (k *stateRows) IsCounted() bool { return k.firsts != nil }

// numberEqual numbers equal rows, continuing from those that the call has met.
func (k *stateRows) numberEqual(met map[string]int) {
	if k.inOrder && len(met) == 0 { // no two are equal
		return
	}
	if met == nil {
		met = map[string]int{}
	}
	k.counts, k.chunks = make([]int, len(k.firsts)), nil
	for i, first := range k.firsts {
		own := met[string(first)] + 1
		met[string(first)] = own
		k.counts[i], k.known[i] = own, ordinalKey(first, own)
	}
	k.inOrder = false
}

// ordinalKey returns the identity of one of several equal rows.
func ordinalKey(first []byte, number int) []byte {
	if number == 1 {
		return first
	}
	known := bytes.Clone(first)
	hash := expression.DigestBytes(string(hashIn(first)), number)
	copy(hashIn(known), hash)
	return known
}

// metBefore reports whether others may have written a row too, so that the call must count how often it meets the
// row.
func (k *stateRows) metBefore(first []byte) bool {
	of := k.State.Rows
	return of.Round > 0 || first[stateBytes] != withCursor || bytes.Compare(positionOf(first), of.KnownTo) <= 0
}

// countBytes is the number of bytes of an encoded count.
const countBytes = 4

// metOf returns the key prefix of counts of a row that the call has met in this round. The largest count
// comes first.
func (k *stateRows) metOf(first []byte) []byte {
	key := statePrefix(k.State.Name, behindRows)
	key = binary.BigEndian.AppendUint32(key, uint32(k.State.Rows.Round)) //nolint:gosec // there are few
	return append(key, hashIn(first)...)
}

// AddedCounts returns the counts that the write adds to known rows.
func (k *stateRows) AddedCounts() (keys [][]byte) {
	if !k.IsCounted() {
		return nil
	}
	last := map[string]int{}
	for i, first := range k.firsts {
		count := 1
		if k.counts != nil {
			count = k.counts[i]
		}
		if count > 1 || k.metBefore(first) {
			last[string(first)] = max(last[string(first)], count)
		}
	}
	for first, count := range last {
		keys = append(keys, binary.BigEndian.AppendUint32(k.metOf([]byte(first)), math.MaxUint32-uint32(count))) //nolint:gosec // a page has fewer rows
	}
	return keys
}

// CountRows numbers the write's equal rows in the place that stores its state, continuing from those that the
// call has met.
func (w *TableWrite) CountRows(ctx context.Context, tx StateTx) (*TableWrite, error) {
	if !w.IsCounted() {
		return w, nil
	}
	met, err := w.metCounts(ctx, tx)
	if err != nil {
		return nil, err
	}
	var rest [][]byte // of which it has met one, if that is known
	for _, first := range distinctRows(w.firsts) {
		if met[string(first)] == 0 && !w.metBefore(first) {
			rest = append(rest, first)
		}
	}
	if err := w.findKnown(ctx, tx, rest, met); err != nil {
		return nil, err
	}
	counted := *w
	counted.known = slices.Clone(w.firsts)
	counted.numberEqual(met)
	return &counted, nil
}

// distinctRows returns the rows in their order.
func distinctRows(rows [][]byte) [][]byte {
	sorted := slices.SortedFunc(slices.Values(rows), bytes.Compare)
	return slices.CompactFunc(sorted, bytes.Equal)
}

// metCounts returns the counts of rows that the round has met.
func (k *stateRows) metCounts(ctx context.Context, tx StateTx) (met map[string]int, err error) {
	d, met := tx.Dialect(), map[string]int{}
	for some := range slices.Chunk(distinctRows(k.firsts), seenChunk) {
		firsts := make(map[string][]byte, len(some))
		keys := lists.Map(some, func(first []byte) []byte {
			key := k.metOf(first)
			firsts[string(key)] = first
			return key
		})
		err := tx.Query(ctx, "SELECT (SELECT known FROM "+SeenTable+" WHERE known >= given.n ORDER BY known LIMIT 1) FROM "+d.BytesList, []any{d.ListOf(keys)},
			func(scan func(...any) error) error {
				var key []byte
				if err := scan(&key); err != nil || len(key) < countBytes {
					return err
				}
				of, count := key[:len(key)-countBytes], key[len(key)-countBytes:]
				if first, is := firsts[string(of)]; is {
					met[string(first)] = int(math.MaxUint32 - binary.BigEndian.Uint32(count))
				}
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	return met, nil
}

// findKnown returns which of some rows the call has written. Only the count of equal rows is
// stored.
func (k *stateRows) findKnown(ctx context.Context, tx StateTx, rows [][]byte, met map[string]int) error {
	d, known := tx.Dialect(), map[string]bool{}
	for some := range slices.Chunk(rows, seenChunk) {
		err := tx.Query(ctx, "SELECT given.n FROM "+d.BytesList+" WHERE (SELECT true FROM "+SeenTable+" WHERE known = given.n)", []any{d.ListOf(some)},
			func(scan func(...any) error) error {
				var row []byte
				err := scan(&row)
				known[string(row)] = true
				return err
			})
		if err != nil {
			return err
		}
		lookup := newSeen(k.State, some)
		err = tx.Query(ctx, BlocksStatement, []any{lookup.From, lookup.To}, func(scan func(...any) error) error {
			var hashes []byte
			err := scan(&hashes)
			lookup.InBlocks(hashes, known)
			return err
		})
		if err != nil {
			return err
		}
	}
	for row := range known {
		met[row] = 1
	}
	return nil
}
