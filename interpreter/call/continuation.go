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

// MaxContinuation bounds a continuation, in bytes before compression, because a ledger stores one beside each
// write. Before a write with a larger one, the state goes to history instead. When a ledger entry is read, the
// bound protects against data that somebody else wrote.
const MaxContinuation = 128 << 10

// continuation is the content of LedgerEntry.Continuation. What the call already had at the previous entry is left
// out of State, which would otherwise grow with every page.
type continuation struct {
	State State `json:"state"`
	// Collected and Seen say how much was cut from the beginning of State: the number of collected elements, and of
	// bytes of State.Seen. Collected is nil if State has everything that was collected.
	Collected *int `json:"collected,omitempty"`
	Seen      int  `json:"seen,omitempty"`
}

// behindState separates the JSON of a continuation from the JSON of the collected data, which is most of it.
// Compact JSON never contains a newline.
const behindState = '\n'

// Continuations are compressed because each row repeats the names of the columns, and the database of a ledger
// would take several times as long to compress them.
const compression = flate.BestSpeed

var compressors = sync.Pool{New: func() any {
	compressor, _ := flate.NewWriter(nil, compression) // its only error is an invalid level
	return compressor
}}

// packState encodes and compresses the continuation, and changes it. unpackState is the reverse.
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

// unpackState decodes the output of packState into n.
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
