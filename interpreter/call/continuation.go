package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"reprise/interpreter/expression"
)

// MaxContinuation bounds a continuation, in bytes before it is compressed, as a ledger keeps it
// beside each write. A larger one is written to history before the write is made; on the way
// back it bounds what a note of somebody else unpacks to.
const MaxContinuation = 128 << 10

// continuation is the form of LedgerEntry.Continuation. What the call had before is left out of State, which would otherwise
// grow with every page.
type continuation struct {
	State State `json:"state"`
	// Collected and Seen say how much is left out of the beginning of State: how many collected elements, and how many bytes of
	// State.Seen. Collected is nil if State has everything that was collected.
	Collected *int `json:"collected,omitempty"`
	Seen      int  `json:"seen,omitempty"`
}

// behindState is between the JSON of a continuation and the JSON of what the call has collected, which is most of it. Compact JSON
// has none.
const behindState = '\n'

// A continuation is compressed: it has the names of the columns with each row, and the database of a ledger would take
// several times as long to compress it itself.
const compression = flate.BestSpeed

var compressors = sync.Pool{New: func() any {
	compressor, _ := flate.NewWriter(nil, compression) // its only error is an invalid level
	return compressor
}}

// packState gives the bytes that unpack reads. It changes the continuation.
func (n *continuation) packState() ([]byte, error) {
	collected := n.State.Pages.Collected
	n.State.Pages.Collected = expression.Value{}
	plain, err := json.Marshal(n)
	if err == nil && !collected.IsZero() {
		var rows []byte
		rows, err = expression.Encode(collected.Data)
		plain = append(append(plain, behindState), rows...)
	}
	if err != nil {
		return nil, fmt.Errorf("encode how the call continues: %w", err)
	}
	if len(plain) > MaxContinuation {
		return nil, fmt.Errorf("how the call continues takes %d bytes, more than %d", len(plain), MaxContinuation)
	}
	compressor, _ := compressors.Get().(*flate.Writer)
	defer compressors.Put(compressor)
	var packed bytes.Buffer
	compressor.Reset(&packed)
	_, err = compressor.Write(plain)
	err = errors.Join(err, compressor.Close())
	return packed.Bytes(), err
}

// unpackState reads what pack gave.
func (n *continuation) unpackState(packed []byte) error {
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), MaxContinuation))
	if err != nil {
		return fmt.Errorf("decode how the call continues: %w", err)
	}
	state, rows, collected := bytes.Cut(plain, []byte{behindState})
	if err := json.Unmarshal(state, n); err != nil {
		return fmt.Errorf("decode how the call continues: %w", err)
	}
	if !collected {
		return nil
	}
	if n.State.Pages.Collected.Data, err = expression.Decode(rows); err != nil {
		return fmt.Errorf("decode what the call has collected: %w", err)
	}
	return nil
}
